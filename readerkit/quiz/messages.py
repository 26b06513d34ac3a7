"""What a quiz says: every message between engine, programs, terminal and page.

Each is declared here once, and its JSON is its encoding. A prompt is tagged by the kind
of its question, every other message by its own type; what is told in a language keeps
its phrase (``model.language.Told``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import UNSET, Struct, UnsetType, json, structs

from readerkit.model import addresses
from readerkit.quiz.history_rows import AnswerRow
from readerkit.quiz.lock import ResolvedPlace, Work


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


class FoundPoint(Struct, frozen=True):
    """A point of a text to write: whether the machine found it, and in which words."""

    number: int
    """From 1."""
    says: str
    found: bool
    words: str
    """Those that make it; or those that deny it, where it was not found."""


class TextFinding(Struct, frozen=True, tag_field="type", tag="finding"):
    """What the machine finds in a text: nothing is kept, the reader may correct it."""

    points: tuple[FoundPoint, ...]


class Hint(Struct, frozen=True, tag_field="type", tag="hint"):
    """A hint that was asked for, and is kept."""

    position: int
    id: str
    text: str
    cost: float
    """Part of the points that a right answer earns from now on."""
    next_costs: float | None
    """The same of another one; None where there is none."""


# --- what an answer earned ---


class Remark(Struct, frozen=True):
    """One thing said about an answer, and the lines that bear it out."""

    text: str
    place: CitedLines | None = None


class Solution(Struct, frozen=True):
    """What is told once a question is done: key, reason, where to read."""

    solution: str
    explanation: str
    links: tuple[CitedLines, ...]
    references: tuple[QuotedWork, ...]


class Recorded(Struct, frozen=True, kw_only=True, tag_field="type", tag="result"):
    """An answer is on disk; in an exam no more is said."""

    position: int
    recorded: bool = True
    done: bool


class TryResult(Recorded, frozen=True, kw_only=True):
    """What an answer earned; the same question follows where it is not done."""

    id: str
    right: bool
    credit: float
    points: float
    remarks: tuple[Remark, ...]
    tries_left: int


class DoneResult(TryResult, frozen=True, kw_only=True):
    """What the last answer to a question earned, and its solution."""

    solution: str
    explanation: str
    links: tuple[CitedLines, ...]
    references: tuple[QuotedWork, ...]


class MarkedAnswer(AnswerRow, frozen=True, kw_only=True):
    """An answer of an exam, after its end."""

    prompt: str
    right: bool
    remarks: tuple[Remark, ...]
    """What refutes it, where it is wrong."""
    solution: str
    explanation: str
    links: tuple[CitedLines, ...]
    references: tuple[QuotedWork, ...]


Solved = Solution | DoneResult | MarkedAnswer
"""Whatever tells a solution."""


# --- a whole quiz ---


class Begun(Struct, frozen=True, tag_field="type", tag="session"):
    """A quiz that begins or goes on."""

    id: str
    phase: int
    seed: int | None
    """None in an exam, until it is over."""
    mode: str
    official: bool
    """Whether it is an exam that the definition of done counts."""
    questions: int
    answered: int
    tries: int
    pass_mark: float
    seconds_left: float | None
    protocol: int = 1
    due: int | UnsetType = UNSET
    """Of a review: how many are due today; what is not asked of them waits."""


class Share(Struct, frozen=True):
    """Points of so many questions, with a 95% interval around their share."""

    questions: int
    points: float
    score: float
    interval: tuple[float, float]


class ObjectiveShare(Share, frozen=True):
    """Points of the questions of one objective."""

    title: str
    command: str
    """What asks about it again."""


class NextNote(Struct, frozen=True):
    """A note to read after a quiz."""

    note: str
    title: str
    place: str
    command: str


class Standing(Struct, frozen=True, kw_only=True, tag_field="type", tag="score"):
    """A quiz as it stands: no points of an exam that is not over."""

    complete: bool
    session: str
    seed: int | None
    """None of an exam that goes on."""
    mode: str
    official: bool
    answered: int
    of: int


class Score(Standing, frozen=True, kw_only=True):
    """The points so far, or in the end."""

    questions: int
    points: float
    score: float
    interval: tuple[float, float]
    pass_mark: float
    choice_questions: int
    choice_corrected: float | None
    topics: Mapping[str, Share]
    objectives: Mapping[str, ObjectiveShare]
    free_text: Share | None
    """What was found by the machine in texts to write: it counts in the points."""
    missed: tuple[str, ...]
    """Objectives of which nothing was right, whatever the rest came to."""
    read_next: tuple[NextNote, ...]
    passed: bool | UnsetType = UNSET
    """The verdict; there is none on part of a quiz."""
    marked: tuple[MarkedAnswer, ...] | UnsetType = UNSET
    """Every answer of an exam that is over."""


class Refusal(Struct, frozen=True, tag_field="type", tag="error"):
    """Why a line is no answer: nothing was kept."""

    text: str
    final: bool = False
    """Whether the quiz ends with it."""


class QuestionLeftOut(Struct, frozen=True, tag_field="type", tag="left_out"):
    """A question that cannot be asked here: the quiz goes on without it."""

    id: str
    text: str


class Request(Struct, frozen=True):
    """What a program says on a line."""

    answer: str | int | float | list[object] | dict[str, object] | None = None
    flag: str = ""
    """What is wrong with a question: the current one, or that of ``id``."""
    id: str = ""
    hint: bool = False
    look: str | None = None
    """A text to write: say what is found in it, and keep nothing."""
    skip: bool = False
    stop: bool = False


def encode(message: Struct) -> bytes:
    """Return a message as JSON on one line."""
    return json.encode(message, enc_hook=str)  # of what is told: the English text


def encode_wide(message: Struct) -> str:
    """Return a message as JSON on many lines, for files and people."""
    return json.format(encode(message), indent=1).decode()
