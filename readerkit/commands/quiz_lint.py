"""``readerkit quiz lint``: every key resolved and computed anew, no link dead."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from readerkit.commands.options import WholeRange, book_option, json_option
from readerkit.terminal.as_json import print_json
from readerkit.terminal.folded import tell
from readerkit.wording.numbers import counted

if TYPE_CHECKING:
    from readerkit.app.check_quiz import BankSummary


@click.command(short_help="Hold a bank against the code, the records and its lock.")
@click.argument("phase", type=WholeRange(0, 999), required=False)
@click.option("--update-lock", is_flag=True, help="Write what keys resolve to now.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of a topic's file.")
@json_option
@book_option
def lint(
    phase: int | None,
    update_lock: bool,
    schema: bool,
    as_json: bool,
    book: Path | None,
) -> None:
    """Resolve and compute every key of PHASE (or of all), and fail on any fault.

    \b
    Example:
        readerkit quiz lint
        readerkit quiz lint 35 --update-lock
    """
    from msgspec import to_builtins

    from readerkit.app.check_claims import hold_claims
    from readerkit.app.check_quiz import lint_phase
    from readerkit.app.folders import is_checkout
    from readerkit.app.library import open_library
    from readerkit.app.quiz_banks import QuizBanks
    from readerkit.errors import ContentError, ReaderkitError

    if schema:
        print_json(_schema(book))
        return
    banks = QuizBanks.at(book)
    if update_lock and not is_checkout(banks.root):
        raise ReaderkitError(
            f"{banks.root}: got the copy inside the installed package, expected a "
            "checkout: its lock is written there, with --book DIR"
        )
    phases = banks.phases() if phase is None else [phase]
    if not phases:
        raise ReaderkitError(f"{banks.root}: got a book without quizzes/")
    library = open_library(book)
    asked = [
        question
        for each in phases
        for question in banks.bank(each, with_lock=False).questions.values()
    ]
    if faults := [*hold_claims(library, None, asked).faults()]:
        raise ContentError(faults)
    summaries = [
        lint_phase(banks, library, each, update=update_lock) for each in phases
    ]
    if as_json:
        print_json(to_builtins(summaries))
        return
    for each in summaries:
        _print_summary(each, "locked" if update_lock else "as locked")


def _print_summary(bank: BankSummary, held: str) -> None:
    kinds = ", ".join(f"{count} {kind}" for kind, count in bank.types.items())
    tell(
        f"phase {bank.phase}: {counted(bank.questions, 'question')} ({kinds}) over "
        f"{counted(bank.objectives, 'objective')}; {counted(bank.places, 'place')} and "
        f"{counted(bank.facts, 'fact')} {held}; {bank.spanish} in Spanish"
    )


def _schema(book: Path | None) -> dict[str, object]:
    from readerkit.app.library import open_library
    from readerkit.content.schema import json_schema
    from readerkit.quiz.kinds import QUESTIONS

    written = open_library(book).book
    return json_schema(
        QUESTIONS, concepts=written.concepts, references=written.references
    )
