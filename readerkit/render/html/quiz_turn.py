"""One turn of a quiz on the served page: what was earned, and what is asked next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from readerkit.render.html import addresses
from readerkit.render.html.question import (
    QuestionView,
    RemarkView,
    Solution,
    Values,
    remark_views,
    solution_view,
)
from readerkit.render.html.site_model import SiteModel


@dataclass(frozen=True, slots=True)
class Offer:
    """What may be begun, and what was left."""

    topics: tuple[str, ...]
    count: int
    exam: str
    left: str = ""
    """The session to go on with; empty where there is none."""
    answered: int = 0
    of: int = 0
    mastery: Values = field(default_factory=dict)
    """Points by topic."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """What an answer earned."""

    prompt: str
    answer: str
    """Empty where the question was skipped."""
    result: Values
    remarks: tuple[RemarkView, ...]
    solution: Solution | None
    """None while there is another try."""


@dataclass(frozen=True, slots=True)
class QuizResult:
    """The end of a quiz."""

    outcome: Values
    """Without a verdict where time was over before all was asked."""
    read_next: tuple[tuple[str, str], ...]
    """Page of a note, and its title."""
    marked: tuple[tuple[Values, Solution], ...]
    """The questions of an exam."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What the page shows now."""

    session: str = ""
    position: int = 0
    of: int = 0
    attempt: int = 0
    minutes_left: str = ""
    notice: str = ""
    given: tuple[str, ...] = ()
    """An answer that was wrong or could not be read, to be mended."""
    offer: Offer | None = None
    feedback: Feedback | None = None
    question: QuestionView | None = None
    result: QuizResult | None = None

    @property
    def is_mended(self) -> bool:
        """Whether the question is asked again: wrong, or not to be read."""
        return self.question is not None and (self.attempt > 1 or bool(self.given))


def feedback_view(
    model: SiteModel, prompt: str, answer: str, result: Values, address: str
) -> Feedback:
    """Return what an answer earned; one without words was skipped."""
    remarks = remark_views(model, result["remarks"], address)
    solution = solution_view(model, result, address) if result["done"] else None
    return Feedback(prompt, answer, result, remarks, solution)


def result_view(
    model: SiteModel, outcome: Values, marked: Iterable[Values], address: str
) -> QuizResult:
    """Return the end of a quiz; of an exam with every answer."""
    return QuizResult(
        {"passed": None, **outcome},
        tuple(_next(model, each) for each in outcome["read_next"]),
        tuple((row, solution_view(model, row, address)) for row in marked),
    )


def _next(model: SiteModel, each: Values) -> tuple[str, str]:
    note = model.notes.get(each["note"])
    if note is None:
        return "", each["title"]
    page = addresses.source_page(note.annotation.upstream, note.span.path)
    return f"{page}#{each['note']}", each["title"]
