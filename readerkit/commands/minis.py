"""What ``run`` and ``compare`` share: the names of minis, and running one."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from readerkit.errors import ReaderkitError

ALIASES = {
    "tp": "tensor_parallel",
    "sp": "sequence_parallel",
    "pp": "pipeline",
}
_SHARED = {"__init__", "launch", "model", "traffic"}


def spelt_out(mini: str, book: Path | None) -> str:
    """Return the module's name of a mini.

    Raises:
        ReaderkitError: no such mini; the message names those there are.
    """
    from readerkit.book import MINIS
    from readerkit.commands.library import open_library

    library = open_library(book)
    files = library.sources(library.upstream(MINIS)).paths
    names = sorted({Path(file).stem for file in files} - _SHARED)
    name = ALIASES.get(mini, mini)
    if name in names:
        return name
    short = ", ".join(f"{alias} for {full}" for alias, full in ALIASES.items())
    raise ReaderkitError(
        f"unknown mini: got '{mini}', expected one of {', '.join(names)} ({short})"
    )


def run_module(module: str, arguments: Sequence[str], *, torch: bool = True) -> None:
    """Run a module as a process of its own; its exit code becomes the command's.

    Raises:
        ReaderkitError: it needs torch, and torch is not installed here.
    """
    if torch and importlib.util.find_spec("torch") is None:
        raise ReaderkitError(
            "torch is not installed here, and minis run on it: "
            "install readerkit with its extra 'torch'"
        )
    sys.stdout.flush()
    ended = subprocess.run([sys.executable, "-m", module, *arguments], check=False)
    if ended.returncode:
        raise click.exceptions.Exit(ended.returncode if ended.returncode > 0 else 1)
