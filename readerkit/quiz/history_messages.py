"""What a history says: the quizzes that were taken, what is due, and all of it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from readerkit.quiz.history_rows import AnswerRow, DamagedRow, SessionRow
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
    damaged: tuple[DamagedRow, ...] = ()
    """Rows that cannot be read, as they stand."""
