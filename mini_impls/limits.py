"""What a run may ask for; what it may not is refused before any process starts."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from mini_impls.machine import INSIST
from readerkit.errors import WrongUseError
from readerkit.system.output import OutputError, printing
from readerkit.wording.fold import fitting

LONGEST_S = 365 * 24 * 3600.0
"""The longest timeout: far beyond it clocks overflow, in Python and in the store."""

MOST_STEPS = 10_000
"""The most steps of a run, whose batches are all made before the first."""

START_S = 300.0
"""How long the first rank waits for the last one to be up."""


def check_timeout(timeout_s: float) -> None:
    """Raise ValueError for a time that no clock can wait for."""
    if not timeout_s > 0:
        raise ValueError(f"--timeout {timeout_s} is not above 0")
    if timeout_s > LONGEST_S:
        raise ValueError(f"--timeout {timeout_s} is above {LONGEST_S:.0f}, a year")


def complain(program: str, error: Exception) -> int:
    """Say what is wrong; return the exit status: 2 for what was typed, else 1."""
    print(fitting(f"{program}: {error}", sys.stderr), file=sys.stderr)
    return 2 if isinstance(error, ValueError | WrongUseError) else 1


class Options(argparse.ArgumentParser):
    """A parser of a mini's options, whose help reads as that of readerkit's commands.

    `after` is what stands behind the options: `MINI`.
    """

    def __init__(self, prog: str, description: str, after: str = "") -> None:
        super().__init__(
            prog=prog,
            description=description,
            usage=f"%(prog)s [OPTIONS] {after}".rstrip(),
            formatter_class=_Help,
            add_help=False,
        )
        text = "Show this message and exit."
        self.add_argument("-h", "--help", action="help", help=text)

    def parse_args(self, args: Sequence[str] | None = None) -> argparse.Namespace:  # type: ignore[override]
        """Return what was typed, or end where no run could have such sizes."""
        given = super().parse_args(args)
        if getattr(given, "steps", 0) > MOST_STEPS:
            self.error(f"--steps {given.steps} is above {MOST_STEPS}")
        world_size = getattr(given, "world", None)  # under torchrun it is not said
        if world_size is not None and world_size < 1:
            self.error(f"--world {world_size} is below 1")
        return given

    def print_help(self, file: Any = None) -> None:
        """Print it, or end where it cannot be written."""
        try:
            with printing():
                print(self.format_help(), end="", file=file)
        except OutputError as error:
            self.exit(complain(self.prog, error))

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with what was typed, and end."""
        text = f"{self.format_usage()}{self.prog}: error: {message}\n"
        self.exit(2, fitting(text, sys.stderr))


class _Help(argparse.RawDescriptionHelpFormatter):
    def add_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Any,
        prefix: str | None = None,
    ) -> None:
        super().add_usage(usage, actions, groups, prefix="Usage: ")

    def start_section(self, heading: str | None) -> None:
        names = {"positional arguments": "Arguments"}
        super().start_section(heading and names.get(heading, heading.capitalize()))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return super()._fill_text(text, width, f"{indent}  ")


def program() -> str:
    """Return what was typed to come here, as messages name it."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    typed = f"python -m {spec.name}" if spec else Path(sys.argv[0]).name
    return os.environ.get("READERKIT_COMMAND", typed.removesuffix(".__main__"))


def add_run_options(parser: Options, steps: int) -> None:
    """Add the options of whatever starts ranks; so many steps are the default."""
    parser.add_argument("--world", type=int, help="number of ranks (default 2)")
    parser.add_argument("--backend", choices=["gloo", "nccl"], default="gloo")
    parser.add_argument("--steps", type=int, default=steps, help="default %(default)s")
    parser.add_argument(
        "--timeout", type=float, default=60.0, help="seconds a collective may take"
    )
    parser.add_argument(
        "--trace", type=Path, metavar="FILE", help="write one trace of all ranks"
    )
    parser.add_argument(
        "--watch", action="store_true", help="show where the time goes, as it goes"
    )
    parser.add_argument(INSIST, action="store_true", help="start them all the same")
