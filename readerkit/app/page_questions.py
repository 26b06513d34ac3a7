"""Reads what quizzes ask: topics and questions for the site, one for a text."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from readerkit.app.own_figures import OwnFigures, OwnLacking
from readerkit.app.quiz_banks import QuizBanks
from readerkit.errors import ReaderkitError
from readerkit.model import addresses
from readerkit.model.expression import Number
from readerkit.quiz.bank import Bank
from readerkit.quiz.page_key import Asked
from readerkit.render.html.fences import Ask, InlineQuestion
from readerkit.render.html.quiz_page import BankView, TopicQuestions
from readerkit.wording.meant_name import choose
from readerkit.wording.next_command import typed, written

VARIANTS, SEEDS = 3, range(12)
"""As many variants a page without a server asks, of the first seeds that differ."""


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
    by_phase = {bank.rules.phase: bank for bank in banks}
    for bank in banks:
        for name, question in bank.shared().questions.items():
            for note in question.notes:
                names[note, bank.rules.phase, question.topic].append(name)
    found: dict[str, tuple[TopicQuestions, ...]] = {}
    for (note, phase, topic), each in names.items():
        found[note] = (*found.get(note, ()), _asked(by_phase[phase], topic, each))
    return found


def figures_asked(banks: list[Bank], own: OwnFigures) -> dict[str, dict[str, Number]]:
    """Return by question the figures of the reader's own that it asks about.

    A question is left out whose figures the reader does not have.
    """
    found: dict[str, dict[str, Number]] = {}
    for bank in banks:
        for name, question in bank.questions.items():
            if question.own_figures:
                with suppress(OwnLacking):
                    found[name] = own.of(question.own_figures)
    return found


OwnAsked = Mapping[str, Mapping[str, Number]]
"""By question, the reader's own figures that pages may ask about."""


def phase_views(banks: list[Bank], own_asked: OwnAsked) -> Iterator[BankView]:
    """Yield what the page of the quiz shows of each bank."""
    for whole in banks:
        bank = whole.shared(own_asked)
        others = whole.questions.keys() - bank.questions.keys()
        own = Counter(q.topic for q in whole.questions.values() if q.id in others)
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
            tuple(_asked(bank, topic, topics[topic]) for topic in bank.topics()),
            tuple(
                (objective.title, objectives[name])
                for name, objective in bank.objectives.items()
            ),
            tuple(
                (bank.topic_title(topic), count, _command(bank.rules.phase, topic))
                for topic, count in own.items()
            ),
        )


def _prompt(bank: Bank, name: str) -> tuple[str, str]:
    prompt = bank.questions[name].prompt
    return prompt, bank.words.get(name, {}).get(prompt, "")


def checks(
    banks: list[Bank], own_asked: OwnAsked, phase: int, topic: str
) -> list[list[Asked]]:
    """Return variants of each question of a topic: one, where nothing differs.

    Of a question about the reader's own figures there is one, with these figures.

    Raises:
        ReaderkitError: a key that does not compute or is not in the lock.
    """
    [bank] = (each for each in banks if each.rules.phase == phase)
    found = []
    for name, question in bank.shared(own_asked).questions.items():
        if question.topic == topic:
            found.append(variants_of(bank, name, own_asked.get(name, {})))
    return found


def variants_of(
    bank: Bank, name: str, figures: Mapping[str, Number] | None = None
) -> list[Asked]:
    """Return the variants of a question on a page: no two of them ask the same."""
    question, version = bank.questions[name], bank.rules.version
    is_same = figures or not question.parameters
    found: list[Asked] = []
    for seed in SEEDS[:1] if is_same else SEEDS:
        variant = bank.variant(name, seed, figures)
        if variant.prompt not in [each.variant.prompt for each in found]:
            found.append(Asked(question, seed, version, variant, figures or {}))
        if len(found) == VARIANTS:
            break
    return found


def _asked(bank: Bank, topic: str, names: Sequence[str]) -> TopicQuestions:
    phase = bank.rules.phase
    page = addresses.quiz_topic_page(phase, topic)
    return TopicQuestions(
        page,
        topic,
        bank.topic_title(topic),
        len(names),
        _command(phase, topic),
        tuple((name, f"{page}#q-{name}") for name in names),
        tuple(_prompt(bank, name) for name in names),
    )


def _command(phase: int, topic: str) -> str:
    return written("quiz", str(phase), "--topic", topic)


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
    asked = variants_of(bank, name)
    page = addresses.quiz_topic_page(rules.phase, question.topic)
    return InlineQuestion(rules.phase, page, asked)
