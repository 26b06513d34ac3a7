"""``readerkit break``: a mini with one deliberate fault."""

from __future__ import annotations

import click

from readerkit.app.mini_names import one_of
from readerkit.commands.options import say_whose
from readerkit.terminal.completing import names
from readerkit.terminal.run_mini import Forwarding, run_module
from readerkit.wording.meant_name import choose
from readerkit.wording.next_command import typed


@click.command(
    cls=Forwarding,
    forwards=("--predict", "--world", "--timeout", "--lang", "--json"),
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
def break_(arguments: tuple[str, ...]) -> None:
    """Put FAULT into MINI, ask what will happen, and run it with and without.

    Shows what was measured and the lines of the mini and of upstream that guard
    against it. Without FAULT, or without MINI too, lists the faults there are.
    OPTIONS: --predict N, --world N, --timeout SECONDS, --lang es, --json.

    \b
    Example:
        readerkit break
        readerkit break ddp no-sync
        readerkit break pipeline send-order --predict 3
    """
    names = [*arguments]
    if len(names) < 2 or names[0].startswith("-"):  # they are listed
        say_whose("faults")
    if names and not names[0].startswith("-"):
        from readerkit.app.known_names import faulty

        names[0] = one_of([mini for mini, _ in faulty(None, {})], names[0])
        if names[1:] and not names[1].startswith("-"):
            faults = [name for name, _ in faulty(None, {"arguments": names[:1]})]
            names[1] = choose(f"fault of {names[0]}", names[1], faults)
    run_module("mini_impls.faults", names, command=typed("break"), asks=True)
