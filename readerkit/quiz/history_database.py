"""The SQLite file of answers itself: made, migrated, written in whole transactions.

A file of a newer version is refused, an older one is copied aside and migrated. What
its rows mean is ``quiz.history``'s to say.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from readerkit.quiz.history_file import (
    WAIT_SECONDS,
    HistoryError,
    sqlite_errors_told,
    unusable,
)
from readerkit.quiz.history_rows import MIGRATIONS
from readerkit.system.private_files import make_database


class HistoryDatabase:
    """An open file of one reader; two processes may write at once, each waits."""

    def __init__(
        self,
        path: Path,
        migrations: Sequence[str] = MIGRATIONS,
        *,
        copied: sqlite3.Connection | None = None,
    ) -> None:
        """Open the file, made or migrated where needed; or a copy of it in memory.

        Raises:
            HistoryError: no such place, no such file, or one of a newer version.
        """
        self.path = path
        self._is_copy = copied is not None
        try:
            if copied is None:
                make_database(path)
            self._connection = copied or sqlite3.connect(
                path, timeout=WAIT_SECONDS, isolation_level=None
            )
            with sqlite_errors_told(path):
                self._log_ahead()
                self._connection.execute("PRAGMA foreign_keys = ON")
                self._connection.execute("PRAGMA synchronous = FULL")
                self._migrate(migrations)
        except OSError as error:
            raise unusable(path, error) from None
        except sqlite3.Error as error:
            raise unusable(path, error) from None

    def _log_ahead(self) -> None:
        """Have changes written to a log first, which is said once in a file's life.

        For the lock that this takes SQLite itself does not wait.
        """
        end = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                is_busy = error.sqlite_errorname.startswith("SQLITE_BUSY")
                if not is_busy or time.monotonic() > end:
                    raise
                time.sleep(0.01)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _migrate(self, migrations: Sequence[str]) -> None:
        version = self._version()
        if version > len(migrations):
            raise HistoryError(
                f"{self.path}: got a history of version {version}, expected at most "
                f"{len(migrations)}: it was written by a newer readerkit; update this "
                "one, or set READERKIT_DATA to another folder"
            )
        if version == len(migrations):
            return
        if version > 0 and not self._is_copy:
            self._back_up(version)
        with self.writing() as connection:
            # Another process may have done it while this one waited.
            for number in range(self._version(), len(migrations)):
                for statement in migrations[number].split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number + 1}")

    def _version(self) -> int:
        [version] = self._connection.execute("PRAGMA user_version").fetchone()
        return int(version)

    def _back_up(self, version: int) -> None:
        aside = self.path.with_name(f"{self.path.name}.v{version}.bak")
        make_database(aside)
        copy = sqlite3.connect(aside)
        try:
            self._connection.backup(copy)
        finally:
            copy.close()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it, or nothing."""
        with sqlite_errors_told(self.path):
            # Taken for writing at once: two that began by reading could never go on.
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                # On a full disk SQLite has rolled back by itself.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def insert(self, table: str, row: Struct, **as_kept: str) -> None:
        """Insert a row in a transaction of its own; some of its values kept as text."""
        values = {**asdict(row), **as_kept}
        names = ", ".join(values)
        slots = ", ".join(f":{name}" for name in values)
        with self.writing() as connection:
            connection.execute(
                f"INSERT INTO {table} ({names}) VALUES ({slots})", values
            )

    def add_row(
        self, connection: sqlite3.Connection, table: str, values: dict[str, Any]
    ) -> bool:
        """Insert a row; return whether it was not there before."""
        slots = ", ".join(f":{name}" for name in values)
        names = ", ".join(values)
        done = connection.execute(
            f"INSERT INTO {table} ({names}) VALUES ({slots}) ON CONFLICT DO NOTHING",
            values,
        )
        return done.rowcount > 0

    def read(self, query: str, *values: object) -> list[dict[str, Any]]:
        """Return the rows that a query finds, by the names of their columns."""
        with sqlite_errors_told(self.path):
            cursor = self._connection.execute(query, values)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]

    def shrink(self) -> None:
        """Leave nothing on disk of what was deleted."""
        with sqlite_errors_told(self.path):
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
