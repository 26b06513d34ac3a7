"""One turn of a quiz on the served page: what was earned, and what is asked next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from readerkit.render.html import addresses
from readerkit.render.html.escape import shown
from readerkit.render.html.question import (
    QuestionView,
    RemarkView,
    Solution,
    Values,
    remark_views,
    solution_view,
    worded,
)
from readerkit.render.html.site_model import SiteModel


@dataclass(frozen=True, slots=True)
class Offer:
    """What may be begun, and what was left."""

    topics: tuple[tuple[str, Markup], ...]
    count: int
    exam: str
    left: str = ""
    """The session to go on with; empty where there is none."""
    answered: int = 0
    of: int = 0
    mastery: tuple[Score, ...] = ()


@dataclass(frozen=True, slots=True)
class Feedback:
    """What an answer earned."""

    prompt: Markup
    answer: Markup
    is_right: bool
    is_skipped: bool
    share: str
    """Of the answer that is right; empty where none or all of it is."""
    points: str
    remarks: tuple[RemarkView, ...]
    solution: Solution | None
    """None while there is another try."""


@dataclass(frozen=True, slots=True)
class Marked:
    """A question of an exam that is over."""

    number: int
    is_right: bool
    prompt: Markup
    answer: Markup
    solution: Solution


@dataclass(frozen=True, slots=True)
class Score:
    """Points on one topic, or on all."""

    topic: Markup
    points: str
    of: int
    low: str
    high: str


@dataclass(frozen=True, slots=True)
class QuizResult:
    """The end of a quiz."""

    share: str
    is_passed: bool | None
    """None where it is no verdict: time was over before all was asked."""
    answered: str
    pass_mark: str
    total: Score
    corrected: str
    topics: tuple[Score, ...]
    read_next: tuple[tuple[str, Markup], ...]
    """Page of a note, and its title."""
    marked: tuple[Marked, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """What the page shows now."""

    session: str = ""
    position: int = 0
    of: int = 0
    attempt: int = 0
    minutes_left: str = ""
    notice: Markup = Markup()  # noqa: RUF009  a frozen value
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
    is_partly = 0 < result["credit"] < 1 and not result["right"]
    return Feedback(
        prompt=worded(prompt),
        answer=shown(answer),
        is_right=result["right"],
        is_skipped=not answer,
        share=f"{result['credit']:.0%}" if is_partly else "",
        points=f"{result['points']:g}",
        remarks=remark_views(model, result["remarks"], address),
        solution=solution_view(model, result, address) if result["done"] else None,
    )


def result_view(
    model: SiteModel, outcome: Values, marked: Iterable[Values], address: str
) -> QuizResult:
    """Return the end of a quiz; of an exam with every answer."""
    corrected = outcome["choice_corrected"]
    return QuizResult(
        share=f"{outcome['score']:.0%}",
        is_passed=outcome.get("passed"),
        answered=f"{outcome['answered']} / {outcome['of']}",
        pass_mark=f"{outcome['pass_mark']:.0%}",
        total=_score("", outcome),
        corrected="" if corrected is None else f"{corrected:.0%}",
        topics=scores(outcome["topics"]),
        read_next=tuple(_next(model, each) for each in outcome["read_next"]),
        marked=tuple(
            Marked(
                row["position"] + 1,
                row["right"],
                worded(row["prompt"]),
                shown(row["answer"]),
                solution_view(model, row, address),
            )
            for row in marked
        ),
    )


def scores(topics: Values) -> tuple[Score, ...]:
    """Return the points of each topic."""
    return tuple(_score(name, each) for name, each in topics.items())


def _score(topic: str, values: Values) -> Score:
    low, high = values["interval"]
    return Score(
        shown(topic.replace("_", " ")),
        f"{values['points']:g}",
        values["questions"],
        f"{low:.0%}",
        f"{high:.0%}",
    )


def _next(model: SiteModel, each: Values) -> tuple[str, Markup]:
    note = model.notes.get(each["note"])
    if note is None:
        return "", shown(each["title"])
    page = addresses.source_page(note.annotation.upstream, note.span.path)
    return f"{page}#{each['note']}", shown(each["title"])
