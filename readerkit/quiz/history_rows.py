"""What a history keeps of each quiz and each try, and how a moment is kept."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct


class SessionRow(Struct, frozen=True):
    """One quiz: which questions in which order, under which rules."""

    id: str
    phase: int
    bank_version: int
    seed: int
    mode: str
    tries: int
    questions: tuple[str, ...]
    started: str
    deadline: str | None = None
    ended: str | None = None
    official: bool = False
    """Whether the bank alone chose what is asked, the seed and the time of an exam."""

    def __post_init__(self) -> None:
        """Refuse moments that are none: they are reckoned with."""
        for moment in filter(None, (self.started, self.deadline, self.ended)):
            _check_moment(moment)


class AnswerRow(Struct, frozen=True):
    """One try at one question."""

    session: str
    position: int
    attempt: int
    """From 1; 0 is never written."""
    question: str
    topic: str
    objective: str
    difficulty: int
    seed: int
    bank_version: int
    answer: str
    """As it was typed; empty where the question was skipped."""
    credit: float
    choices: int | None
    seconds: float
    answered: str

    def __post_init__(self) -> None:
        """Refuse a moment or a credit that is none: they are reckoned with."""
        _check_moment(self.answered)
        if not 0 <= self.credit <= 1:
            raise ValueError(f"credit: got {self.credit}, expected 0 to 1")


class DamagedRow(Struct, frozen=True):
    """A row that says what no row can: left out, and kept as it is."""

    table: str
    values: dict[str, Any]
    why: str


def _check_moment(text: str) -> None:
    """Refuse what is no moment, or none from which a next one can be reckoned."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or not 1970 <= moment.year < 3000:
        raise ValueError(f"moment: got {text}, expected an offset, and a year of now")


def new_id() -> str:
    """Return an id for a session."""
    return uuid.uuid4().hex[:12]


def timestamp(moment: datetime) -> str:
    """Return a moment as it is kept: UTC, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")
