"""Starts a mini, a comparison or a lab as a process of its own."""

from __future__ import annotations

import importlib.util
import shlex
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

from readerkit.errors import ReaderkitError
from readerkit.system.children import python
from readerkit.terminal.processes import run_to_its_end

TORCH = ("torch==2.13.0", "numpy>=1.26", "packaging>=24.2", "safetensors>=0.5")
"""The extra ``torch`` of pyproject.toml: what minis and comparisons run on."""


_SAID = (signal.SIGINT, signal.SIGPIPE)
"""What whoever sent it knows, or nobody is there to read of."""


class Forwarding(click.Command):
    """A command with options of what it runs, which a shell completes as its own."""

    def __init__(self, *args: Any, forwards: Sequence[str], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.forwards = forwards

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[CompletionItem]:
        """Return its own options and those that it hands on."""
        theirs = [each for each in self.forwards if each.startswith(incomplete)]
        own = super().shell_complete(ctx, incomplete)
        return [*own, *map(CompletionItem, theirs if incomplete else ())]


def show_help() -> NoReturn:
    """Show the command's own ``--help``, which no mini was named for, and end."""
    context = click.get_current_context()
    click.echo(context.get_help())
    context.exit()


def needs_torch(why: str) -> ReaderkitError:
    """Return the error of what needs torch where it is not installed."""
    return ReaderkitError(
        f"torch is not installed here, and {why}; to install it:\n"
        f"    {shlex.join([sys.executable, '-m', 'pip', 'install', *TORCH])}"
    )


def ended_by(signum: int) -> str:
    """Return what became of a process that a signal ended before it could say so."""
    said = f"its process was ended by {signal.Signals(signum).name}"
    if signum == signal.SIGKILL:
        said += ": by hand, by code that it ran, or where memory is short"
    return said


def run_module(
    module: str,
    arguments: Sequence[str],
    *,
    command: str,
    torch: bool = True,
    asks: bool = False,
    ends_all: bool = False,
) -> None:
    """Run a module as a process of its own; its exit code becomes the command's.

    `command` is what was typed, for its messages. One that asks first imports torch
    later; of the others this is the first that can be said. With `ends_all` nothing
    that it started outlives it.

    Raises:
        ReaderkitError: it needs torch, and torch is not installed here.
    """
    if torch and importlib.util.find_spec("torch") is None:
        raise needs_torch("minis run on it")
    sys.stdout.flush()
    doing = f"{command}: importing torch" if torch and not asks else ""
    words = python("-m", module, *arguments)
    code = run_to_its_end(words, command, doing, ends_all=ends_all)
    if code < 0 and -code not in _SAID:
        click.echo(f"{command}: {ended_by(-code)}", err=True)
    if code:
        raise click.exceptions.Exit(code if code > 0 else 128 - code)
