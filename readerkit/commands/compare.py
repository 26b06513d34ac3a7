"""``readerkit compare``: a mini beside its upstream, on the same work."""

from __future__ import annotations

from pathlib import Path

import click

from readerkit.commands.minis import named, run_module, spelt_out
from readerkit.commands.options import book_option, own_help_option


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
    --save [DIR]; readerkit compare MINI --help lists the comparisons. Exit 0 where
    every line agrees or is explained.

    \b
    Example:
        readerkit compare ddp
        readerkit compare tp --upstream megatron
    """
    arguments = [spelt_out(named(mini, wants_help), book), *options]
    if book is not None:
        arguments += ["--book", str(book.absolute())]
    if wants_help:
        arguments.append("--help")
    run_module("mini_impls.compare", arguments)
