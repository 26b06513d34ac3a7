"""``readerkit quiz init``: a bank for a phase of one's own."""

from __future__ import annotations

from pathlib import Path

import click

from readerkit.commands.options import WholeRange, begun_book_option, json_option
from readerkit.wording.next_command import typed


@click.command(short_help="Begin a bank of your own, for a phase that has none.")
@click.argument("phase", type=WholeRange(1, 999))
@json_option
@begun_book_option
def init(phase: int, as_json: bool, book: Path | None) -> None:
    """Write a bank for PHASE into a book: an example of several kinds, to be replaced.

    Any folder may become a book; what is there is never overwritten. The bank can be
    asked, listed and linted at once.

    \b
    Example:
        readerkit quiz init 36 --book mine
        readerkit quiz 36 --book mine
    """
    from readerkit.app.folders import is_checkout, refuse_nowhere
    from readerkit.app.new_bank import begin_bank
    from readerkit.app.quiz_banks import QuizBanks
    from readerkit.errors import ReaderkitError

    banks = QuizBanks.at(book)
    if book is None and not is_checkout(banks.root):
        raise ReaderkitError(
            f"{banks.root}: got the copy inside the installed package, expected a "
            "book of your own: --book DIR, any folder"
        )
    refuse_nowhere(banks.root)
    files = begin_bank(banks, phase)
    if as_json:
        from readerkit.quiz.history_messages import BankBegun
        from readerkit.terminal.quiz_json import say

        say(BankBegun(phase, tuple(map(str, files))))
        return
    for path in files:
        click.echo(f"wrote {path}")
    number = str(phase)
    click.echo(f"To be asked: {typed('quiz', number)}")
    click.echo(f"After each change: {typed('quiz', 'lint', number, '--update-lock')}")
