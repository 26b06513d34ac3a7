"""A program that sees how questions are written, and knows nothing, is at chance.

It answers the whole bank in every way of ``form_reader``. The best of its ways, found
in hindsight, may earn little more than a blind guess; and where a form is planted in a
third of a kind's questions, the same measure sees it: nothing passes by luck.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace as replace_fields
from functools import cache
from typing import Any

import pytest
from msgspec.structs import replace

from readerkit.quiz.bank import Bank
from readerkit.quiz.kinds import Question
from readerkit.quiz.prompts import LocatePrompt, SinglePrompt
from readerkit.quiz.seeded_draw import SeededDraw
from readerkit.quiz.variant import AnswerError, Variant
from tests.content import form_reader
from tests.content.test_quizzes import bank, lines

pytestmark = pytest.mark.sampled

SEEDS = range(16)
MAX_GAIN = 0.12
"""How far above a blind guess the best way may come, over the questions of a kind."""
ENOUGH = 9
"""Questions of a kind below which its best way is chance; they count in the whole."""

Plant = Callable[[Any, Variant], Question]


def credits(asked: Variant, draw: SeededDraw) -> dict[str, float]:
    """Return what each way of form earns."""
    prompt = asked.prompt
    shown = lines(prompt.search) if isinstance(prompt, LocatePrompt) else []
    found = {}
    for way, answer in form_reader.answers(prompt, shown, draw).items():
        try:
            found[way] = asked.grade(answer).credit
        except AnswerError:
            found[way] = 0.0
    return found


def earned(whole: Bank, names: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return by question what each way earns on average over variants."""
    found = {}
    for name in names:
        sums: dict[str, float] = defaultdict(float)
        for seed in SEEDS:
            drawn = credits(whole.variant(name, seed), SeededDraw(0, name, seed))
            for way, credit in drawn.items():
                sums[way] += credit / len(SEEDS)
        found[name] = dict(sums)
    return found


@cache
def whole() -> dict[str, dict[str, float]]:
    return earned(bank(), bank().questions)


