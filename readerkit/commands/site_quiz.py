"""Reads for the site what each quiz asks: topics, objectives, and every question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from readerkit.commands.quiz_files import Shelf
from readerkit.quiz.bank import Bank
from readerkit.quiz.session import asked, explained
from readerkit.render.html import addresses
from readerkit.render.html.escape import shown
from readerkit.render.html.quiz_page import Asked, PhaseView

CHECK_SEED = 0
"""Of the variants that a page without a server shows."""


def read_banks(book: Path) -> list[Bank]:
    """Return every bank of a book.

    Raises:
        ContentError: every fault of a bank.
    """
    shelf = Shelf.at(book)
    return [shelf.bank(phase) for phase in shelf.phases()]


def questions_by_note(banks: list[Bank]) -> dict[str, tuple[Asked, ...]]:
    """Return which topics ask about each note, and how often."""
    counted: Counter[tuple[str, int, str]] = Counter()
    for bank in banks:
        for question in bank.questions.values():
            for note in question.notes:
                counted[note, bank.phase, question.topic] += 1
    found: dict[str, tuple[Asked, ...]] = {}
    for (note, phase, topic), count in counted.items():
        found[note] = (*found.get(note, ()), _asked(phase, topic, count))
    return found


def phase_views(banks: list[Bank]) -> Iterator[PhaseView]:
    """Yield what the page of the quiz shows of each bank."""
    for bank in banks:
        questions = bank.questions.values()
        topics = Counter(question.topic for question in questions)
        objectives = Counter(question.objective for question in questions)
        yield PhaseView(
            bank.phase,
            addresses.quiz_page(bank.phase),
            shown(bank.title),
            shown(f"{bank.pass_mark:.0%}"),
            len(questions),
            tuple(_asked(bank.phase, topic, topics[topic]) for topic in bank.topics()),
            tuple(
                (shown(objective.title), objectives[name])
                for name, objective in bank.objectives.items()
            ),
        )


def checks(banks: list[Bank], phase: int) -> list[dict[str, Any]]:
    """Return one variant of each question of a phase, with its solution.

    Raises:
        ReaderkitError: a key that does not compute or is not in the lock.
    """
    [bank] = (each for each in banks if each.phase == phase)
    variants = (bank.variant(name, CHECK_SEED) for name in bank.questions)
    return [{**asked(bank, each), **explained(each)} for each in variants]


def _asked(phase: int, topic: str, count: int) -> Asked:
    command = f"readerkit quiz {phase} --topic {topic}"
    return Asked(shown(topic.replace("_", " ")), count, shown(command))
