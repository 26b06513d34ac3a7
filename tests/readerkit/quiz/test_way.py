"""How far a question goes: the files that it enters, from its YAML to its grade."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import readerkit
from readerkit.quiz.bank import parse_bank
from readerkit.quiz.lock import QuizLock
from readerkit.quiz.variant import Grade
from tests.readerkit.quiz.sample import LOCK, documents, only

HOME = Path(readerkit.__file__).parent
LOCK_TEXT = LOCK.to_text()


def graded(name: str, answer: str) -> Grade:
    """Grade an answer to a question out of its two files: its text, and the lock."""
    lock = QuizLock.parse(LOCK_TEXT, "keys.lock")
    bank = parse_bank(*documents(only(name)), {}, lock)
    return bank.variant(name, 0).grade(answer)


def entered(name: str, answer: str) -> set[str]:
    """Return the files of the toolkit in which a function is entered meanwhile."""
    graded(name, answer)  # imports, and the schemas of the two kinds of file
    found: set[str] = set()

    def note(frame, event, _) -> None:
        if event == "call":
            found.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        assert not graded(name, answer).is_right
    finally:
        sys.setprofile(None)
    return {path for path in found if Path(path).is_relative_to(HOME)}


@pytest.mark.parametrize(
    ("name", "answer", "most"),
    [
        ("bytes", "84", 14),
        ("gap", "no_grad", 14),
        ("pairs", "1a 2b 3c", 14),
        ("essay", "1 :: text", 14),
        ("several", "a", 15),
        ("steps", "1 2 4 3", 15),
        ("line", "11", 15),
        ("grid", "column 1x2; row 2x1", 15),
        ("pick", "a", 17),
        ("row", "F0 F1 F2", 17),
    ],
)
def test_way_from_its_text_to_its_grade_is_short(name, answer, most):
    files = entered(name, answer)
    assert len(files) <= most, sorted(files)
