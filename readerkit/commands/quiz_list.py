"""``readerkit quiz list``: the questions of a bank, by what they are and when due."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from readerkit.commands.options import WholeRange, book_option, json_option
from readerkit.commands.quiz_options import filter_options
from readerkit.terminal.completing import names
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import counted


@click.command("list", short_help="The questions of a phase, by what they are.")
@click.argument(
    "phase",
    type=WholeRange(0, 999),
    required=False,
    shell_complete=names("phases"),
)
@filter_options
@click.option("--due", is_flag=True, help="Only what is due again.")
@click.option("--flagged", is_flag=True, help="Only what you flagged, with your words.")
@json_option
@book_option
def list_questions(
    phase: int | None,
    due: bool,
    flagged: bool,
    as_json: bool,
    book: Path | None,
    **wanted: Any,
) -> None:
    """List the questions of PHASE, by default of the first: no key among them.

    \b
    Example:
        readerkit quiz list 35 --objective goal-bubble
        readerkit quiz list --kind locate --difficulty 3
        readerkit quiz list --due
        readerkit quiz list --flagged
    """
    from readerkit.app.begin_quiz import now
    from readerkit.app.due_questions import list_bank
    from readerkit.app.quiz_banks import QuizBanks, open_history
    from readerkit.quiz.selection import WantedQuiz
    from readerkit.terminal.as_json import print_json
    from readerkit.terminal.pager import show_paged

    banks = QuizBanks.at(book)
    bank = banks.bank(banks.first_phase() if phase is None else phase)
    asked = WantedQuiz(due=due, **wanted)
    history = open_history(to_read=True)
    listed = list_bank(bank, history, asked, now(), flagged=flagged)
    if as_json:
        from msgspec import to_builtins

        print_json(to_builtins(listed))
        return
    rows = []
    for each in listed:
        dots = "●" * each.difficulty + "○" * (3 - each.difficulty)
        when = f"  due {each.due[:10]}" if each.due else ""
        rows.append(f"{each.id:26} {each.kind:8} {dots}  {each.objective}{when}")
        if each.suspended:
            rows.append("    suspended: asked in exams alone")
        rows += [f"    flagged: {words or '(no words)'}" for words in each.flags]
    ask = typed("quiz", str(bank.rules.phase), "--only", "ID")
    rows.append(f"{counted(len(listed), 'question')}. To be asked one: {ask}")
    show_paged("\n".join(rows))
