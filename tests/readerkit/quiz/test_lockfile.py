"""The lock of a bank: read as it was written, and what counts as a difference."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from readerkit.errors import ContentError
from readerkit.quiz.lockfile import LockedFact, QuizLock, ResolvedPlace, differences
from tests.readerkit.quiz.sample import LOCK as SAMPLE

LOCK = QuizLock(
    SAMPLE.places,
    {
        "count": LockedFact(8, {"records/tp.json": "a" * 64}),
        "order": LockedFact(("send", "recv"), {"records/pp.json": "b" * 64}),
    },
    SAMPLE.works,
)


def test_lock_is_read_as_it_was_written():
    assert QuizLock.parse(LOCK.to_text(), "keys.lock") == LOCK
    assert QuizLock.parse(QuizLock().to_text(), "keys.lock") == QuizLock()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"format": 2', '"format": 1'),
        ('"first": 3', '"first": "3"'),
        ('"first": 3', '"first": -3'),
        ('"value": 8', '"value": null'),
        ('"value": 8', '"value": {"a": 1}'),
        ('"path": "a.py", ', ""),
        ('"places": {', '"places": ['),
        ('"facts": {', '"fact": {'),
        ('"title": "It closes"', '"titel": "It closes"'),
    ],
)
def test_text_that_is_no_lock_is_refused(before, after):
    text = LOCK.to_text()
    assert before in text
    with pytest.raises(ContentError, match="--update-lock"):
        QuizLock.parse(text.replace(before, after, 1), "keys.lock")


def test_moved_line_and_another_value_are_differences():
    moved = {
        **LOCK.places,
        "line/key": ResolvedPlace("sample", "a.py", 14, 15, "b" * 40),
    }
    facts = {**LOCK.facts, "count": LockedFact(9, {"records/tp.json": "c" * 64})}
    found = differences(LOCK, replace(LOCK, places=moved, facts=facts))
    assert [(each.part, each.was, each.now) for each in found] == [
        ("line/key", f"sample a.py:12-13 {'b' * 12}", f"sample a.py:14-15 {'b' * 12}"),
        ("count", "8", "9"),
    ]


def test_key_that_is_new_or_gone_is_a_difference():
    assert len(differences(LOCK, QuizLock())) == 9
    assert len(differences(QuizLock(), LOCK)) == 9


def test_source_made_anew_that_says_the_same_is_none():
    again = replace(LOCK.facts["count"], made_from={"records/tp.json": "d" * 64})
    assert not differences(LOCK, replace(LOCK, facts={**LOCK.facts, "count": again}))
