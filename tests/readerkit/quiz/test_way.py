"""How far a question goes: the files that it enters, from its YAML to its grade."""

from __future__ import annotations

import pytest

from readerkit.quiz.bank import parse_bank
from readerkit.quiz.lockfile import QuizLock
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
        ("bytes", "84", 15),
        ("gap", "no_grad", 15),
        ("pairs", "1a 2b 3c", 16),
        ("essay", "1 :: text", 15),
        ("several", "a", 16),
        ("steps", "1 2 4 3", 16),
        ("line", "11", 15),
        ("grid", "column 1x2; row 2x1", 19),
        ("pick", "a", 18),
        ("row", "F0 F1 F2", 19),
    ],
)
def test_way_from_its_text_to_its_grade_is_short(name, answer, most):
    graded(name, answer)  # imports, and the schemas of the two kinds of file
    files = entered(lambda: graded(name, answer))
    assert len(files) <= most, sorted(files)
