"""Ordering and matching."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from readerkit.content.claims import Claimed
from readerkit.model.base import SOME, Count, Text, at_least
from readerkit.model.language import Told
from readerkit.quiz.kinds.base import Question, letters, not_read
from readerkit.quiz.messages import Labelled, MatchPrompt, OrderPrompt, Remark
from readerkit.quiz.scoring import order_credit
from readerkit.quiz.variant import AnswerError, Draw, Grade, Scene, Variant


class Order(Question, frozen=True, tag="order"):
    """Items in their right order, and other orders that are right as well."""

    items: Annotated[tuple[Text, ...], at_least(3, 9)]
    also: Annotated[tuple[tuple[Count, ...], ...], SOME] = ()

    def check(self) -> None:
        """Refuse another order that does not name each item once."""
        for order in self.also:
            if sorted(order) != list(range(1, len(self.items) + 1)):
                shown = " ".join(map(str, order))
                raise AnswerError(f"'also' has {shown}: expected each item once")

    @property
    def valid(self) -> tuple[tuple[int, ...], ...]:
        """Every right order: positions in ``items``, from 0."""
        others = tuple(tuple(n - 1 for n in order) for order in self.also)
        return (tuple(range(len(self.items))), *others)

    def own_texts(self) -> list[str]:
        """Return the items."""
        return list(self.items)

    def ask(self, scene: Scene, draw: Draw) -> AskedOrder:
        """Return the items mixed, never in a right order."""
        mixed = draw.shuffled(range(len(self.items)))
        while tuple(mixed) in self.valid:
            mixed = draw.shuffled(mixed)
        shown = [scene.text(self.items[index]) for index in mixed]
        place = {item: number for number, item in enumerate(mixed, 1)}
        valid = [[place[item] for item in order] for order in self.valid]
        numbers = " ".join(map(str, valid[0]))
        words = " → ".join(shown[number - 1] for number in valid[0])
        how = Told("the numbers 1 to {count} in order, with blanks", count=len(shown))
        items = Labelled.each(range(1, len(shown) + 1), shown)
        return AskedOrder(
            prompt=OrderPrompt(*scene.head(how), items=items),
            told=scene.solved(f"{numbers}: {words}"),
            typed_key=numbers,
            valid=valid,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedOrder(Variant):
    """Items to put in order."""

    valid: list[list[int]]
    """Every right order, by the numbers of the items."""

    def grade(self, answer: str) -> Grade:
        """Return 1 - 2d/D for the distance to the nearest right order."""
        given = [int(word) for word in re.findall(r"\d{1,9}", answer)]
        key = self.valid[0]
        if len(given) == 1:  # 3142: no number has two digits
            given = [int(digit) for digit in answer.strip() if digit.isdigit()]
        if sorted(given) != sorted(key):
            form = Told("the numbers 1 to {count}, each once", count=len(key))
            raise not_read(answer, form)
        credit = order_credit(given, self.valid)
        if credit == 1:
            return Grade(1)
        first = next((i for i, item in enumerate(given) if item != key[i]), 0)
        told = Told(
            "Place {number} is the first to look at. Everything before it is in place."
            if first
            else "Place {number} is the first to look at. It starts elsewhere.",
            number=first + 1,
        )
        return Grade(credit, (Remark(told),))


class Pair(Claimed, frozen=True):
    """Two sides that belong together."""

    TEXTS: ClassVar = ("left", "right")
    left: Text
    right: Text


class Match(Question, frozen=True, tag="match"):
    """Pairs that belong together, and right sides that belong to nothing."""

    pairs: Annotated[tuple[Pair, ...], at_least(3, 9)]
    spare: tuple[Text, ...] = ()

    def claimed(self) -> Iterator[Claimed]:
        """Yield the question and its pairs."""
        yield from (self, *self.pairs)

    def own_texts(self) -> list[str]:
        """Return both sides."""
        return [side for pair in self.pairs for side in (pair.left, pair.right)] + list(
            self.spare
        )

    def ask(self, scene: Scene, draw: Draw) -> AskedMatch:
        """Return the left sides in order and the right sides mixed."""
        rights = [*(pair.right for pair in self.pairs), *self.spare]
        mixed = draw.shuffled(list(dict.fromkeys(rights)))
        pairs = draw.shuffled(self.pairs)
        labels = dict(zip(mixed, letters(len(mixed)), strict=True))
        texts = [scene.text(pair.left) for pair in pairs]
        key = [labels[pair.right] for pair in pairs]
        rows = [
            (f"{number}{label}", f"{left} — {scene.text(pair.right)}")
            for number, (label, left, pair) in enumerate(
                zip(key, texts, pairs, strict=True), 1
            )
        ]
        left = Labelled.each(range(1, len(pairs) + 1), texts)
        right = Labelled.each(labels.values(), map(scene.text, mixed))
        how = Told("a letter for each number, in the form 1x 2y")
        return AskedMatch(
            prompt=MatchPrompt(*scene.head(how), left=left, right=right),
            told=scene.solved("; ".join(f"{typed}: {words}" for typed, words in rows)),
            typed_key=" ".join(typed for typed, _ in rows),
            key={entry.label: label for entry, label in zip(left, key, strict=True)},
            lefts={entry.label: entry.text for entry in left},
            labels=list(labels.values()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedMatch(Variant):
    """Left sides to find the right ones for."""

    key: Mapping[str, str]
    """The letter of each number."""
    lefts: Mapping[str, str]
    labels: list[str]
    """Every letter."""

    def grade(self, answer: str) -> Grade:
        """Return the share of pairs that are right."""
        pairs = re.findall(r"(\d{1,2})\s*(?:->|[-=:.)→])?\s*([a-z])", answer.lower())
        given = dict(pairs) if len({*dict(pairs)}) == len(pairs) else {"": ""}
        if not given:  # letters alone, in the order of the numbers
            found = re.findall(r"[a-z]", answer.lower())
            given = {str(number): label for number, label in enumerate(found, 1)}
        if given.keys() != self.key.keys() or not {*given.values()} <= {*self.labels}:
            form = Told(
                "a letter from a to {last} for each number from 1 to {count}, "
                "in the form 1x 2y",
                last=self.labels[-1],
                count=len(self.key),
            )
            raise not_read(answer, form)
        remarks = [
            Remark(
                Told(
                    "{number}: “{item}” belongs elsewhere.",
                    number=number,
                    item=self.lefts[number],
                )
            )
            for number, label in self.key.items()
            if given[number] != label
        ]
        return Grade(1 - len(remarks) / len(self.key), tuple(remarks))
