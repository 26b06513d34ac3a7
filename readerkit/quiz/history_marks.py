"""Marks the answers of an export anew: a file is no proof of what they earned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from msgspec.structs import replace

from readerkit.errors import ReaderkitError
from readerkit.quiz.bank import Bank
from readerkit.quiz.history_rows import AnswerRow, HintTaken, SessionRow
from readerkit.quiz.variant import AnswerError

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
