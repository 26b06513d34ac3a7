"""``readerkit run``: one mini, by itself, on processes of this machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from readerkit.commands.options import book_option

ALIASES = {
    "tp": "tensor_parallel",
    "sp": "sequence_parallel",
    "pp": "pipeline",
}
_SHARED = {"__init__", "launch", "model", "traffic"}


@click.command(
    short_help="One mini implementation, on processes of this machine.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("mini")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
@book_option
def run(mini: str, options: tuple[str, ...], book: Path | None) -> None:
    """Run MINI: who holds what, what is sent, the loss, and one process beside it.

    OPTIONS go to the mini: --world N, --backend gloo|nccl, --steps N, and its own;
    readerkit run MINI -- --help lists them.

    \b
    Example:
        readerkit run ddp --world 2
        readerkit run schedules --world 4 --microbatches 8
    """
    import importlib.util

    from readerkit.commands.library import open_library
    from readerkit.errors import ReaderkitError

    library = open_library(book)
    files = library.sources(library.upstream("minis")).paths
    names = sorted({Path(file).stem for file in files} - _SHARED)
    name = ALIASES.get(mini, mini)
    if name not in names:
        short = ", ".join(f"{alias} for {full}" for alias, full in ALIASES.items())
        raise ReaderkitError(
            f"unknown mini: got '{mini}', expected one of {', '.join(names)} ({short})"
        )
    if name != "schedules" and importlib.util.find_spec("torch") is None:
        raise ReaderkitError(
            "torch is not installed here, and minis run on it: "
            "pip install 'readerkit[torch]'"
        )
    ended = subprocess.run(
        [sys.executable, "-m", f"mini_impls.{name}", *options], check=False
    )
    if ended.returncode:
        sys.stdout.flush()
        raise click.exceptions.Exit(ended.returncode if ended.returncode > 0 else 1)
