"""The tables of a history, version by version."""

from __future__ import annotations

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
