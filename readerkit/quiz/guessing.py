"""Ways to beat single-choice questions of a bank without understanding them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import product

from readerkit.errors import ContentFault
from readerkit.quiz.bank import Bank
from readerkit.quiz.kinds.choice import Choice, Option

MAX_TRICK_GAIN = 0.15
"""How far above blind guessing a reader may get with a trick, over the bank."""
MIN_FOR_TRICKS = 8
"""Single-choice questions below which a trick that works is chance."""
MAX_POSITION_GAIN = 0.1
_COMMON = re.compile(r"[a-z0-9_]{5,}")


def _words(text: str) -> set[str]:
    return set(_COMMON.findall(text.casefold()))


def _alike(option: Option, others: list[Option]) -> float:
    """Return how many words an option has in common with the others."""
    own = _words(option.text)
    return sum(len(own & _words(each.text)) for each in others if each is not option)


Trick = Callable[[str, Option, list[Option]], float]
"""How much a prompt's options make one who knows nothing take one of them."""
TRICKS: Mapping[str, Trick] = {
    "taking the longest option": lambda _, each, options: len(each.text),
    "taking the shortest option": lambda _, each, options: -len(each.text),
    "taking the option that repeats the prompt": lambda prompt, each, options: len(
        _words(prompt) & _words(each.text)
    ),
    "taking the odd one out": lambda _, each, options: -_alike(each, options),
    "taking the option most like the others": lambda _, each, options: _alike(
        each, options
    ),
}


def tricks_that_work(bank: Bank, seeds: range) -> Iterator[ContentFault]:
    """Yield ways to beat single-choice questions without understanding them."""
    singles = [
        question
        for question in bank.questions.values()
        if isinstance(question, Choice) and not question.several
    ]
    if len(singles) < MIN_FOR_TRICKS:
        return
    chance = sum(1 / len(question.options) for question in singles) / len(singles)
    for name, trick in TRICKS.items():
        won = sum(_won(trick, question) for question in singles) / len(singles)
        if won - chance > MAX_TRICK_GAIN:
            what = f"{name} finds {won:.0%} of {len(singles)} keys"
            expected = f"at most {chance + MAX_TRICK_GAIN:.0%}"
            yield ContentFault(bank.file, 1, 1, what, "", expected)
    yield from _positions(bank, singles, seeds)


def _won(trick: Trick, question: Choice) -> float:
    """Return the chance that what a trick takes is right; among equals it guesses."""
    options = list(question.options)
    pull = [trick(question.prompt, option, options) for option in options]
    picked = [o for o, each in zip(options, pull, strict=True) if each == max(pull)]
    return sum(option.right for option in picked) / len(picked)


def _positions(
    bank: Bank, singles: list[Choice], seeds: range
) -> Iterator[ContentFault]:
    """Yield a letter that is right too often, over many variants."""
    seen: Counter[str] = Counter()
    chance: dict[str, float] = defaultdict(float)
    total = len(singles) * len(seeds)
    for question, seed in product(singles, seeds):
        _, draw = bank.scene(question.id, seed)
        for label, index in question.order(draw).items():
            seen[label] += question.options[index].right
            chance[label] += 1 / len(question.options)
    for label in seen:
        if (seen[label] - chance[label]) / total > MAX_POSITION_GAIN:
            share = seen[label] / total
            yield ContentFault(
                bank.file, 1, 1, f"{label} is right {share:.0%} of the time"
            )
