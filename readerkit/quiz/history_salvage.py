"""What can still be read of a history whose file is damaged: for an export alone."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING

from readerkit.quiz.history import History
from readerkit.quiz.history_file import rows_left

if TYPE_CHECKING:
    from pathlib import Path


def salvaged(path: Path) -> History:
    """Return a history in memory, of the rows that a damaged file still gives."""
    kept = sqlite3.connect(":memory:", isolation_level=None)
    history = History(path, copied=kept)  # makes the tables
    kept.execute("PRAGMA foreign_keys = OFF")  # an answer may outlive its session
    tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
    for table, row in rows_left(path, [name for [name] in kept.execute(tables)]):
        columns = ", ".join(row)
        slots = ", ".join(f":{name}" for name in row)
        insert = f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({slots})"
        with suppress(sqlite3.Error):  # a row that fits no table is lost
            kept.execute(insert, row)
    return history
