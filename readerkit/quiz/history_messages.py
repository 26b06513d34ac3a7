"""What a history says: the quizzes that were taken, what is due, and all of it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from readerkit.quiz.history_rows import (
    AnswerRow,
    DamagedRow,
    Flag,
    HintTaken,
    SessionRow,
    Suspension,
)
from readerkit.quiz.messages import Share


class QuizTaken(Struct, frozen=True):
    """A quiz of the history."""

    id: str
    phase: int
    mode: str
    started: str
    ended: str | None
    questions: int
    score: float
    official: bool


class DueQuestion(Struct, frozen=True):
    """When a question is due again."""

    question: str
    due: str
    due_now: bool
    missed: bool
    """Whether the last outcome was a mistake."""


class ListedQuestion(Struct, frozen=True):
    """A question of a bank, without its key."""

    id: str
    kind: str
    topic: str
    objective: str
    difficulty: int
    prompt: str
    """As it is written, with the names of its parameters."""
    due: str
    """When it comes back; empty where it was never answered."""
    due_now: bool
    """Not where it is suspended."""
    suspended: bool
    flags: tuple[str, ...]
    """What the reader said of it."""
    asks: str
    """What it wants beyond a key: explain, decide, diagnose."""


class HistorySummary(Struct, frozen=True):
    """What was taken, the state of each topic, and what comes back."""

    quizzes: tuple[QuizTaken, ...]
    topics: Mapping[str, Share]
    due: tuple[DueQuestion, ...]


class HistoryExport(Struct, frozen=True):
    """Everything that is kept."""

    version: int
    sessions: tuple[SessionRow, ...]
    answers: tuple[AnswerRow, ...]
    flags: tuple[Flag, ...] = ()
    suspended: tuple[Suspension, ...] = ()
    hints: tuple[HintTaken, ...] = ()
    damaged: tuple[DamagedRow, ...] = ()
    """Rows that cannot be read, as they stand."""


class Imported(Struct, frozen=True, tag_field="type", tag="imported"):
    """How much of an export was new here."""

    quizzes: int
    answers: int
    flags: int
    suspended: int
    already: int
    """Rows that were here before, or stand in the file twice."""
    left_out: int
    """Damaged rows, and answers of damaged quizzes or that nothing here can mark."""
    differing: tuple[str, ...] = ()
    """Answers whose marks in the file are not what the quiz gives them."""
    unmarked: tuple[str, ...] = ()
    """Answers that nothing here can mark, each with the reason."""


class Undone(Struct, frozen=True, tag_field="type", tag="undone"):
    """The answer that was taken back."""

    question: str
    answer: str
    command: str
    """What asks it again; empty where nothing of its quiz is left."""


class Deleted(Struct, frozen=True, tag_field="type", tag="deleted"):
    """How much was forgotten."""

    answers: int


class Exported(Struct, frozen=True, tag_field="type", tag="exported"):
    """What was written."""

    file: str


class Flagged(Struct, frozen=True, tag_field="type", tag="flagged"):
    """What is said of a question now."""

    id: str
    words: tuple[str, ...]


class Suspended(Struct, frozen=True, tag_field="type", tag="suspended"):
    """Whether a question is asked in exams alone."""

    id: str
    suspended: bool


class BankBegun(Struct, frozen=True, tag_field="type", tag="begun"):
    """A bank that was written to begin with."""

    phase: int
    files: tuple[str, ...]
