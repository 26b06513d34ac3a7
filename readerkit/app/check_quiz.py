"""A bank of questions held: its keys as locked, its Spanish of its English."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import Struct

from readerkit.app.library import warn
from readerkit.app.own_figures import own_names
from readerkit.app.quiz_keys import resolve_keys
from readerkit.content.translations import (
    TranslatedBank,
    TranslatedQuestion,
    english_stamp,
)
from readerkit.errors import ContentError, ContentFault, LockError
from readerkit.model.language import SPANISH
from readerkit.quiz.lockfile import QuizLock, differences
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import counted

if TYPE_CHECKING:
    from readerkit.app.library import Library
    from readerkit.app.quiz_banks import QuizBanks
    from readerkit.quiz.bank import Bank
    from readerkit.quiz.lint import Known


class BankSummary(Struct, frozen=True):
    """How much a bank holds in which every key holds."""

    phase: int
    questions: int
    objectives: int
    types: dict[str, int]
    places: int
    facts: int
    spanish: int
    """Of the questions, how many are translated."""


def lint_phase(
    banks: QuizBanks, library: Library, phase: int, *, update: bool = False
) -> BankSummary:
    """Return the counts of a bank in which every key holds.

    Raises:
        ContentError: every fault of the bank.
        LockError: keys that are not what the lock says.
    """
    from readerkit.quiz.lint import lint_bank
    from readerkit.upstreams.store import write_atomically

    bank = banks.bank(phase, with_lock=False)
    locked = _readable_lock(banks, phase)
    now, faults = resolve_keys(bank, library, locked, run=update)
    if faults:
        raise ContentError(faults)
    if update:
        write_atomically(banks.lock_path(phase), now.to_text().encode())
    bank = replace(bank, lock=now)
    _check_titles(bank, banks.titles(phase))
    spanish = _translated(bank, banks.translations(phase))
    faults = lint_bank(bank, known_names(library))
    if faults:
        raise ContentError(faults)
    if not update and (changed := differences(locked, now)):
        rows = "\n".join(f"  {line}" for line in changed)
        keys = counted(len(changed), "key is", "keys are")
        raise LockError(
            f"phase {phase}: {keys} not what the lock says:\n{rows}\n"
            "Look at each, then run: "
            + typed("quiz", "lint", str(phase), "--update-lock")
        )
    return BankSummary(
        phase,
        len(bank.questions),
        len(bank.objectives),
        Counter(question.type for question in bank.questions.values()),
        len(now.places),
        len(now.facts),
        spanish,
    )


def relock_places(banks: QuizBanks, library: Library, phase: int) -> bool:
    """Write where the lines of a bank stand now; nothing where a key fails.

    Nothing is run: what a run has shown is as it was.
    """
    from readerkit.upstreams.store import write_atomically

    bank, locked = banks.bank(phase, with_lock=False), _readable_lock(banks, phase)
    now, faults = resolve_keys(bank, library, locked)
    if faults:
        return False
    path, text = banks.lock_path(phase), now.to_text().encode()
    if path.is_file() and path.read_bytes() != text:
        write_atomically(path, text)
        return True
    return False


def _check_titles(bank: Bank, told: TranslatedBank) -> None:
    """Warn of a title in Spanish that is of another English.

    Raises:
        ContentError: a title of no objective, a name of no topic.
    """
    where = bank.file.replace(".yaml", f".{SPANISH}.yaml")
    faults = [
        ContentFault(
            where, 1, 1, f"no {what}", f"'{name}'", f"one of {', '.join(known)}"
        )
        for what, names, known in (
            ("objective", told.objectives, bank.objectives),
            ("topic", told.topics, bank.topics()),
        )
        for name in sorted(set(names) - set(known))
    ]
    if faults:
        raise ContentError(faults)
    written = {"bank": (bank.rules, told.bank)} | {
        name: (bank.objectives[name], title) for name, title in told.objectives.items()
    }
    for name, (english, spanish) in written.items():
        stamp = english_stamp(english, ["title"])
        if spanish.title and spanish.of != stamp:
            warn(
                f"{where}: {name} is of another English: translate it anew, of: {stamp}"
            )


def _translated(bank: Bank, told: Mapping[str, TranslatedQuestion]) -> int:
    """Return how many questions have their Spanish; warn of that of other English.

    Raises:
        ContentError: a translation of no question, or with other texts or formulas.
    """
    where, faults = bank.file.replace("bank.yaml", "*.es.yaml"), []
    for name in sorted(told.keys() - bank.questions.keys()):
        faults.append(ContentFault(where, 1, 1, f"no question '{name}'"))
    fresh = 0
    for name in told.keys() & bank.questions.keys():
        question, spanish = bank.questions[name], told[name]
        if not spanish.of or spanish.is_outdated(question.stamp):
            warn(
                f"{where}: {name} is of another English, and asked in English: "
                f"translate it anew, of: {question.stamp}"
            )
            continue
        english = TranslatedQuestion(
            prompt=question.prompt,
            explanation=question.explanation,
            rest=question.rest,
        )
        faults += [question.fault(f"in Spanish: {e}") for e in spanish.faults(english)]
        fresh += 1
    if faults:
        raise ContentError(faults)
    return fresh


def _readable_lock(banks: QuizBanks, phase: int) -> QuizLock:
    """Return the lock of a phase; an empty one where it has to be made anew."""
    try:
        return banks.lock(phase)
    except ContentError:
        return QuizLock()


def known_names(library: Library) -> Known:
    """Return the names of a book that questions may link to."""
    from readerkit.quiz.lint import Known

    book = library.book
    return Known(
        frozenset(book.annotations),
        frozenset(book.concepts),
        {key: frozenset(work.sections) for key, work in book.references.items()},
        own_names(),
    )
