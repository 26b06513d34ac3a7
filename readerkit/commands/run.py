"""``readerkit run``: one mini, by itself, on processes of this machine."""

from __future__ import annotations

import click

from readerkit.app.mini_names import SAYS, listed_minis, one_of
from readerkit.app.watched_run import show_on_a_page
from readerkit.commands.options import own_help_option
from readerkit.terminal.completing import names
from readerkit.terminal.folded import tell
from readerkit.terminal.run_mini import Forwarding, run_module, show_help
from readerkit.wording.next_command import typed


@click.command(
    cls=Forwarding,
    forwards=(
        "--world",
        "--backend",
        "--steps",
        "--timeout",
        "--trace",
        "--watch",
        "--oversubscribe",
    ),
    short_help="One mini implementation, on processes of this machine.",
    context_settings={"ignore_unknown_options": True},
    add_help_option=False,
    epilog=f"\b\nMINI is one of:\n{listed_minis()}",
)
@click.argument("mini", metavar="MINI", required=False, shell_complete=names("minis"))
@click.argument("options", metavar="[OPTIONS]...", nargs=-1, type=click.UNPROCESSED)
@own_help_option
def run(mini: str | None, options: tuple[str, ...], wants_help: bool) -> None:
    """Run MINI: who holds what, what is sent, the loss, and one process beside it.

    OPTIONS go to the mini: --world N, --backend gloo|nccl, --steps N, and its own;
    readerkit run MINI --help lists them. --trace FILE writes one trace of all ranks,
    for Perfetto or Chrome, and says where the time of a step goes, beside what the
    estimates make of rates that are measured first; --watch shows that while it runs,
    here and on the page /-/run of readerkit site serve. Without MINI, lists the minis
    there are.

    \b
    Example:
        readerkit run
        readerkit run ddp --world 2
        readerkit run ddp --trace ddp.json
        readerkit run schedules --world 4 --microbatches 8
    """
    if mini is None:
        if wants_help:
            show_help()
        tell(f"MINI is one of:\n{listed_minis()}")
        return
    name = one_of(list(SAYS), mini)
    more = ["--help"] if wants_help else []
    if "--watch" in options:
        show_on_a_page()
    run_module(
        f"mini_impls.{name}",
        [*options, *more],
        command=typed("run", mini),
        torch=name != "schedules",
    )
