"""Which questions of a bank a reader is asked: what is wanted, and how many."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from readerkit.quiz.bank import Bank
from readerkit.quiz.history import History
from readerkit.quiz.seeded_draw import SeededDraw
from readerkit.wording.meant_name import choose_all


class WantedQuiz(Struct, frozen=True, kw_only=True):
    """What a reader asks for; the bank's own rules where nothing is said."""

    topics: tuple[str, ...] = ()
    objectives: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    difficulties: tuple[int, ...] = ()
    only: tuple[str, ...] = ()
    """These questions, in their order."""
    due: bool = False
    count: int | None = None
    exam: bool = False
    seed: int | None = None
    tries: int = 2
    minutes: float | None = None

    @property
    def is_chosen(self) -> bool:
        """Whether the reader chooses what is asked: no exam that counts."""
        named = (self.topics, self.objectives, self.kinds, self.difficulties)
        other = self.only or self.due or self.count or self.seed is not None
        return any(named) or bool(other)


def matching(bank: Bank, wanted: WantedQuiz) -> set[str]:
    """Return the questions that are of what a reader wants.

    Raises:
        ReaderkitError: a name that the bank does not have.
    """
    asked = bank.questions.values()
    topics = choose_all("topic", wanted.topics, bank.topics())
    objectives = choose_all("objective", wanted.objectives, bank.objectives)
    kinds = choose_all("kind", wanted.kinds, dict.fromkeys(q.type for q in asked))
    return {
        each.id
        for each in asked
        if (not topics or each.topic in topics)
        and (not objectives or each.objective in objectives)
        and (not kinds or each.type in kinds)
        and (not wanted.difficulties or each.difficulty in wanted.difficulties)
    }


def choose_questions(
    bank: Bank,
    *,
    seed: int,
    count: int,
    among: Iterable[str] | None = None,
) -> tuple[str, ...]:
    """Return questions spread over the objectives, in an order that the seed names.

    Each round takes one question of every objective, so that a short quiz still asks
    about as many of them as it can.
    """
    allowed = set(bank.questions if among is None else among)
    draw = SeededDraw(bank.rules.version, "the choice of questions", seed)
    piles: dict[str, list[str]] = {}
    for name in draw.shuffled(sorted(allowed & set(bank.questions))):
        piles.setdefault(bank.questions[name].objective, []).append(name)
    chosen: list[str] = []
    while len(chosen) < count and any(piles.values()):
        for objective in draw.shuffled(sorted(piles)):
            if piles[objective] and len(chosen) < count:
                chosen.append(piles[objective].pop())
    return tuple(chosen)


def suspended(history: History) -> set[str]:
    """Return the questions that only exams ask."""
    return {each.question for each in history.suspensions()}
