"""How far a question goes: the files that it enters, from its YAML to its grade."""

from __future__ import annotations

import pytest

from readerkit.quiz.bank import parse_bank
from readerkit.quiz.lock import QuizLock
from readerkit.quiz.variant import Grade
from tests.helpers import entered
from tests.readerkit.quiz.sample import LOCK, documents, only

LOCK_TEXT = LOCK.to_text()


def graded(name: str, answer: str) -> Grade:
    """Grade an answer to a question out of its two files: its text, and the lock."""
    lock = QuizLock.parse(LOCK_TEXT, "keys.lock")
    bank = parse_bank(*documents(only(name)), {}, lock)
    return bank.variant(name, 0).grade(answer)


@pytest.mark.parametrize(
    ("name", "answer", "most"),
    [
        ("bytes", "84", 14),
        ("gap", "no_grad", 14),
        ("pairs", "1a 2b 3c", 15),
        ("essay", "1 :: text", 14),
        ("several", "a", 15),
        ("steps", "1 2 4 3", 15),
        ("line", "11", 14),
        ("grid", "column 1x2; row 2x1", 18),
        ("pick", "a", 17),
        ("row", "F0 F1 F2", 18),
    ],
)
def test_way_from_its_text_to_its_grade_is_short(name, answer, most):
    graded(name, answer)  # imports, and the schemas of the two kinds of file
    files = entered(lambda: graded(name, answer))
    assert len(files) <= most, sorted(files)
