"""The page of one phase's quiz: every question, its solution behind a disclosure.

On a served site a script puts the quiz itself in front of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from readerkit.render.html import addresses
from readerkit.render.html.escape import shown
from readerkit.render.html.file_page import Rights, rights_of
from readerkit.render.html.question import (
    QuestionView,
    Solution,
    Values,
    question_view,
    solution_view,
)
from readerkit.render.html.site_model import SiteModel
from readerkit.render.html.tree_page import upstreams_shown


@dataclass(frozen=True, slots=True)
class Check:
    """A question to answer for oneself."""

    question: QuestionView
    solution: Solution


@dataclass(frozen=True, slots=True)
class CheckPage:
    """All questions of a phase, one variant of each, by topic."""

    address: str
    phase: int
    title: Markup
    topics: tuple[tuple[str, Markup, tuple[Check, ...]], ...]
    """Id, name and questions."""
    rights: tuple[Rights, ...]


def check_page(
    model: SiteModel, phase: int, title: Markup, questions: Iterable[Values]
) -> CheckPage:
    """Return the page of a phase; each value holds a question and its solution."""
    address = addresses.quiz_page(phase)
    by_topic: dict[str, list[Check]] = {}
    for values in questions:
        check = Check(
            question_view(model, values, address),
            solution_view(model, values, address),
        )
        by_topic.setdefault(values["topic"], []).append(check)
    return CheckPage(
        address,
        phase,
        title,
        tuple(
            (topic, shown(topic.replace("_", " ")), tuple(checks))
            for topic, checks in by_topic.items()
        ),
        # A served quiz shows lines of any of them, after a wrong answer.
        rights_of(model, upstreams_shown(model)),
    )
