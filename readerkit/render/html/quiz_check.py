"""The page of one phase's quiz: every question, its solution behind a disclosure.

On a served site a script puts the quiz itself in front of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from readerkit.render.html import addresses
from readerkit.render.html.file_page import rights_of
from readerkit.render.html.question import (
    QuestionView,
    Solution,
    Values,
    question_view,
    solution_view,
)
from readerkit.render.html.site_model import Context, SiteModel
from readerkit.render.html.tree_page import upstreams_shown


def check_page(
    model: SiteModel, phase: int, title: str, questions: Iterable[Values]
) -> Context:
    """Return the page of a phase; each value holds a question and its solution."""
    address = addresses.quiz_page(phase)
    by_topic: dict[str, list[tuple[QuestionView, Solution]]] = {}
    for values in questions:
        question = question_view(model, values, address)
        solution = solution_view(model, values, address)
        by_topic.setdefault(values["topic"], []).append((question, solution))
    return {
        "title": title,
        "phase": phase,
        "topics": list(by_topic.items()),
        # A served quiz shows lines of any of them, after a wrong answer.
        "rights": rights_of(model, upstreams_shown(model)),
    }
