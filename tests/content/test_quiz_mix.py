"""What the bank asks for as a whole: understanding before sums, every concept."""

from __future__ import annotations

from collections import Counter

from readerkit.app.check_quiz import known_names
from tests.content.test_quizzes import bank, library

UNDERSTANDING = ("explain", "decide", "diagnose")


def test_concept_without_a_question_is_named():
    asked = {name for each in bank().questions.values() for name in each.concepts}
    assert sorted(known_names(library()).concepts - asked) == []


def test_most_questions_are_no_formula_with_its_numbers():
    questions = bank().questions.values()
    kinds = Counter(each.type for each in questions if not each.own_figures)
    asks = Counter(each.asks for each in questions)
    assert len(questions) >= 200
    assert kinds["numeric"] <= 0.3 * len(questions)
    assert sum(asks[each] for each in UNDERSTANDING) >= 75
    assert min(asks[each] for each in UNDERSTANDING) >= 10
