"""``readerkit quiz export``: the history, or the bank for another program."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from readerkit.commands.options import (
    WholeRange,
    book_option,
    json_option,
    shipped_language_option,
    written_file,
)
from readerkit.commands.quiz_options import filter_options
from readerkit.terminal.completing import names
from readerkit.terminal.folded import tell

if TYPE_CHECKING:
    from readerkit.quiz.portable import PortableQuestion

FILE = written_file()
STDOUT = Path("-")


@click.command(short_help="Write the history; or the bank for Anki, Moodle, QTI.")
@click.argument("file", type=FILE, required=False)
@click.option("--anki", type=FILE, metavar="FILE", help="The bank as a deck of Anki.")
@click.option("--gift", type=FILE, metavar="FILE", help="The bank for Moodle (GIFT).")
@click.option("--qti", type=FILE, metavar="FILE", help="The bank as a QTI 2.1 package.")
@click.option(
    "--phase",
    type=WholeRange(0, 999),
    help="Of which bank: by default the first that the book has.",
    shell_complete=names("phases"),
)
@click.option("--seed", type=WholeRange(0), help="Which variants: by default 0.")
@shipped_language_option("Of the bank: by default English.", default=None)
@filter_options
@json_option
@book_option
def export(
    file: Path | None,
    anki: Path | None,
    gift: Path | None,
    qti: Path | None,
    phase: int | None,
    seed: int | None,
    lang: str | None,
    as_json: bool,
    book: Path | None,
    **wanted: Any,
) -> None:
    """Write the whole history as JSON, to FILE or to the screen.

    With --anki, --gift or --qti it is the questions of a bank instead, a variant of
    each with its key and its reasons, for another program; - is the screen.

    A deck for Anki can be imported again: its notes are brought up to date. It needs
    genanki: pip install 'readerkit-distributed[anki]'.

    \b
    Example:
        readerkit quiz export answers.json
        readerkit quiz export --anki phase35.apkg --topic pipeline
        readerkit quiz export --gift phase35.gift
        readerkit quiz export --qti phase35.zip --lang es
    """
    from readerkit.app.folders import refuse_nowhere

    bank_files = {"anki": anki, "gift": gift, "qti": qti}
    given = {form: path for form, path in bank_files.items() if path}
    if len(given) + (file is not None) > 1:
        raise click.UsageError("got several files to write, expected one")
    if to := next(iter(given.values()), file):
        refuse_nowhere(to)
    if not given:
        if any(wanted.values()) or (phase, seed, lang) != (None,) * 3:
            raise click.UsageError("expected --anki, --gift or --qti beside filters")
        data = _history()
    else:
        [(form, file)] = given.items()
        data = _bank(form, phase, seed or 0, book, wanted, lang or "en")
    _write(data, file, private=not given, as_json=as_json)


def _history() -> bytes:
    from readerkit.app.folders import data_folder
    from readerkit.app.quiz_banks import HISTORY, open_history, tell_damage
    from readerkit.quiz.history import salvaged
    from readerkit.quiz.history_file import DamagedHistory
    from readerkit.quiz.history_rows import timestamp
    from readerkit.quiz.messages import encode_wide
    from readerkit.quiz.report import exported
    from readerkit.wording.next_command import typed
    from readerkit.wording.numbers import counted

    now = timestamp(datetime.now(UTC))
    try:
        history = open_history(to_read=True)
        told = exported(history, now)
    except DamagedHistory:
        history = salvaged(data_folder() / HISTORY)
        told = exported(history, now)
        count = counted(len(told.answers), "answer")
        why = f"damaged: {count} could still be read; move it away, then"
        again = typed("quiz", "import", "FILE")
        tell(f"readerkit: {history.path}: {why} {again}", err=True)
    text = encode_wide(told) + "\n"
    tell_damage(history)
    if open_exams := history.open_exams(now):
        until = "they have ended: their seeds would tell their questions"
        if len(open_exams) == 1:
            until = "it has ended: its seed would tell its questions"
        exams = counted(len(open_exams), "exam")
        tell(f"readerkit: {exams} left out until {until}", err=True)
    return text.encode()


def _bank(
    form: str,
    phase: int | None,
    seed: int,
    book: Path | None,
    wanted: dict[str, Any],
    language: str,
) -> bytes:
    from readerkit.app import quiz_packages as packages
    from readerkit.app.cited_lines import SourceLines
    from readerkit.app.interface_translation import say_in
    from readerkit.app.quiz_banks import QuizBanks, refuse_in_exam
    from readerkit.errors import ReaderkitError
    from readerkit.model.language import said
    from readerkit.quiz.selection import WantedQuiz, matching
    from readerkit.render import quiz_gift, quiz_qti

    banks = QuizBanks.at(book)
    number = banks.first_phase() if phase is None else phase
    refuse_in_exam("an export of the bank", phase=number)
    bank = banks.bank(number, language=language)
    lines = SourceLines(banks, book)
    asked = matching(bank, WantedQuiz(**wanted))
    shared = bank.shared()
    if own := [name for name in bank.questions if name in asked - {*shared.questions}]:
        why = "left out, as they ask about figures of your own"
        tell(f"readerkit: {why}: {', '.join(own)}", err=True)
    questions, lacking = packages.portable_bank(shared, asked, seed, lines)
    say = say_in(language)
    questions = [each.spoken(language, say) for each in questions]
    if not questions:
        raise ReaderkitError("no question of the bank is all of this: ask for less")
    if lacking:
        why = "left out, as their lines are neither on this disk nor to be fetched"
        tell(f"readerkit: {why}: {', '.join(lacking)}", err=True)
    title = said(bank.rules.title, say)
    if form == "anki":
        return packages.anki_file(questions, title, lines)
    by_hand: Callable[[PortableQuestion], bool] = (
        quiz_gift.is_essay if form == "gift" else quiz_qti.is_essay
    )
    if essays := [each.prompt.id for each in questions if by_hand(each)]:
        tell(f"readerkit: for a person to mark: {', '.join(essays)}", err=True)
    if form == "gift":
        return packages.gift_file(questions)
    return packages.qti_file(questions, title)


def _write(data: bytes, file: Path | None, *, private: bool, as_json: bool) -> None:
    """Write a file whole or not at all, and say so; or to the screen."""
    from readerkit.upstreams.store import write_atomically

    if file is None or file == STDOUT:
        click.echo(data, nl=False)
        return
    write_atomically(file.absolute(), data, private=private, named=True)
    if as_json:
        from readerkit.quiz.history_messages import Exported
        from readerkit.terminal.quiz_json import say

        say(Exported(str(file)))
    else:
        click.echo(f"wrote {file}")
