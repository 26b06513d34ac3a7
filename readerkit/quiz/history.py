"""What was asked and answered, in one SQLite file that outlives every kill.

Each answer is one transaction, committed before anything is said about it. Two
processes may write at once: each waits for the other's transaction.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, convert
from msgspec.structs import asdict

from readerkit.quiz.history_database import HistoryDatabase
from readerkit.quiz.history_file import HistoryError, copied_from, is_there, rows_left
from readerkit.quiz.history_rows import (
    MIGRATIONS,
    AnswerRow,
    DamagedRow,
    Flag,
    HintTaken,
    SessionRow,
    Suspension,
)

if TYPE_CHECKING:
    from pathlib import Path

Row = TypeVar("Row")


class History(HistoryDatabase):
    """The file of one reader."""

    def __init__(
        self,
        path: Path,
        migrations: Sequence[str] = MIGRATIONS,
        *,
        copied: sqlite3.Connection | None = None,
    ) -> None:
        """Open the file as ``HistoryDatabase`` does."""
        super().__init__(path, migrations, copied=copied)
        self._damaged: dict[str, DamagedRow] = {}

    @classmethod
    def reading(cls, path: Path) -> History:
        """Return the history to be read: nothing is made, or has to be writable.

        Raises:
            HistoryError: as above.
        """
        if is_there(path) and all(
            os.access(each, os.W_OK) for each in (path, path.parent)
        ):
            try:
                return cls(path)
            except HistoryError:
                # A full disk refuses what SQLite writes to read: a copy needs none.
                with suppress(HistoryError):
                    return cls(path, copied=copied_from(path))
                raise
        return cls(path, copied=copied_from(path))

    # --- writing ---

    def start(self, session: SessionRow) -> None:
        """Keep a session that begins."""
        questions, figures = map(json.dumps, (session.questions, session.figures))
        self.insert("session", session, questions=questions, figures=figures)

    def record(self, answer: AnswerRow) -> bool:
        """Commit one answer; False where this try is kept already.

        When the call returns, the answer is on disk.
        """
        try:
            self.insert("answer", answer)
        except sqlite3.IntegrityError:
            return False
        return True

    def add(self, rows: Mapping[str, Sequence[Struct]]) -> dict[str, int]:
        """Add what another history kept, in one transaction; return how many were new.

        Exams among it do not count: nothing tells what was seen there before.
        """
        with self.writing() as connection:
            new: dict[str, int] = {}
            for table, each in rows.items():
                added = [
                    row for row in each if self.add_row(connection, table, _kept(row))
                ]
                new[table] = len(added)
                self._leave_to_practice(connection, added)
            return new

    def _leave_to_practice(
        self, connection: sqlite3.Connection, added: Sequence[Struct]
    ) -> None:
        """Have exams count no more to which answers were added from elsewhere."""
        touched = {row.session for row in added if isinstance(row, AnswerRow)}
        connection.executemany(
            "UPDATE session SET official = 0 WHERE id = ?", [(s,) for s in touched]
        )

    def flag(self, flag: Flag) -> None:
        """Keep what a reader has to say of a question."""
        with self.writing() as connection:
            self.add_row(connection, "flag", asdict(flag))

    def hint(self, hint: HintTaken) -> None:
        """Keep that a hint was taken."""
        with self.writing() as connection:
            self.add_row(connection, "hint", asdict(hint))

    def suspend(self, suspension: Suspension) -> bool:
        """Have a question not asked any more; return whether it was until now."""
        with self.writing() as connection:
            return self.add_row(connection, "suspended", asdict(suspension))

    def take_back(self, table: str, question: str) -> int:
        """Remove what was said of a question: ``flag`` or ``suspended``."""
        with self.writing() as connection:
            done = connection.execute(
                f"DELETE FROM {table} WHERE question = ?", (question,)
            )
            return done.rowcount

    def ask_less(self, session: SessionRow) -> None:
        """Keep that a session asks less than it began with, and counts no more."""
        with self.writing() as connection:
            connection.execute(
                "UPDATE session SET questions = ?, official = 0 WHERE id = ?",
                (json.dumps(session.questions), session.id),
            )

    def end(self, session: str, moment: str) -> None:
        """Mark a session as over."""
        with self.writing() as connection:
            connection.execute(
                "UPDATE session SET ended = ? WHERE id = ? AND ended IS NULL",
                (moment, session),
            )

    def undo(self, now: str) -> AnswerRow | None:
        """Remove the latest answer, and open its quiz again; None where there is none.

        What is dated after ``now``, by a clock that was wrong, is not the latest.

        Raises:
            HistoryError: an answer of an exam, which has one try.
        """
        rows = self.answers()
        latest = max(
            rows, key=lambda row: (row.answered <= now, row.answered), default=None
        )
        if latest is None:
            return None
        place = (latest.session, latest.position)
        last = max(
            (row for row in rows if (row.session, row.position) == place),
            key=lambda row: row.attempt,
        )
        session = self.session(last.session)
        if session and session.mode == "exam":
            raise HistoryError(
                "the last answer is of an exam: got one that has one try, expected an "
                "answer of practice"
            )
        key = (last.session, last.position, last.attempt)
        with self.writing() as connection:
            connection.execute(
                "DELETE FROM answer WHERE (session, position, attempt) = (?, ?, ?)", key
            )
            connection.execute(
                "UPDATE session SET ended = NULL WHERE id = ?", (last.session,)
            )
        return last

    def delete(self) -> int:
        """Remove everything, flags too; return how many answers there were."""
        with self.writing() as connection:
            connection.execute("DELETE FROM answer")
            [count] = connection.execute("SELECT changes()").fetchone()
            for table in ("hint", "session", "flag", "suspended"):
                connection.execute(f"DELETE FROM {table}")
        self.shrink()
        return int(count)

    # --- reading ---

    def session(self, name: str) -> SessionRow | None:
        """Return a session by its id."""
        return next(iter(self._sessions("WHERE id = ?", name)), None)

    def sessions(self) -> list[SessionRow]:
        """Return every session, the oldest first."""
        return self._sessions("ORDER BY started, id")

    def unfinished(self, phase: int, now: str, *, mode: str = "") -> SessionRow | None:
        """Return the latest session of a phase that was left with something kept.

        What began after ``now``, by a clock that was wrong, comes last. An exam needs
        nothing kept until its time is over: its questions were seen.
        """
        kept = " UNION ALL ".join(
            f"SELECT 1 FROM {table} WHERE session = session.id"
            for table in ("answer", "hint")
        )
        where = (
            "WHERE phase = ? AND ? IN ('', mode) AND ended IS NULL "
            f"AND (EXISTS ({kept})"
            " OR (mode = 'exam' AND (deadline IS NULL OR deadline > ?)))"
            " ORDER BY started > ?, started DESC, id DESC LIMIT 1"
        )
        return next(iter(self._sessions(where, phase, mode, now, now)), None)

    def seeds(self) -> set[int]:
        """Return every seed of which variants were looked at."""
        return {row["seed"] for row in self.read("SELECT DISTINCT seed FROM session")}

    def is_official(self, row: SessionRow) -> bool:
        """Tell whether an exam counts: nobody saw its variants in another session."""
        if not row.official:
            return False
        where = "WHERE id != ? AND seed = ? AND bank_version = ? AND started <= ?"
        asked = (row.id, row.seed, row.bank_version, row.ended or "9")
        others = self._sessions(where, *asked)
        return not any({*row.questions} & {*other.questions} for other in others)

    def answers(self, session: str = "") -> list[AnswerRow]:
        """Return the answers of a session, or all of them, in their order.

        Within a session places and tries are the order, whatever a clock said.
        """
        of, first = (
            (" WHERE session = ?", "") if session else ("", "answered, session,")
        )
        query = f"SELECT * FROM answer{of} ORDER BY {first} position, attempt"
        rows = self.read(query, *([session] if session else ()))
        return self._whole("answer", rows, lambda row: convert(row, AnswerRow))

    def flags(self) -> list[Flag]:
        """Return what was said of questions, the oldest first."""
        rows = self.read("SELECT * FROM flag ORDER BY flagged, question")
        return self._whole("flag", rows, lambda row: convert(row, Flag))

    def suspensions(self) -> list[Suspension]:
        """Return the questions that are asked in exams alone."""
        rows = self.read("SELECT * FROM suspended ORDER BY since, question")
        return self._whole("suspended", rows, lambda row: convert(row, Suspension))

    def hints(self, session: str = "") -> list[HintTaken]:
        """Return the hints that were taken, of a session or of all."""
        of = " WHERE session = ?" if session else ""
        query = f"SELECT * FROM hint{of} ORDER BY session, position, number"
        rows = self.read(query, *([session] if session else ()))
        return self._whole("hint", rows, lambda row: convert(row, HintTaken))

    def damaged(self) -> list[DamagedRow]:
        """Return the rows that were met and cannot be read, as they stand."""
        return [*self._damaged.values()]

    def _whole(
        self,
        table: str,
        rows: list[dict[str, Any]],
        read: Callable[[dict[str, Any]], Row],
    ) -> list[Row]:
        """Return the rows that can be read; the others are left where they are."""
        found = []
        for row in rows:
            try:
                found.append(read(row))
            except (ValueError, TypeError) as error:  # msgspec's are ValueErrors
                first = str(error).splitlines()[0]
                damaged = DamagedRow(table, row, first)
                self._damaged[f"{table} {[*row.values()][:3]}"] = damaged
        return found

    def open_exams(self, now: str) -> list[SessionRow]:
        """Return the exams that go on at a moment, or can be resumed."""
        return [
            row
            for row in self.sessions()
            if row.mode == "exam"
            and row.ended is None
            and (row.deadline is None or row.deadline > now)
        ]

    def told_answers(self, now: str) -> list[AnswerRow]:
        """Return the answers whose marks may be known at a moment, in their order.

        An exam that can still be resumed stays out: its points wait for its end.
        """
        hidden = {row.id for row in self.open_exams(now)}
        return [each for each in self.answers() if each.session not in hidden]

    def _sessions(self, where: str, *values: object) -> list[SessionRow]:
        rows = self.read(f"SELECT * FROM session {where}", *values)
        return self._whole("session", rows, _session)


def _kept(row: Struct) -> dict[str, Any]:
    """Return the values of a row that was written elsewhere."""
    if isinstance(row, SessionRow):
        questions, figures = map(json.dumps, (row.questions, row.figures))
        as_text = {"questions": questions, "figures": figures}
        return {**asdict(row), **as_text, "official": 0}
    return asdict(row)


def _session(row: dict[str, Any]) -> SessionRow:
    told = {"official": bool(row["official"])}
    told |= {name: json.loads(row[name]) for name in ("questions", "figures")}
    return convert({**row, **told}, SessionRow)


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
