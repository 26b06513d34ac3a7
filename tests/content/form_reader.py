"""A reader who knows nothing of the field, and sees how a question is written.

It has a way for each trick that a test lets through: the longest option, what repeats
the prompt, the order in which things stand, a number of the prompt. It sees prompts
alone, as the JSON protocol sends them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from math import exp

from readerkit.quiz.prompts import (
    ChoicePrompt,
    FillPrompt,
    Labelled,
    LocatePrompt,
    MatchPrompt,
    NumericPrompt,
    OrderPrompt,
    PredictPrompt,
    Prompt,
    ShortPrompt,
    SketchPrompt,
)
from readerkit.quiz.seeded_draw import SeededDraw

Weight = Callable[[str, Labelled, Sequence[Labelled]], float]
"""How much a prompt and the other texts make it take this one."""
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def words(text: str) -> set[str]:
    """Return the longer words of a text."""
    return set(re.findall(r"[a-z0-9_]{4,}", text.lower()))


def alike(one: Labelled, all_: Iterable[Labelled]) -> float:
    own = words(one.text)
    return sum(len(own & words(each.text)) for each in all_ if each is not one)


WEIGHTS: dict[str, Weight] = {
    "longest": lambda _, one, all_: len(one.text),
    "shortest": lambda _, one, all_: -len(one.text),
    "most words": lambda _, one, all_: len(one.text.split()),
    "repeats the prompt": lambda p, one, all_: len(words(p) & words(one.text)),
    "new to the prompt": lambda p, one, all_: -len(words(p) & words(one.text)),
    "odd one out": lambda _, one, all_: -alike(one, all_),
    "most like the others": lambda _, one, all_: alike(one, all_),
    "has code": lambda _, one, all_: one.text.count("`"),
    "has a number": lambda _, one, all_: bool(NUMBER.search(one.text)),
    "has a comma": lambda _, one, all_: one.text.count(","),
    "is cautious": lambda _, one, all_: bool(
        words(one.text) & {"some", "about", "more", "less", "fewer", "nearly"}
    ),
    "is absolute": lambda _, one, all_: bool(
        words(one.text) & {"each", "every", "nothing", "never", "only", "none"}
    ),
}


def ranked(weight: Weight, prompt: str, texts: Sequence[Labelled]) -> list[Labelled]:
    """Return texts by a weight, the heaviest first; equal ones as they stand."""
    return sorted(texts, key=lambda one: -weight(prompt, one, texts))


def answers(asked: Prompt, lines: Sequence[str], draw: SeededDraw) -> dict[str, str]:
    """Return what each way answers; ``lines`` are those among which one is asked for.

    ``at random`` is among them: what somebody answers who does not even look.
    """
    found: dict[str, str]
    if isinstance(asked, ChoicePrompt):
        found = _choices(asked, draw)
    elif isinstance(asked, MatchPrompt):
        found = _matches(asked, draw)
    elif isinstance(asked, OrderPrompt):
        found = {
            name: " ".join(each.label for each in ranked(of, asked.prompt, asked.items))
            for name, of in WEIGHTS.items()
        }
        found["as it stands"] = " ".join(each.label for each in asked.items)
        found["at random"] = " ".join(e.label for e in draw.shuffled(asked.items))
    elif isinstance(asked, LocatePrompt):
        found = _lines(asked, lines, draw)
    elif isinstance(asked, SketchPrompt):
        found = _cells(asked, draw)
    elif isinstance(asked, PredictPrompt) and asked.length and asked.length > 1:
        found = _rows(asked, draw)
    elif isinstance(asked, PredictPrompt) and asked.words:
        texts = Labelled.each(asked.words, asked.words)
        found = {
            name: ranked(of, asked.prompt, texts)[0].label
            for name, of in WEIGHTS.items()
        }
        found |= {"first": asked.words[0], "last": asked.words[-1]}
        found["at random"] = draw.choice(asked.words)
    elif isinstance(asked, NumericPrompt | PredictPrompt):
        found = _numbers(asked.prompt)
    elif isinstance(asked, FillPrompt):
        code = re.findall(r"[a-z_]{3,}", asked.prompt)
        found = {"at random": draw.choice(code), "longest": max(code, key=len)}
    else:
        assert isinstance(asked, ShortPrompt)
        found = {"repeats the prompt": asked.prompt, "at random": "I do not know."}
    return found


def _choices(asked: ChoicePrompt, draw: SeededDraw) -> dict[str, str]:
    count = max(2, len(asked.options) // 2) if asked.several else 1
    found = {
        name: " ".join(
            each.label for each in ranked(of, asked.prompt, asked.options)[:count]
        )
        for name, of in WEIGHTS.items()
    }
    some = draw.shuffled(asked.options)[:count]
    found["at random"] = " ".join(each.label for each in some)
    found["first"] = " ".join(each.label for each in asked.options[:count])
    found["last"] = " ".join(each.label for each in asked.options[-count:])
    return found


def _matches(asked: MatchPrompt, draw: SeededDraw) -> dict[str, str]:
    def paired(lefts: Iterable[Labelled], rights: Iterable[Labelled]) -> str:
        pairs = zip(lefts, rights, strict=False)
        return " ".join(f"{left.label}{right.label}" for left, right in pairs)

    found = {
        name: paired(ranked(of, "", asked.left), ranked(of, "", asked.right))
        for name, of in WEIGHTS.items()
    }
    likest, free = [], list(asked.right)
    for left in asked.left:
        free.sort(key=lambda one: -len(words(left.text) & words(one.text)))
        likest.append(free.pop(0))
    found["shares words"] = paired(asked.left, likest)
    found["as it stands"] = paired(asked.left, asked.right)
    found["one for all"] = paired(asked.left, [asked.right[0]] * len(asked.left))
    found["at random"] = paired(asked.left, draw.shuffled(asked.right))
    return found


def _lines(
    asked: LocatePrompt, lines: Sequence[str], draw: SeededDraw
) -> dict[str, str]:
    first = asked.search.first
    texts = Labelled.each(range(first, first + len(lines)), lines)
    texts = tuple(each for each in texts if words(each.text))
    found = {
        name: ranked(of, asked.prompt, texts)[0].label for name, of in WEIGHTS.items()
    }
    for part in range(10):
        found[f"{part} tenths down"] = texts[part * len(texts) // 10].label
    found["at random"] = draw.choice(texts).label
    return found


def _cells(asked: SketchPrompt, draw: SeededDraw) -> dict[str, str]:
    numbers = [each.replace(",", "") for each in NUMBER.findall(asked.prompt)] or ["1"]
    ranks = ",".join(map(str, range(asked.ranks)))
    halves = f"{ranks[: len(ranks) // 2]}|{ranks[len(ranks) // 2 + 1 :]}"

    def filled(at: int) -> str:
        kinds = {
            "word": asked.words[at % len(asked.words)] if asked.words else "",
            "shape": "x".join((numbers * 2)[at % len(numbers) :][:2]),
            "number": numbers[at % len(numbers)],
            "groups": halves if at % 2 else ranks,
        }
        return "\n".join(" ".join(kinds[c] for c in asked.cells) for _ in asked.rows)

    found = {f"{at} everywhere": filled(at) for at in range(6)}
    found["at random"] = filled(draw.below(60))
    return found


def _rows(asked: PredictPrompt, draw: SeededDraw) -> dict[str, str]:
    length = asked.length
    assert isinstance(length, int)
    if asked.words:
        each = asked.words
        rows = {
            "in turn": (each * length)[:length],
            "one after another": sorted((each * length)[:length]),
            "first": [each[0]] * length,
            "at random": [draw.choice(each) for _ in range(length)],
        }
    else:
        chunk = "a" if asked.schedule and asked.schedule.chunks > 1 else ""
        steps = [f"{way}{at}{chunk}" for at in range(length) for way in "FB"]
        rows = {
            "in turn": steps[:length],
            "one after another": steps[: 2 * length : 2],
            "at random": [draw.choice(steps) for _ in range(length)],
        }
    return {name: " ".join(row) for name, row in rows.items()}


def _numbers(prompt: str) -> dict[str, str]:
    told = [float(each.replace(",", "")) for each in NUMBER.findall(prompt)] or [1.0]
    product = 1.0
    for each in told:
        product *= each or 1
    found = {f"number {at}": each for at, each in enumerate(islice(told, 6))}
    found |= {"largest": max(told), "smallest": min(told), "sum": sum(told)}
    found |= {"product": product, "last": told[-1], "two": 2.0, "at random": 1.0}
    if len(told) > 1:
        found |= {"times": told[0] * told[1], "over": told[0] / (told[1] or 1)}
    return {name: repr(each) for name, each in found.items()}


# --- what the questions of other topics betray, put together ---


def marks(asked: ChoicePrompt) -> list[list[float]]:
    """Return of each option how much every trick pulls to it, against the others."""
    columns = []
    for weight in WEIGHTS.values():
        pulls = [weight(asked.prompt, one, asked.options) for one in asked.options]
        mean = sum(pulls) / len(pulls)
        spread = (sum((pull - mean) ** 2 for pull in pulls) / len(pulls)) ** 0.5
        columns.append([(pull - mean) / (spread or 1) for pull in pulls])
    return [list(row) for row in zip(*columns, strict=True)]


def learnt(seen: Sequence[tuple[list[list[float]], int]]) -> list[float]:
    """Return the weights of the tricks that explain which options were right.

    A softmax over the options of each question, by gradient descent.
    """
    weights = [0.0] * len(WEIGHTS)
    for _ in range(100):
        slope = [0.1 * len(seen) * each for each in weights]  # towards none at all
        for options, right in seen:
            odds = [exp(pull(weights, option)) for option in options]
            for at, option in enumerate(options):
                off = odds[at] / sum(odds) - (at == right)
                slope = [s + off * m for s, m in zip(slope, option, strict=True)]
        weights = [
            each - 0.3 * s / len(seen) for each, s in zip(weights, slope, strict=True)
        ]
    return weights


def pull(weights: Sequence[float], option: Sequence[float]) -> float:
    """Return how much an option is taken for the right one."""
    return sum(each * mark for each, mark in zip(weights, option, strict=True))
