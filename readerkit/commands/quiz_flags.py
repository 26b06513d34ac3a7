"""``readerkit quiz flag | suspend``: what a reader has to say of one question."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from readerkit.commands.options import book_option, json_option
from readerkit.commands.quiz_options import phase_option
from readerkit.terminal.completing import names
from readerkit.terminal.folded import tell
from readerkit.wording.next_command import typed

if TYPE_CHECKING:
    from readerkit.quiz.bank import Bank


@click.command(short_help="Say what is wrong with a question.")
@click.argument("question", metavar="ID", shell_complete=names("quiz-questions"))
@click.argument("words", nargs=-1)
@click.option("--undo", is_flag=True, help="Take everything said of it back.")
@phase_option
@json_option
@book_option
def flag(
    question: str,
    words: tuple[str, ...],
    undo: bool,
    phase: int | None,
    as_json: bool,
    book: Path | None,
) -> None:
    """Flag question ID, with WORDS on what is wrong with it.

    At a question, and after its result, the same is typed as: flag WORDS. What was
    said is listed by quiz list --flagged, and part of quiz export.

    \b
    Example:
        readerkit quiz flag pp-1f1b-row two orders are right
        readerkit quiz flag pp-1f1b-row --undo
    """
    from datetime import UTC, datetime

    from readerkit.app.quiz_banks import open_history
    from readerkit.quiz.history_messages import Flagged
    from readerkit.quiz.history_rows import Flag, timestamp
    from readerkit.wording.meant_name import choose
    from readerkit.wording.numbers import counted

    bank = _bank(book, phase)
    name = choose("question", question, bank.questions)
    if undo and words:
        raise click.UsageError("--undo takes all flags back: expected no words")
    text = "" if undo else _words(name, words)
    history = open_history()
    taken = history.take_back("flag", name) if undo else 0
    if not undo:
        history.flag(Flag(name, text, None, timestamp(datetime.now(UTC))))
    if as_json:
        from readerkit.terminal.quiz_json import say

        said = [each.words for each in history.flags() if each.question == name]
        say(Flagged(name, tuple(said)))
        return
    listed = typed("quiz", "list", str(bank.rules.phase), "--flagged")
    none = f"{name} had no flag"
    gone = f"took back {counted(taken, 'flag')} of {name}" if taken else none
    tell(gone if undo else f"flagged {name}: {listed}")


def _words(name: str, words: tuple[str, ...]) -> str:
    """Return what is said of a question, which a history can keep."""
    from readerkit.render.terminal_safe import visible

    text = " ".join(words).strip()
    if not text:
        raise click.UsageError(f"flag what? {typed('quiz', 'flag', name, 'WORDS')}")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise click.UsageError(f"got '{visible(text)}', expected words in UTF-8")
    return text


@click.command(short_help="Do not ask a question any more, but in exams.")
@click.argument("question", metavar="ID", shell_complete=names("quiz-questions"))
@click.option("--undo", is_flag=True, help="Ask it again.")
@phase_option
@json_option
@book_option
def suspend(
    question: str, undo: bool, phase: int | None, as_json: bool, book: Path | None
) -> None:
    """Leave question ID out of practice and review until it is taken back.

    Exams ask it all the same, and so does --only ID.

    \b
    Example:
        readerkit quiz suspend pp-1f1b-row
        readerkit quiz suspend pp-1f1b-row --undo
    """
    from datetime import UTC, datetime

    from readerkit.app.quiz_banks import open_history
    from readerkit.quiz.history_messages import Suspended
    from readerkit.quiz.history_rows import Suspension, timestamp
    from readerkit.wording.meant_name import choose

    bank = _bank(book, phase)
    name, history = choose("question", question, bank.questions), open_history()
    taken = history.take_back("suspended", name) if undo else 0
    if not undo:
        history.suspend(Suspension(name, timestamp(datetime.now(UTC))))
    if as_json:
        from readerkit.terminal.quiz_json import say

        say(Suspended(name, not undo))
        return
    again = typed("quiz", "suspend", name, "--undo")
    tell(
        (f"{name} is asked again" if taken else f"{name} was not suspended")
        if undo
        else f"{name} is asked in exams alone. To take it back: {again}"
    )


def _bank(book: Path | None, phase: int | None) -> Bank:
    from readerkit.app.quiz_banks import QuizBanks

    banks = QuizBanks.at(book)
    return banks.bank(banks.first_phase() if phase is None else phase)
