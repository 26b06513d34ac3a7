"""Draws are the same on every machine and in every version of Python."""

from __future__ import annotations

import hashlib
from collections import Counter

from readerkit.quiz.variant import Draw
from tests.readerkit.quiz.sample import sample_bank


def test_draw_is_the_digest_of_version_question_and_seed():
    digest = hashlib.sha256(b"1\0ring\x007\x000").digest()
    assert Draw(1, "ring", 7).below(10**9) == int.from_bytes(digest[:8], "big") % 10**9


def test_known_draws_stay_what_they_are():
    draw = Draw(1, "ring", 7)
    assert [draw.below(100) for _ in range(6)] == [82, 64, 4, 18, 4, 28]
    assert Draw(1, "ring", 7).shuffled("abcdef") == list("bdcafe")


def test_version_question_and_seed_each_matter():
    def numbers(draw: Draw) -> tuple[int, ...]:
        return tuple(draw.below(1000) for _ in range(5))

    draws = [Draw(1, "a", 0), Draw(2, "a", 0), Draw(1, "b", 0), Draw(1, "a", 1)]
    assert len({numbers(draw) for draw in draws}) == 4


def test_shuffles_put_each_item_anywhere():
    places = Counter(
        Draw(1, "q", seed).shuffled("abcd").index("a") for seed in range(800)
    )
    assert all(150 < places[index] < 250 for index in range(4))


def test_money_has_its_cents():
    scene, _ = sample_bank().scene("bytes", 0)
    told = scene.text("${p / 14} an hour, ${p / 70} a try, ${p} and {p / 14}")
    assert told == "$0.50 an hour, $0.10 a try, $7 and 0.5"
    assert scene.text("${p / 56}") == "$0.125"
