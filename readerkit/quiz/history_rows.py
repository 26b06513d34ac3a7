"""The tables of a history, version by version, and what a row of each keeps."""

from __future__ import annotations

import math
import uuid
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE session (
        id TEXT PRIMARY KEY,
        phase INTEGER NOT NULL,
        bank_version INTEGER NOT NULL,
        seed INTEGER NOT NULL,
        mode TEXT NOT NULL CHECK (mode IN ('practice', 'exam', 'review')),
        tries INTEGER NOT NULL,
        questions TEXT NOT NULL,
        started TEXT NOT NULL,
        deadline TEXT,
        ended TEXT
    ) STRICT;
    CREATE TABLE answer (
        session TEXT NOT NULL REFERENCES session (id),
        position INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        question TEXT NOT NULL,
        topic TEXT NOT NULL,
        objective TEXT NOT NULL,
        difficulty INTEGER NOT NULL,
        seed INTEGER NOT NULL,
        bank_version INTEGER NOT NULL,
        answer TEXT NOT NULL,
        credit REAL NOT NULL,
        choices INTEGER,
        seconds REAL NOT NULL,
        answered TEXT NOT NULL,
        PRIMARY KEY (session, position, attempt)
    ) STRICT;
    CREATE INDEX answer_by_question ON answer (question, answered);
    """,
    # Nothing tells of an older exam who chose its questions and its seed.
    "ALTER TABLE session ADD COLUMN official INTEGER NOT NULL DEFAULT 0",
    """
    CREATE TABLE flag (
        question TEXT NOT NULL,
        words TEXT NOT NULL,
        seed INTEGER,
        flagged TEXT NOT NULL,
        PRIMARY KEY (question, flagged, words)
    ) STRICT;
    CREATE TABLE suspended (
        question TEXT PRIMARY KEY,
        since TEXT NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE hint (
        session TEXT NOT NULL REFERENCES session (id),
        position INTEGER NOT NULL,
        number INTEGER NOT NULL,
        cost REAL NOT NULL,
        taken TEXT NOT NULL,
        PRIMARY KEY (session, position, number)
    ) STRICT;
    ALTER TABLE answer ADD COLUMN hinted REAL NOT NULL DEFAULT 0
    """,
    "ALTER TABLE session ADD COLUMN figures TEXT NOT NULL DEFAULT '{}'",
)
"""Statements that lead from each version of the file to the next one."""


MODES = ("practice", "exam", "review")


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
    figures: dict[str, int | float] = {}
    """The reader's own, as they were: what was asked about them stays the same."""

    def __post_init__(self) -> None:
        """Refuse what no quiz keeps: it is reckoned with."""
        if self.mode not in MODES:
            raise ValueError(f"mode: got '{self.mode}', expected {' or '.join(MODES)}")
        _check_least(self, phase=0, tries=1, bank_version=1)
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
    hinted: float = 0.0
    """Part of the points that the hints before it cost."""

    def __post_init__(self) -> None:
        """Refuse what no quiz keeps: it is reckoned with."""
        _check_moment(self.answered)
        _check_least(self, position=0, attempt=1, difficulty=1, bank_version=1)
        _check_share(self, "credit")
        _check_share(self, "hinted")
        if not 0 <= self.seconds < math.inf:
            raise ValueError(f"seconds: got {self.seconds}, expected 0 or more")
        if self.choices is not None and self.choices < 1:
            raise ValueError(f"choices: got {self.choices}, expected 1 or more")


class HintTaken(Struct, frozen=True):
    """A hint that a reader took, whatever became of the question."""

    session: str
    position: int
    number: int
    """From 1."""
    cost: float
    """Part of the points."""
    taken: str

    def __post_init__(self) -> None:
        """Refuse what no quiz keeps: it is reckoned with."""
        _check_moment(self.taken)
        _check_least(self, position=0, number=1)
        _check_share(self, "cost")


class Flag(Struct, frozen=True):
    """What a reader has to say of a question."""

    question: str
    words: str
    seed: int | None
    """Of the variant that was seen; None where none was on the screen."""
    flagged: str

    def __post_init__(self) -> None:
        """Refuse a moment that is none."""
        _check_moment(self.flagged)


class Suspension(Struct, frozen=True):
    """A question that is asked in exams alone."""

    question: str
    since: str

    def __post_init__(self) -> None:
        """Refuse a moment that is none."""
        _check_moment(self.since)


class DamagedRow(Struct, frozen=True):
    """A row that says what no row can: left out, and kept as it is."""

    table: str
    values: dict[str, Any]
    why: str


def _check_least(row: Struct, **least: int) -> None:
    """Refuse numbers below the least that they can be."""
    for name, smallest in least.items():
        if (value := getattr(row, name)) < smallest:
            raise ValueError(f"{name}: got {value}, expected {smallest} or more")


def _check_share(row: Struct, name: str) -> None:
    """Refuse what is no part of a whole."""
    if not 0 <= (value := getattr(row, name)) <= 1:
        raise ValueError(f"{name}: got {value}, expected 0 to 1")


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
