"""``readerkit compare``: a mini beside its upstream, on the same work."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from readerkit.app.mini_names import ALIASES, SAYS, compared, one_of
from readerkit.commands.options import book_option, own_help_option
from readerkit.errors import ReaderkitError
from readerkit.terminal.completing import names
from readerkit.terminal.run_mini import Forwarding, run_module, show_help
from readerkit.wording.next_command import written

if TYPE_CHECKING:
    from readerkit.content.annotations import ComparisonName
    from readerkit.evidence.record import Record


@click.command(
    cls=Forwarding,
    forwards=(
        "--upstream",
        "--world",
        "--backend",
        "--steps",
        "--timeout",
        "--trace",
        "--oversubscribe",
        "--unpinned",
        "--json",
        "--save",
        "--lang",
    ),
    short_help="A mini beside its upstream: losses, collectives, bytes.",
    context_settings={"ignore_unknown_options": True},
    add_help_option=False,
)
@click.argument(
    "mini", metavar="MINI", required=False, shell_complete=names("compared")
)
@click.argument(
    "options",
    metavar="[OPTIONS]...",
    nargs=-1,
    type=click.UNPROCESSED,
    shell_complete=names("beside"),
)
@own_help_option
@book_option
def compare(
    mini: str | None, options: tuple[str, ...], wants_help: bool, book: Path | None
) -> None:
    """Run MINI and its upstream from the same weights on the same data.

    OPTIONS: --upstream NAME, --world N, --steps N, --timeout SECONDS, --json,
    --lang es for the verdict, --save [DIR], --watch for a table of where the time of
    both sides goes, and --trace FILE for that and a trace of all ranks; readerkit
    compare MINI --help lists them. Exit 0 where every line agrees or is explained, in a
    trap too. Without MINI, lists the comparisons there are.

    \b
    Example:
        readerkit compare
        readerkit compare ddp
        readerkit compare tp --upstream megatron
    """
    if mini is None and wants_help:
        show_help()
    if mini is None or book is not None or ALIASES.get(mini, mini) not in compared():
        from readerkit.app.library import open_library
        from readerkit.app.records import read_gpu_records

        library = open_library(book)
        there_are = library.book.comparisons.values()
        if not there_are:
            missing = "this book compares nothing: no comparisons.yaml"
            raise ReaderkitError(f"{book}: {missing}")
        if mini is None:
            wide = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
            click.echo(listed(there_are, wide, read_gpu_records(library)))
            return
        mini = one_of(list(dict.fromkeys(each.mini for each in there_are)), mini)
    arguments = [mini, *options]
    if book is not None:
        arguments += ["--book", str(book.absolute())]
    if wants_help:
        arguments.append("--help")
    run_module("mini_impls.compare", arguments, command=written("compare"))


def listed(
    comparisons: Iterable[ComparisonName],
    width: int | None = None,
    on_gpus: Mapping[str, Record] = MappingProxyType({}),
) -> str:
    """Return the command of each comparison, and its two sides.

    With a width, that of a terminal: mini by mini, each with what it is, and on which
    GPU it has run too.
    """
    rows: list[str] = []
    mini = ""
    for each in comparisons:
        typed = f"{each.mini} --upstream {each.upstream}"
        if width is None:
            rows.append(f"{typed}\t{each.title}")
            continue
        if each.mini != mini:
            mini = each.mini
            rows += textwrap.wrap(f"{mini}: {SAYS.get(mini, '')}", width)
        rows += [f"  {typed}", *_indented(each.title, width)]
        if (record := on_gpus.get(f"{each.mini}_{each.upstream}")) is not None:
            rows += _indented(f"also on {record.environment.get('gpu')}", width)
    return "\n".join(rows)


def _indented(text: str, width: int) -> list[str]:
    return [f"      {row}" for row in textwrap.wrap(text, max(width - 6, 10))]