def gains(found: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return by way how far above a blind guess it is, over the questions.

    Where a question has no such way, the program guesses.
    """
    ways = {way for each in found.values() for way in each}
    return {
        way: sum(
            each.get(way, each["at random"]) - each["at random"]
            for each in found.values()
        )
        / len(found)
        for way in ways
    }


def of_kind(kind: str) -> list[str]:
    return [name for name, each in bank().questions.items() if each.type == kind]


def best(found: dict[str, dict[str, float]]) -> tuple[float, str]:
    return max((gain, way) for way, gain in gains(found).items())


KINDS = sorted({each.type for each in bank().questions.values()})


@pytest.mark.parametrize("kind", [k for k in KINDS if len(of_kind(k)) >= ENOUGH])
@pytest.mark.further
def test_form_is_at_chance(kind):
    gain, way = best({name: whole()[name] for name in of_kind(kind)})
    assert gain <= MAX_GAIN, f"'{way}' earns {gain:.0%} more than a guess"


def test_form_fails_every_exam():
    """With the best way of each kind in hindsight, and any choice of questions."""
    program = {}
    for kind in KINDS:
        found = {name: whole()[name] for name in of_kind(kind)}
        _, way = best(found)
        program |= {n: each.get(way, each["at random"]) for n, each in found.items()}
    blind = {name: each["at random"] for name, each in whole().items()}
    assert sum(program.values()) - sum(blind.values()) <= 0.08 * len(program)
    names, count = list(program), bank().rules.exam.count
    for seed in range(500):
        asked = SeededDraw(0, "exam", seed).shuffled(names)[:count]
        assert (
            sum(program[name] for name in asked) / count < bank().rules.pass_mark - 0.2
        )


def test_nothing_is_learnt_from_the_form_of_other_topics():
    gain = learnt_gain(bank())
    assert gain <= MAX_GAIN, f"tricks together find {gain:.0%} more than a guess"


def learnt_gain(asked: Bank) -> float:
    """Return how far above a guess tricks are that other topics have taught."""
    seen: dict[str, list[tuple[list[list[float]], int]]] = defaultdict(list)
    for name in of_kind("single"):
        variant = asked.variant(name, 0)
        assert isinstance(variant.prompt, SinglePrompt)
        right = [each.label for each in variant.prompt.options].index(variant.typed_key)
        seen[variant.prompt.topic].append((form_reader.marks(variant.prompt), right))
    gain, count = 0.0, 0
    for topic, questions in seen.items():
        others = [each for other in seen if other != topic for each in seen[other]]
        weights = form_reader.learnt(others)
        for options, right in questions:
            pulls = [form_reader.pull(weights, option) for option in options]
            gain += (pulls.index(max(pulls)) == right) - 1 / len(options)
            count += 1
    return gain / count


# --- the measure sees a form that is planted in a third of the questions ---


def longer(question: Any, _: Variant) -> Question:
    return with_right(question, ", here as well as elsewhere and in all runs")


def with_comma(question: Any, _: Variant) -> Question:
    return with_right(question, ", so")


def with_right(question: Any, more: str) -> Question:
    options = [
        replace(each, text=each.text + more) if each.right else each
        for each in question.options
    ]
    return replace(question, options=tuple(options))


def told_twice(question: Any, _: Variant) -> Question:
    names = ["alpha", "bravo", "carlo", "delta", "early", "foxes", "gamma", "hotel"]
    pairs = [
        replace(each, left=f"{each.left} {name}", right=f"{each.right} {name}")
        for each, name in zip(question.pairs, names, strict=False)
    ]
    return replace(question, pairs=tuple(pairs))


def in_the_prompt(question: Any, _: Variant) -> Question:
    value = question.answer.value
    return replace(question, prompt=f"{question.prompt} Others got {{{value}}}.")


def words_of_the_line(question: Any, asked: Variant) -> Question:
    prompt: Any = asked.prompt
    line = lines(prompt.search)[int(asked.typed_key) - prompt.search.first]
    return replace(question, prompt=" ".join(sorted(form_reader.words(line))))


def first_word(question: Any, asked: Variant) -> Question:
    words = sorted(question.words, key=lambda word: word != asked.typed_key)
    return replace(question, words=tuple(words))


def model_answer(question: Any, _: Variant) -> Question:
    return replace(question, prompt=question.model)


@pytest.mark.parametrize(
    ("kind", "plant"),
    [
        ("single", longer),
        ("match", told_twice),
        ("numeric", in_the_prompt),
        ("locate", words_of_the_line),
        ("predict", first_word),
        ("short", model_answer),
    ],
)
def test_planted_form_is_seen(kind, plant):
    fit = [name for name in of_kind(kind) if kind != "predict" or is_word(name)]
    told = betrayed(fit if kind == "predict" else fit[::3], plant)
    gain, _ = best(earned(told, of_kind(kind)))
    assert gain > 1.5 * MAX_GAIN


def test_planted_form_is_learnt():
    told = betrayed(of_kind("single")[::2], with_comma)
    assert learnt_gain(told) > 1.5 * MAX_GAIN


def betrayed(names: Iterable[str], plant: Plant) -> Bank:
    """Return the bank with a form that tells the key of these questions."""
    told = {n: plant(bank().questions[n], bank().variant(n, 0)) for n in names}
    return replace_fields(bank(), questions={**bank().questions, **told})


def is_word(name: str) -> bool:
    """Tell whether one word of a few is asked for: a third of what is to predict."""
    question: Any = bank().questions[name]
    return bank().variant(name, 0).typed_key in question.words


@pytest.mark.parametrize("name", of_kind("numeric"))
def test_the_example_of_how_an_answer_looks_is_no_key(name):
    for seed in SEEDS:
        asked = bank().variant(name, seed)
        with pytest.raises(AnswerError) as refused:
            asked.grade("a number")
        _, _, form = str(refused.value).partition("expected a number")
        examples = re.findall(r"\d[\d./]*(?: [^\s,]+)?", form)
        assert examples
        for example in examples:
            assert asked.grade(example.removesuffix(" or")).credit < 1
