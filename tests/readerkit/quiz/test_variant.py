"""What a variant of a question says."""

from __future__ import annotations

from tests.readerkit.quiz.sample import sample_bank


def test_money_has_its_cents():
    scene, _ = sample_bank().scene("bytes", 0)
    told = scene.text("${p / 14} an hour, ${p / 70} a try, ${p} and {p / 14}")
    assert told == "$0.50 an hour, $0.10 a try, $7 and 0.5"
    assert scene.text("${p / 56}") == "$0.125"
