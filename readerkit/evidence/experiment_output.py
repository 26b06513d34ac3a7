"""What an experiment printed: kept beside the programs, with what it was made from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from readerkit.model import stored
from readerkit.model.language import Told
from readerkit.model.stored import Stored
from readerkit.wording.next_command import typed

FILE = "experiments/printed.json"
"""Below ``annotations``: the one file of all outputs."""
FORMAT = 1
_FIGURE = re.compile(r"([a-z][a-z0-9_]*) = (.+)")


class PrintedTwice(ValueError):
    """A figure that stands on two lines of what a program printed."""

    def __init__(self, figure: str, first: int, second: int) -> None:
        twice = Told(
            "prints the figure '{figure}' twice: lines {first} and {second} of what it "
            "printed",
            figure=figure,
            first=first,
            second=second,
        )
        super().__init__(twice)
        self.figure = figure


class Output(Stored, frozen=True):
    """What one program printed, and on what it ran."""

    torch: str
    """Its version; empty where it was not imported."""
    made_from: Mapping[str, str]
    """The program and the minis that it loaded, by file; the upstreams, by name."""
    printed: tuple[tuple[str, ...], ...]
    """The lines of each rank."""

    def __post_init__(self) -> None:
        """Refuse an output of no rank, and one that contradicts itself."""
        if not self.printed:
            raise ValueError("printed by no rank")
        self.figures()

    def figures(self) -> dict[str, Any]:
        """Return the figures of rank 0; other lines count for nothing.

        Raises:
            PrintedTwice: one that is.
        """
        return {name: value for name, (_, value) in _lines(self.printed[0]).items()}

    def lines_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the lines that print these figures, in their order."""
        wanted, lines = {*names}, _lines(self.printed[0]).items()
        return tuple(
            self.printed[0][at - 1] for name, (at, _) in lines if name in wanted
        )


@cache  # a program's output is asked for each sentence that it proves
def _lines(printed: tuple[str, ...]) -> Mapping[str, tuple[int, Any]]:
    """Return each figure's line, and its value."""
    found: dict[str, tuple[int, Any]] = {}
    for number, line in enumerate(printed, 1):
        if match := _FIGURE.fullmatch(line.strip()):
            try:
                value = json.loads(match[2])
            except ValueError:
                continue
            if (name := match[1]) in found:
                raise PrintedTwice(name, found[name][0], number)
            found[name] = number, value
    return found


class _Outputs(Stored, frozen=True):
    outputs: Mapping[str, Output]
    format: int = FORMAT


def read_outputs(text: str, file: str) -> dict[str, Output]:
    """Return the outputs that were kept, by the name of each program.

    Raises:
        ContentError: text that is no such file, or an output without a rank.
    """
    expected = f"what {typed('prove', '--all', '--keep')} writes: run it again"
    what = "file of outputs"
    kept = stored.parse(
        text, _Outputs, file, what=what, expected=expected, version=FORMAT
    )
    return dict(kept.outputs)


def write_outputs(outputs: Mapping[str, Output]) -> str:
    """Return the same as text: a line for each part of each output."""
    return stored.write(_Outputs(dict(sorted(outputs.items()))))
