"""Finds a question for a text that asks it: in whichever bank of the book it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from readerkit.app.page_questions import SEEDS
from readerkit.errors import ReaderkitError
from readerkit.model import addresses
from readerkit.quiz.bank import Bank
from readerkit.quiz.page_key import Asked
from readerkit.render.html.fences import Ask, InlineQuestion
from readerkit.wording.meant_name import choose
from readerkit.wording.next_command import typed


def asking(read: Callable[[], list[Bank]]) -> Ask:
    """Return what finds questions in the banks, which are read when one is sought."""
    banks = cache(read)

    def ask(name: str) -> InlineQuestion:
        if not (found := banks()):
            make = typed("quiz", "new", "--help")
            raise ReaderkitError(f"no question '{name}': this book has no quiz: {make}")
        homes = {each: bank for bank in found for each in bank.questions}
        if name not in homes:
            choose("question", name, homes)  # names the near ones
            raise ReaderkitError(f"no question '{name}': expected a whole name")
        bank = homes[name]
        if name not in bank.shared().questions:
            raise ReaderkitError(
                f"question '{name}' is about the reader's own figures, which a text "
                "for everybody has not"
            )
        return _inline(bank, name)

    return ask


def _inline(bank: Bank, name: str) -> InlineQuestion:
    question, rules = bank.questions[name], bank.rules
    seeds = SEEDS if question.parameters else SEEDS[:1]
    asked = [
        Asked(question, seed, rules.version, bank.variant(name, seed)) for seed in seeds
    ]
    page = addresses.quiz_topic_page(rules.phase, question.topic)
    return InlineQuestion(rules.phase, page, asked)
