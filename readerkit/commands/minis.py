"""What ``run`` and ``compare`` share: the names of minis, and running one."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shlex
import signal
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
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
TORCH = ("torch==2.13.0", "numpy>=1.26", "packaging>=24.2", "safetensors>=0.5")
"""The extra ``torch`` of pyproject.toml: what minis and comparisons run on."""
PR_SET_PDEATHSIG = 1
"""Linux prctl: the signal that the kernel sends when the parent dies."""
_SHARED = {"__init__", "failures", "launch", "model", "traffic"}


def named(mini: str | None, wants_help: bool) -> str:
    """Return the mini that was named; without one, ``--help`` is the command's own."""
    if mini is not None:
        return mini
    if not wants_help:
        raise click.UsageError("Missing argument 'MINI'.")
    context = click.get_current_context()
    click.echo(context.get_help())
    context.exit()


def spelt_out(mini: str, book: Path | None) -> str:
    """Return the module's name of a mini.

    Raises:
        ReaderkitError: no such mini; the message names those there are.
    """
    from readerkit.book import MINIS
    from readerkit.commands.library import open_library

    library = open_library(book)
    files = library.sources(library.upstream(MINIS)).paths
    return one_of(sorted({Path(file).stem for file in files} - _SHARED), mini)


def one_of(names: Sequence[str], mini: str) -> str:
    """Return the name that was meant, an alias spelt out.

    Raises:
        ReaderkitError: it is none of them; the message names them.
    """
    name = ALIASES.get(mini, mini)
    if name in names:
        return name
    short = [f"{alias} for {full}" for alias, full in ALIASES.items() if full in names]
    also = f" ({', '.join(short)})" if short else ""
    raise ReaderkitError(
        f"unknown mini: got '{mini}', expected one of {', '.join(names)}{also}"
    )


def _end_with_parent() -> None:
    """Have the kernel end this process with the command, even if that is killed.

    The launcher ends its ranks in the same way, so that nothing is left behind.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def run_module(
    module: str, arguments: Sequence[str], *, command: str, torch: bool = True
) -> None:
    """Run a module as a process of its own; its exit code becomes the command's.

    `command` is what was typed, for its messages.

    Raises:
        ReaderkitError: it needs torch, and torch is not installed here.
    """
    if torch and importlib.util.find_spec("torch") is None:
        raise ReaderkitError(
            "torch is not installed here, and minis run on it; to install it:\n"
            f"    {shlex.join([sys.executable, '-m', 'pip', 'install', *TORCH])}"
        )
    sys.stdout.flush()
    code = _run([sys.executable, "-m", module, *arguments], command)
    if code:
        raise click.exceptions.Exit(code if code > 0 else 128 - code)


def _run(arguments: Sequence[str], command: str) -> int:
    """Run a process to its end, and return its exit code.

    It has a process group of its own, so that ^C reaches it once, from here, and it is
    waited for while it ends its ranks and takes its files away. It is always told so by
    SIGTERM: an interrupt in the middle of importing torch prints a traceback.
    """
    process: subprocess.Popen[bytes] | None = None
    told: list[int] = []

    def end(signum: int, _: object) -> None:
        told.append(signum)
        if process is not None:
            process.terminate()

    before = {name: signal.signal(name, end) for name in _ENDING}
    try:
        process = subprocess.Popen(
            arguments,
            env={**os.environ, "READERKIT_COMMAND": command},
            process_group=0,
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )
        if told:
            process.terminate()
        code = process.wait()
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
    return 128 + told[0] if told and code else code
