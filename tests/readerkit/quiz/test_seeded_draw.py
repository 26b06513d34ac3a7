"""Draws are the same on every machine and in every version of Python."""

from __future__ import annotations

import hashlib
from collections import Counter

from readerkit.quiz.seeded_draw import SeededDraw


def test_draw_is_the_digest_of_version_question_and_seed():
    digest = hashlib.sha256(b"1\0ring\x007\x000").digest()
    drawn = SeededDraw(1, "ring", 7).below(10**9)
    assert drawn == int.from_bytes(digest[:8], "big") % 10**9


def test_known_draws_stay_what_they_are():
    draw = SeededDraw(1, "ring", 7)
    assert [draw.below(100) for _ in range(6)] == [82, 64, 4, 18, 4, 28]
    assert SeededDraw(1, "ring", 7).shuffled("abcdef") == list("bdcafe")


def test_version_question_and_seed_each_matter():
    def numbers(draw: SeededDraw) -> tuple[int, ...]:
        return tuple(draw.below(1000) for _ in range(5))

    names = [(1, "a", 0), (2, "a", 0), (1, "b", 0), (1, "a", 1)]
    assert len({numbers(SeededDraw(*name)) for name in names}) == 4


def test_shuffles_put_each_item_anywhere():
    places = Counter(
        SeededDraw(1, "q", seed).shuffled("abcd").index("a") for seed in range(800)
    )
    assert all(150 < places[index] < 250 for index in range(4))
