"""What lab 01 asks for before it is run, and what its times say to that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from readerkit.labs.results import DdpResult

WIDTHS = (64, 512)
QUESTIONS = (
    "an all-reduce of 16 MiB, times one of 256 B",
    *(f"sequences a second at width {w}, times one rank's" for w in WIDTHS),
)
"""Each asks for a ratio; the page of the lab asks the same."""


@dataclass(frozen=True, slots=True)
class PredictedRatio:
    """A ratio that was asked for."""

    question: str
    expected: float
    """If size alone, or the number of ranks, decided."""
    measured: float
    guess: float | None = None
    """What the reader said before."""


def predictions(
    result: DdpResult, guesses: Sequence[float | None]
) -> list[PredictedRatio]:
    """Return the measured answer to each question; widths that were not run are out.

    `guesses` are in the order of the questions, or empty.
    """
    said = dict(zip(QUESTIONS, guesses, strict=False))
    found = []
    if result.all_reduce:
        ordered = sorted(result.all_reduce, key=attrgetter("bytes"))
        small, large = ordered[0], ordered[-1]
        bytes_apart, times = large.bytes / small.bytes, large.median_s / small.median_s
        found.append(
            PredictedRatio(QUESTIONS[0], bytes_apart, times, said.get(QUESTIONS[0]))
        )
    for question, width in zip(QUESTIONS[1:], WIDTHS, strict=True):
        rates = {
            step.world_size: step.sequences / step.step_s
            for step in result.steps
            if step.hidden_size == width
        }
        if {1, result.world_size} <= rates.keys():
            ratio = rates[result.world_size] / rates[1]
            found.append(
                PredictedRatio(question, result.world_size, ratio, said.get(question))
            )
    return found
