"""``readerkit break``: a mini with one deliberate fault."""

from __future__ import annotations

from pathlib import Path

import click

from readerkit.commands.options import book_option
from readerkit.terminal.completing import names
from readerkit.terminal.minis import run_module, spelt_out


@click.command(
    name="break",
    short_help="A mini with one deliberate fault: predict, run, see.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument(
    "arguments",
    metavar="[MINI [FAULT]] [OPTIONS]...",
    nargs=-1,
    type=click.UNPROCESSED,
    shell_complete=names("faulty"),
)
@book_option
def break_(arguments: tuple[str, ...], book: Path | None) -> None:
    """Put FAULT into MINI, ask what will happen, and run it with and without.

    Shows what was measured and the lines of the mini and of upstream that guard
    against it. Without FAULT, or without MINI too, lists the faults there are.
    OPTIONS: --predict N, --world N, --timeout SECONDS, --json.

    \b
    Example:
        readerkit break
        readerkit break ddp no-sync
        readerkit break pipeline send-order --predict 3
    """
    names = [*arguments]
    if names and not names[0].startswith("-"):
        names[0] = spelt_out(names[0], book)
    run_module("mini_impls.faults", names, command="readerkit break", asks=True)
