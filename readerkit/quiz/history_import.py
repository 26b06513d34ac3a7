"""Adds an exported history to another: all of it, or nothing and every reason why.

Its answers are marked anew: a file is no proof of what they earned.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

from msgspec import MsgspecError, Raw, Struct
from msgspec.json import decode
from msgspec.structs import replace

from readerkit.errors import MAX_SHOWN_FAULTS, ReaderkitError, WrongUseError
from readerkit.quiz.bank import Bank
from readerkit.quiz.history import History
from readerkit.quiz.history_messages import Imported
from readerkit.quiz.history_rows import (
    MIGRATIONS,
    AnswerRow,
    DamagedRow,
    Flag,
    HintTaken,
    SessionRow,
    Suspension,
)
from readerkit.quiz.variant import AnswerError
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
        raise WrongUseError("\n".join([*shown, "nothing was added"]))
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
        raise WrongUseError(
            f"{file}: {error}: expected what {typed('quiz', 'export')} wrote"
        ) from None
    if told.version > len(MIGRATIONS):
        raise WrongUseError(
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


NEAR = 1e-4
"""Between two marks that are one: pages round them."""

FindBank = Callable[[int], Bank | None]
"""From a phase to its bank; None where none is here."""


@dataclass(slots=True)
class Remarked:
    """Answers as the banks that are here mark them."""

    answers: list[AnswerRow] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    """Those whose marks were others in the file: what it said, and what is so."""
    left_out: list[str] = field(default_factory=list)
    """Those that nothing here can mark, and why."""


def mark_anew(
    answers: Iterable[AnswerRow],
    hints: Iterable[HintTaken],
    sessions: Mapping[str, SessionRow],
    find_bank: FindBank,
) -> Remarked:
    """Return answers with the marks that the quiz gives them, and what differed."""
    bank_of, told = cache(find_bank), Remarked()
    taken: dict[tuple[str, int], list[HintTaken]] = {}
    for hint in hints:
        taken.setdefault((hint.session, hint.position), []).append(hint)
    for number, row in enumerate(answers):
        where, session = f"answers[{number}]: {row.question}", sessions[row.session]
        bank = bank_of(session.phase)
        if why := _lacking(row, session, bank):
            told.left_out.append(f"{where}: {why}")
            continue
        assert bank is not None
        marked = _marked(row, session, bank, taken.get((row.session, row.position), ()))
        told.answers.append(marked)
        if abs(marked.credit - row.credit) > NEAR:
            told.differing.append(
                f"{where}: credit: got {row.credit:g}, expected {marked.credit:g}"
            )
        if marked.hinted > row.hinted + NEAR:
            told.differing.append(
                f"{where}: hinted: got {row.hinted:g}, expected {marked.hinted:g}"
            )
    return told


def _lacking(row: AnswerRow, session: SessionRow, bank: Bank | None) -> str:
    """Return why an answer cannot be marked; nothing where it can."""
    if bank is None:
        return f"got phase {session.phase}, expected one of which a bank is here"
    here = bank.rules.version
    if {row.bank_version, session.bank_version} != {here}:
        return f"got an answer to bank version {row.bank_version}, expected {here}"
    if row.question not in bank.questions:
        return "got a question that the bank does not have"
    return ""


def _marked(
    row: AnswerRow, session: SessionRow, bank: Bank, hints: Sequence[HintTaken]
) -> AnswerRow:
    written = bank.questions[row.question]
    variant = bank.variant(row.question, session.seed, session.figures)
    credit = 0.0  # skipped, or not to be read
    if row.answer:
        try:
            credit = variant.grade(row.answer).credit
        except AnswerError:
            credit = 0.0
        except ReaderkitError as error:
            raise ReaderkitError(f"{row.question}: {error}") from None
    before = sum(hint.cost for hint in hints if hint.taken <= row.answered)
    return replace(
        row,
        topic=written.topic,
        objective=written.objective,
        difficulty=written.difficulty,
        seed=session.seed,
        choices=variant.choices,
        credit=row.credit if abs(credit - row.credit) <= NEAR else credit,
        hinted=max(row.hinted, round(before, 4)),
    )
