"""What a quiz asks: every question as it is shown, by its kind, with no key among it.

What is said of an answer, and of a whole quiz, stands in ``quiz.messages``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import UNSET, Struct, UnsetType, structs

from readerkit.model import addresses
from readerkit.quiz.lockfile import ResolvedPlace, Work


class CitedLines(ResolvedPlace, frozen=True, omit_defaults=False):
    """Lines that a message leads to."""

    text: str = ""
    """Path and lines."""
    page: str = ""
    """Where the site shows them, from its top."""

    @classmethod
    def of(cls, place: ResolvedPlace) -> CitedLines:
        """Return lines of the lock with what they are called."""
        where = (place.upstream, place.path, place.first, place.last)
        page = addresses.href(addresses.lines_page(*where))
        return cls(**structs.asdict(place), text=str(place), page=page)


class SearchedLines(CitedLines, frozen=True):
    """Lines among which one is to be found."""

    lines: tuple[str, ...] | None = None
    """Their text, for programs; None where it is not on this disk."""


class QuotedWork(Work, frozen=True):
    """A work that bears a question out, and where in it."""

    key: str
    section: str


class Labelled(Struct, frozen=True):
    """A text to answer by its label."""

    label: str
    text: str

    @classmethod
    def each(
        cls, labels: Iterable[object], texts: Iterable[str]
    ) -> tuple[Labelled, ...]:
        """Return texts with their labels."""
        pairs = zip(labels, texts, strict=True)
        return tuple(cls(str(label), text) for label, text in pairs)


# --- a question, by its kind: no key among it ---


class Prompt(Struct, frozen=True, tag_field="kind"):
    """A question as it is shown."""

    id: str
    topic: str
    objective: str
    """In words."""
    difficulty: int
    prompt: str
    how: str
    """How to type an answer."""
    position: int = 0
    """In its quiz, from 1; 0 on a page without one."""
    of: int = 0
    attempt: int = 0
    """Which try at it is the next one, from 1."""
    seconds_left: float | None = None
    """Of the whole quiz; None where it has no limit."""
    hints: tuple[str, ...] = ()
    """Those that were taken."""
    hint_costs: float | None = None
    """Part of the points that the next one costs; None where there is none."""
    type: Literal["question"] = "question"

    @property
    def kind(self) -> str:
        """The type of the question."""
        return str(self.__struct_config__.tag)


class ChoicePrompt(Prompt, frozen=True, kw_only=True):
    """Options to choose from."""

    options: tuple[Labelled, ...]
    several: bool


class SinglePrompt(ChoicePrompt, frozen=True, tag="single"):
    """One of them is right."""


class MultiplePrompt(ChoicePrompt, frozen=True, tag="multiple"):
    """Several of them are right."""


class NumericPrompt(Prompt, frozen=True, kw_only=True, tag="numeric"):
    """A number to compute."""

    unit: str
    tolerance: str


class ScheduleSizes(Struct, frozen=True):
    """Of which schedule a rank's row is asked."""

    name: str
    ranks: int
    microbatches: int
    chunks: int
    rank: int


class PredictPrompt(Prompt, frozen=True, kw_only=True, tag="predict"):
    """What code will do: a number, or so many words in order."""

    unit: str | UnsetType = UNSET
    tolerance: str | UnsetType = UNSET
    words: tuple[str, ...] | UnsetType = UNSET
    length: int | UnsetType = UNSET
    strip: tuple[str, ...] | UnsetType = UNSET
    """Calls of a rank in their order; the one that is asked for is empty."""
    schedule: ScheduleSizes | UnsetType = UNSET


def drawn_strip(calls: tuple[str, ...]) -> str:
    """Return calls in their order, numbered, with a gap for the one that is asked for.

    >>> drawn_strip(("all_gather", ""))
    '1 all_gather  2 ____'
    """
    return "  ".join(f"{at} {call or '____'}" for at, call in enumerate(calls, 1))


class OrderPrompt(Prompt, frozen=True, kw_only=True, tag="order"):
    """Items to put in order."""

    items: tuple[Labelled, ...]


class MatchPrompt(Prompt, frozen=True, kw_only=True, tag="match"):
    """Left sides to find the right ones for."""

    left: tuple[Labelled, ...]
    right: tuple[Labelled, ...]


class FillPrompt(Prompt, frozen=True, tag="fill"):
    """A gap to fill with a word."""


class LocatePrompt(Prompt, frozen=True, kw_only=True, tag="locate"):
    """A line to find."""

    search: SearchedLines


class SketchPrompt(Prompt, frozen=True, kw_only=True, tag="sketch"):
    """A grid to fill in, a row on a line."""

    columns: tuple[str, ...]
    rows: tuple[str, ...]
    words: tuple[str, ...]
    cells: tuple[str, ...]
    """What each column holds: word, shape, number or groups."""
    ranks: int = 0
    """That groups are made of."""
    given: tuple[str, ...] = ()
    """Its rows as they were answered at the last try: one alone may be corrected."""


class ShortPrompt(Prompt, frozen=True, kw_only=True, tag="short"):
    """A text to write, in which the machine looks for points."""

    points: int
    """How many."""
