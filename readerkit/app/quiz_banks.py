"""Opens what a quiz works on: the bank of a phase, and the history of answers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import click

from readerkit.app.folders import cache_folder, data_folder, read_at_most, shipped_book
from readerkit.app.parse_cache import Memo
from readerkit.content.kind import Document, E, Kind
from readerkit.content.translations import (
    BANK_TRANSLATION,
    QUESTION_TRANSLATION,
    TranslatedBank,
    TranslatedQuestion,
    TranslatedTitle,
)
from readerkit.errors import ContentError, ReaderkitError, WrongUseError
from readerkit.estimate.functions import FUNCTIONS
from readerkit.model.language import SPANISH, Told
from readerkit.quiz.bank import BANK, BANK_FILE, Bank, parse_bank
from readerkit.quiz.history import History
from readerkit.quiz.history_rows import timestamp
from readerkit.quiz.kinds import QUESTIONS, Question
from readerkit.quiz.lockfile import QuizLock
from readerkit.quiz.session import Session
from readerkit.system.garbage import uncollected
from readerkit.wording.fold import fitting
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import counted

LOCK_FILE = "keys.lock"


@dataclass(frozen=True, slots=True)
class QuizBanks:
    """Where the banks of a book are."""

    root: Path
    """The book's folder."""

    @classmethod
    def at(cls, book: Path | None) -> QuizBanks:
        """Return the banks of a book, or of the one that ships."""
        return cls((book or shipped_book()).absolute())

    def folder(self, phase: int) -> Path:
        """Return the folder of a phase's bank."""
        return self.root / "quizzes" / str(phase)

    def lock_path(self, phase: int) -> Path:
        """Return the place of a bank's lock."""
        return self.folder(phase) / LOCK_FILE

    def phases(self) -> list[int]:
        """Return the phases that have a bank."""
        found = self.root.glob(f"quizzes/*/{BANK_FILE}")
        return sorted(int(p.parent.name) for p in found if p.parent.name.isdigit())

    def first_phase(self) -> int:
        """Return the phase that is meant where none is named.

        Raises:
            ReaderkitError: the book has no quiz.
        """
        if phases := self.phases():
            return phases[0]
        begin = typed("quiz", "init", "PHASE")
        raise ReaderkitError(f"this book has no quiz; to begin one:\n    {begin}")

    def lock(self, phase: int) -> QuizLock:
        """Return the lock of a bank; an empty one where there is none yet."""
        path = self.lock_path(phase)
        if not path.exists():
            return QuizLock()
        text = read_at_most(path, self.root).decode("utf-8", "replace")
        return QuizLock.parse(text, self._shown(path))

    @uncollected()
    def bank(
        self,
        phase: int,
        *,
        with_lock: bool = True,
        language: str = "en",
        in_both: bool = False,
    ) -> Bank:
        """Return the bank of a phase, with the keys of its lock.

        With ``in_both`` its texts are said in every language, one beside the other.

        Raises:
            ContentError: every fault of every file.
            ReaderkitError: no bank of this phase.
        """
        folder = self.folder(phase)
        if not (folder / BANK_FILE).is_file():
            known = ", ".join(typed("quiz", str(each)) for each in self.phases())
            raise WrongUseError(
                f"no quiz of phase {phase} in this book: got {phase}, expected "
                + (known or "a book with a bank of questions in quizzes/PHASE")
            )
        memo = Memo(cache_folder(), folder)
        head = self._document(folder / BANK_FILE, BANK, memo)
        topics = {
            path.stem: self._document(path, QUESTIONS, memo)
            for path in sorted(folder.glob("*.yaml"))
            if path.name != BANK_FILE and "." not in path.stem
        }
        lock = self.lock(phase) if with_lock else QuizLock()
        bank = parse_bank(head, topics, FUNCTIONS, lock)
        if lock.living:
            bank = replace(bank, lock=self._placed_now(bank))
        if in_both or language == SPANISH:
            told = self.translations(phase, memo)
            bank = bank.in_spanish(told, self.titles(phase, memo), in_both=in_both)
        memo.save()
        return bank

    def translations(
        self, phase: int, memo: Memo | None = None
    ) -> dict[str, TranslatedQuestion]:
        """Return the Spanish of questions, by their ids.

        Raises:
            ContentError: every fault of a sidecar.
        """
        folder, found = self.folder(phase), dict[str, TranslatedQuestion]()
        memo = memo or Memo(cache_folder(), folder)
        for path in sorted(folder.glob(f"*.{SPANISH}.yaml")):
            if path == self._titles_path(phase):
                continue
            document = self._document(path, QUESTION_TRANSLATION, memo)
            if document.faults:
                raise ContentError(document.faults)
            found |= {str(key): told for (key, *_), told in document.entries.items()}
        return found

    def titles(self, phase: int, memo: Memo | None = None) -> TranslatedBank:
        """Return the Spanish of the titles in a bank's own file; empty without any.

        Raises:
            ContentError: every fault of the sidecar.
        """
        path = self._titles_path(phase)
        if not path.is_file():
            return TranslatedBank(TranslatedTitle())
        memo = memo or Memo(cache_folder(), self.folder(phase))
        document = self._document(path, BANK_TRANSLATION, memo)
        if document.faults:
            raise ContentError(document.faults)
        return document.value

    def _placed_now(self, bank: Bank) -> QuizLock:
        """Return its lock with the lines of today.

        Raises:
            ContentError: each question whose code is nowhere.
        """
        # Syntax trees, that a bank on pinned code does without.
        from readerkit.app.library import open_library
        from readerkit.app.quiz_keys import placed_now

        return placed_now(bank, open_library(self.root, quiet=True))

    def _titles_path(self, phase: int) -> Path:
        return (self.folder(phase) / BANK_FILE).with_suffix(f".{SPANISH}.yaml")

    def questions(self) -> Iterator[Question]:
        """Yield the questions of every phase."""
        for phase in self.phases():
            yield from self.bank(phase, with_lock=False).questions.values()

    def _document(self, path: Path, kind: Kind[E], memo: Memo) -> Document[E]:
        data = read_at_most(path, self.root)
        return memo.parsed(data, self._shown(path), kind)

    def _shown(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


HISTORY = "quiz.sqlite3"
"""The file of the reader's answers."""


def open_history(*, to_read: bool = False) -> History:
    """Return the reader's history; made where it is not there, but to be read alone."""
    path = data_folder() / HISTORY
    return History.reading(path) if to_read else History(path)


def refuse_in_exam(what: str, question: str = "", phase: int | None = None) -> None:
    """Raise where an exam goes on whose keys would be shown.

    Raises:
        ReaderkitError: an exam of the phase, or one that asks the question, is open.
    """
    history = open_history(to_read=True)
    for row in history.open_exams(timestamp(datetime.now(UTC))):
        if question in row.questions if question else row.phase == phase:
            resume = typed("quiz", str(row.phase), "--exam", "--resume")
            end = datetime.fromisoformat(row.deadline) if row.deadline else None
            until = f" until {end:%Y-%m-%d %H:%M} UTC" if end else ""
            raise ReaderkitError(
                f"{what} would show keys of an exam that goes on{until}: end it first, "
                f"with {resume}"
            )


def damage(history: History) -> str:
    """Return a line on the rows that were left out; none where all could be read."""
    rows = history.damaged()
    if not rows:
        return ""
    first = rows[0]
    which = first.values.get("session") or first.values.get("id")
    return (
        f"{history.path}: {counted(len(rows), 'row')} left out, as unreadable; first: "
        f"{first.table} of {which}: {first.why}; {typed('quiz', 'export')} has all"
    )


def tell_damage(history: History) -> None:
    """Say on stderr which rows were left out."""
    if lacking := damage(history):
        click.echo(fitting(f"readerkit: {lacking}", sys.stderr), err=True)


def kept(session: Session) -> Told:
    """Return how much of an unfinished quiz is kept, and how to resume it."""
    row = session.row
    if not session.can_go_on:
        return Told("Nothing was answered, so there is nothing to go on with.")
    exam = ("--exam",) if session.is_exam else ()
    return Told(
        "{done} of {of} answered, and kept. To go on: {command}",
        done=session.answered,
        of=len(row.questions),
        command=typed("quiz", str(row.phase), *exam, "--resume"),
    )
