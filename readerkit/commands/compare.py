"""``readerkit compare``: a mini beside its upstream, on the same work."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from readerkit.commands.minis import named, one_of, run_module
from readerkit.commands.options import book_option, own_help_option

if TYPE_CHECKING:
    from readerkit.content.annotations import Comparison


@click.command(
    short_help="A mini beside its upstream: losses, collectives, bytes.",
    context_settings={"ignore_unknown_options": True},
    add_help_option=False,
)
@click.argument("mini", metavar="MINI", required=False)
@click.argument("options", metavar="[OPTIONS]...", nargs=-1, type=click.UNPROCESSED)
@own_help_option
@book_option
def compare(
    mini: str | None, options: tuple[str, ...], wants_help: bool, book: Path | None
) -> None:
    """Run MINI and its upstream from the same weights on the same data.

    OPTIONS: --upstream NAME, --world N, --steps N, --timeout SECONDS, --json, and
    --save [DIR]; readerkit compare MINI --help lists them. Exit 0 where every line
    agrees or is explained. Without MINI, lists the comparisons there are.

    \b
    Example:
        readerkit compare
        readerkit compare ddp
        readerkit compare tp --upstream megatron
    """
    if mini is None and wants_help:
        named(mini, wants_help)
    from readerkit.commands.library import open_library

    there_are = open_library(book).book.comparisons.values()
    if mini is None:
        click.echo(listed(there_are))
        return
    arguments = [one_of(list(dict.fromkeys(c.mini for c in there_are)), mini), *options]
    if book is not None:
        arguments += ["--book", str(book.absolute())]
    if wants_help:
        arguments.append("--help")
    run_module("mini_impls.compare", arguments, command="readerkit compare")


def listed(comparisons: Iterable[Comparison]) -> str:
    """Return what to type for each comparison, and what it holds side by side."""
    typed = {f"{c.mini} --upstream {c.upstream}": c.title for c in comparisons}
    width = max(map(len, typed), default=0)
    return "\n".join(f"{what:{width}}  {title}" for what, title in typed.items())
