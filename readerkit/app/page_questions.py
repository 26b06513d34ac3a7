"""Reads for the site what each quiz asks: topics, objectives, and every question."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from readerkit.app.quiz_banks import QuizBanks
from readerkit.model import addresses
from readerkit.quiz.bank import Bank
from readerkit.quiz.page_key import Asked
from readerkit.render.html.quiz_page import BankView, TopicQuestions
from readerkit.wording.next_command import written

SEEDS = (0, 1, 2)
"""Of the variants that a page without a server asks."""


def read_banks(book: Path) -> list[Bank]:
    """Return every bank of a book.

    Raises:
        ContentError: every fault of a bank.
    """
    banks = QuizBanks.at(book)
    return [banks.bank(phase, in_both=True) for phase in banks.phases()]


def questions_by_note(banks: list[Bank]) -> dict[str, tuple[TopicQuestions, ...]]:
    """Return which questions lead to each note, by topic."""
    names: dict[tuple[str, int, str], list[str]] = defaultdict(list)
    for bank in banks:
        for name, question in bank.shared().questions.items():
            for note in question.notes:
                names[note, bank.rules.phase, question.topic].append(name)
    found: dict[str, tuple[TopicQuestions, ...]] = {}
    for (note, phase, topic), each in names.items():
        found[note] = (*found.get(note, ()), _asked(phase, topic, each))
    return found


def phase_views(banks: list[Bank]) -> Iterator[BankView]:
    """Yield what the page of the quiz shows of each bank."""
    for whole in banks:
        bank = whole.shared()
        own = Counter(q.topic for q in whole.questions.values() if q.own_figures)
        questions = bank.questions.values()
        topics: dict[str, list[str]] = defaultdict(list)
        for name, question in bank.questions.items():
            topics[question.topic].append(name)
        objectives = Counter(question.objective for question in questions)
        yield BankView(
            bank.rules.phase,
            addresses.quiz_page(bank.rules.phase),
            bank.rules.title,
            f"{bank.rules.pass_mark:.0%}",
            len(questions),
            tuple(
                replace(
                    _asked(bank.rules.phase, topic, topics[topic]),
                    prompts=tuple(_prompt(bank, name) for name in topics[topic]),
                )
                for topic in bank.topics()
            ),
            tuple(
                (objective.title, objectives[name])
                for name, objective in bank.objectives.items()
            ),
            tuple(
                (topic.replace("_", " "), count, _command(bank.rules.phase, topic))
                for topic, count in own.items()
            ),
        )


def _prompt(bank: Bank, name: str) -> tuple[str, str]:
    prompt = bank.questions[name].prompt
    return prompt, bank.words.get(name, {}).get(prompt, "")


def checks(banks: list[Bank], phase: int, topic: str) -> list[list[Asked]]:
    """Return variants of each question of a topic: one, where nothing differs.

    Raises:
        ReaderkitError: a key that does not compute or is not in the lock.
    """
    [bank] = (each for each in banks if each.rules.phase == phase)
    version = bank.rules.version
    return [
        [
            Asked(question, seed, version, bank.variant(name, seed))
            for seed in (SEEDS if question.parameters else SEEDS[:1])
        ]
        for name, question in bank.shared().questions.items()
        if question.topic == topic
    ]


def _asked(phase: int, topic: str, names: Sequence[str]) -> TopicQuestions:
    page = addresses.quiz_topic_page(phase, topic)
    return TopicQuestions(
        page,
        topic,
        topic.replace("_", " "),
        len(names),
        _command(phase, topic),
        tuple((name, f"{page}#q-{name}") for name in names),
    )


def _command(phase: int, topic: str) -> str:
    return written("quiz", str(phase), "--topic", topic)
