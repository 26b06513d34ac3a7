"""Adds an exported history to another: all of it, or nothing and every reason why."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import MsgspecError, Raw, Struct
from msgspec.json import decode

from readerkit.errors import MAX_SHOWN_FAULTS, ReaderkitError
from readerkit.quiz.history import History
from readerkit.quiz.history_marks import FindBank, mark_anew
from readerkit.quiz.history_messages import Imported
from readerkit.quiz.history_rows import (
    AnswerRow,
    DamagedRow,
    Flag,
    HintTaken,
    SessionRow,
    Suspension,
)
from readerkit.quiz.history_schema import MIGRATIONS
from readerkit.wording.next_command import typed

Row = TypeVar("Row", bound=Struct)


class _Tables(Struct, frozen=True):
    """An export whose rows are not read yet, so that each fault has its row."""

    version: int
    sessions: tuple[Raw, ...]
    answers: tuple[Raw, ...]
    flags: tuple[Raw, ...] = ()
    suspended: tuple[Raw, ...] = ()
    hints: tuple[Raw, ...] = ()
    damaged: tuple[DamagedRow, ...] = ()


def add_export(
    data: bytes, file: str, history: History, find_bank: FindBank
) -> Imported:
    """Add what ``quiz export`` wrote to a history, in one transaction.

    Its answers are marked anew, and left out where no bank can. ``file`` is what it is
    called in messages.

    Raises:
        ReaderkitError: each row that no quiz keeps; nothing was added.
    """
    told = _tables(data, file)
    faults: list[str] = []
    sessions = _rows("sessions", told.sessions, SessionRow, faults)
    answers = _rows("answers", told.answers, AnswerRow, faults)
    flags = _rows("flags", told.flags, Flag, faults)
    suspended = _rows("suspended", told.suspended, Suspension, faults)
    hints = _rows("hints", told.hints, HintTaken, faults)
    lost = {row.values.get("id") for row in told.damaged if row.table == "session"}
    if not faults:
        asked = {each.id: each.questions for each in (*history.sessions(), *sessions)}
        faults += _astray("answers", answers, asked, lost)
        faults += _astray("hints", hints, asked, lost)
    if faults:
        shown = [f"{file}: {fault}" for fault in faults[:MAX_SHOWN_FAULTS]]
        raise ReaderkitError("\n".join([*shown, "nothing was added"]))
    named = {each.id: each for each in (*sessions, *history.sessions())}
    whole = [each for each in answers if each.session not in lost]
    told_hints = [each for each in hints if each.session not in lost]
    told_anew = mark_anew(whole, told_hints, named, find_bank)
    kept = told_anew.answers
    empty = {each.session for each in whole} - {each.session for each in kept}
    rows: dict[str, Sequence[Struct]] = {
        "session": [each for each in sessions if each.id not in empty],
        "answer": kept,
        "flag": flags,
        "suspended": suspended,
        "hint": [each for each in told_hints if each.session not in empty],
    }
    new = history.add(rows)
    already = sum(map(len, rows.values())) - sum(new.values())
    left_out = len(told.damaged) + len(answers) - len(kept)
    return Imported(
        quizzes=new["session"],
        answers=new["answer"],
        flags=new["flag"],
        suspended=new["suspended"],
        already=already,
        left_out=left_out,
        differing=tuple(told_anew.differing),
        unmarked=tuple(told_anew.left_out),
    )


def _tables(data: bytes, file: str) -> _Tables:
    try:
        told = decode(data, type=_Tables)
    except (MsgspecError, RecursionError, UnicodeError) as error:
        raise ReaderkitError(
            f"{file}: {error}: expected what {typed('quiz', 'export')} wrote"
        ) from None
    if told.version > len(MIGRATIONS):
        raise ReaderkitError(
            f"{file}: got a history of version {told.version}, expected at most "
            f"{len(MIGRATIONS)}: update this readerkit"
        )
    return told


def _rows(
    table: str, written: Iterable[Raw], kind: type[Row], faults: list[str]
) -> list[Row]:
    """Return the rows of a table; what is wrong with others is added to the faults."""
    found = []
    for number, raw in enumerate(written):
        try:
            row = decode(raw, type=kind)
        except (MsgspecError, ValueError, OverflowError, RecursionError) as error:
            faults.append(f"{table}[{number}]: {error}")
            continue
        # SQLite's numbers have 64 bits, JSON's any.
        wide = [
            f"{table}[{number}]: {name}: got {value}, expected 64 bits"
            for name in kind.__struct_fields__
            if isinstance(value := getattr(row, name), int) and abs(value) >= 2**63
        ]
        faults += wide
        found.append(row)
    return found


def _astray(
    table: str,
    rows: Iterable[AnswerRow | HintTaken],
    asked: Mapping[str, Sequence[str]],
    lost: Container[object],
) -> Iterator[str]:
    """Yield what is wrong with rows to what their quiz did not ask there.

    Those of a quiz that is lost are left out.
    """
    for number, row in enumerate(rows):
        where, names = f"{table}[{number}]", asked.get(row.session)
        if row.session in lost:
            continue
        if names is None:
            yield f"{where}: got session '{row.session}', expected one of a quiz"
        elif row.position >= len(names):
            yield (
                f"{where}: position: got {row.position}, expected 0 to "
                f"{len(names) - 1}: its quiz has {len(names)}"
            )
        elif isinstance(row, AnswerRow) and names[row.position] != row.question:
            yield (
                f"{where}: question: got '{row.question}', expected "
                f"'{names[row.position]}', which its quiz asks there"
            )
