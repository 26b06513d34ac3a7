"""What a quiz says of answers, to programs, the terminal and pages.

Each is declared here once, and its JSON is its encoding: tagged by its own type, a
question (``quiz.prompts``) by its kind. What is told in a language keeps its phrase
(``model.language.Told``).
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, Struct, UnsetType, json

from readerkit.quiz.history_rows import AnswerRow
from readerkit.quiz.prompts import CitedLines, QuotedWork


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
