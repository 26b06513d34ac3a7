"""Every typed key of the bank, made wrong: lint has to see it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import pairwise

from msgspec.structs import replace

from readerkit.app.check_quiz import known_names
from readerkit.quiz.kinds import Question
from readerkit.quiz.kinds.choice import Choice
from readerkit.quiz.kinds.fill import Fill
from readerkit.quiz.kinds.numeric import Numeric
from readerkit.quiz.kinds.sequence import Match, Order
from readerkit.quiz.kinds.sketch import Sketch
from readerkit.quiz.lint import lint_bank
from tests.content.test_quizzes import bank, library


def planted(question: Question) -> Iterator[Question]:
    """Yield the question with each of its typed keys made wrong, one at a time."""
    if isinstance(question, Numeric):
        for factor in ("2 * ", "1.05 * ", "1 / 8 * "):
            value = type(question.answer.value)(f"{factor}({question.answer.value})")
            yield replace(question, answer=replace(question.answer, value=value))
    elif isinstance(question, Choice):
        yield from planted_choices(question)
    elif isinstance(question, Match):
        for at, (one, other) in enumerate(pairwise(question.pairs)):
            swapped = (
                replace(one, right=other.right),
                replace(other, right=one.right),
            )
            pairs = (*question.pairs[:at], *swapped, *question.pairs[at + 2 :])
            yield replace(question, pairs=pairs)
    elif isinstance(question, Order):
        for at, (one, other) in enumerate(pairwise(question.items)):
            items = (*question.items[:at], other, one, *question.items[at + 2 :])
            yield replace(question, items=items)
    elif isinstance(question, Fill):
        mistake = question.mistakes[0].text if question.mistakes else "join"
        yield replace(question, accept=(mistake,), mistakes=())
    elif isinstance(question, Sketch):
        yield from planted_words(question)


def planted_choices(question: Choice) -> Iterator[Choice]:
    """Yield it with `right` moved, and the reason with it, so that it reads well."""
    options = question.options
    for at, right in enumerate(options):
        for to, wrong in enumerate(options):
            if right.right and not wrong.right:
                reason = {"why": wrong.why, "note": wrong.note, "at": wrong.at}
                moved = list(options)
                moved[at] = replace(right, right=False, **reason)
                moved[to] = replace(wrong, right=True, why="", note="", at=None)
                yield replace(question, options=tuple(moved))


def planted_words(question: Sketch) -> Iterator[Sketch]:
    for at, row in enumerate(question.rows):
        for column, cell in enumerate(row.cells):
            if cell.word is None:
                continue
            other = next(word for word in question.words if word != cell.word)
            cells = list(row.cells)
            cells[column] = replace(cell, word=other)
            rows = list(question.rows)
            rows[at] = replace(row, cells=tuple(cells))
            yield replace(question, rows=tuple(rows))


def test_lint_sees_each_typed_key_that_is_made_wrong():
    known = known_names(library())
    held, not_held = set(), set()
    for question in bank().questions.values():
        alone = dataclasses.replace(
            bank(),
            questions={question.id: question},
            objectives={question.objective: bank().objectives[question.objective]},
        )
        assert lint_bank(alone, known) == []
        for wrong in planted(question):
            spoilt = dataclasses.replace(alone, questions={question.id: wrong})
            seen = lint_bank(spoilt, known)
            (held if seen else not_held).add(question.id)
    assert not_held == set()
    assert len(held) >= 73
