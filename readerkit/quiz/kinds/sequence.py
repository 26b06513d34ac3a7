"""Ordering and matching."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from readerkit.model.base import SOME, Count, Model, Text, at_least
from readerkit.model.language import Told
from readerkit.quiz.kinds.base import Grade, Question, Remark, letters, not_read
from readerkit.quiz.scoring import order_credit
from readerkit.quiz.seeded_random import Draw
from readerkit.quiz.variant_context import AnswerError, Scene


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

    def texts(self) -> list[str]:
        """Return the items."""
        return list(self.items)

    def ask(self, scene: Scene, draw: Draw) -> AskedOrder:
        """Return the items mixed, never in a right order."""
        mixed = draw.shuffled(range(len(self.items)))
        while tuple(mixed) in self.valid:
            mixed = draw.shuffled(mixed)
        shown = tuple(scene.text(self.items[index]) for index in mixed)
        place = {item: index for index, item in enumerate(mixed)}
        valid = tuple(tuple(place[item] for item in order) for order in self.valid)
        return AskedOrder(shown, valid)


@dataclass(frozen=True, slots=True)
class AskedOrder:
    """Items to put in order."""

    items: tuple[str, ...]
    valid: tuple[tuple[int, ...], ...]

    @property
    def help(self) -> str:
        """How to type an answer."""
        return Told(
            "the numbers 1 to {count} in order, with blanks", count=len(self.items)
        )

    @property
    def choices(self) -> int | None:
        """Orders are too many to guess."""
        return None

    def shown(self) -> dict[str, Any]:
        """Return the items with their numbers."""
        items = [
            {"label": str(number), "text": text}
            for number, text in enumerate(self.items, 1)
        ]
        return {"items": items}

    def grade(self, answer: str) -> Grade:
        """Return 1 - 2d/D for the distance to the nearest right order."""
        given = [int(word) - 1 for word in re.findall(r"\d{1,3}", answer)]
        if sorted(given) != list(range(len(self.items))):
            form = Told("the numbers 1 to {count}, each once", count=len(self.items))
            raise not_read(answer, form)
        credit = order_credit(given, self.valid)
        if credit == 1:
            return Grade(1)
        first = next((i for i, item in enumerate(given) if item != self.valid[0][i]), 0)
        told = Told(
            "Place {number} is the first to look at. Everything before it is in place."
            if first
            else "Place {number} is the first to look at. It starts elsewhere.",
            number=first + 1,
        )
        return Grade(credit, (Remark(told),))

    def typed_key(self) -> str:
        """Return the key as it would be typed."""
        return " ".join(str(item + 1) for item in self.valid[0])

    def solution(self) -> str:
        """Return the numbers, and the items in words."""
        order = self.valid[0]
        numbers = " ".join(str(item + 1) for item in order)
        return f"{numbers}: " + " → ".join(self.items[item] for item in order)


class Pair(Model, frozen=True):
    """Two sides that belong together."""

    left: Text
    right: Text


class Match(Question, frozen=True, tag="match"):
    """Pairs that belong together, and right sides that belong to nothing."""

    pairs: Annotated[tuple[Pair, ...], at_least(3, 9)]
    spare: tuple[Text, ...] = ()

    def texts(self) -> list[str]:
        """Return both sides."""
        return [side for pair in self.pairs for side in (pair.left, pair.right)] + list(
            self.spare
        )

    def ask(self, scene: Scene, draw: Draw) -> AskedMatch:
        """Return the left sides in order and the right sides mixed."""
        rights = list(
            dict.fromkeys([*(pair.right for pair in self.pairs), *self.spare])
        )
        mixed = draw.shuffled(list(dict.fromkeys(rights)))
        lefts = draw.shuffled(self.pairs)
        return AskedMatch(
            tuple(scene.text(pair.left) for pair in lefts),
            tuple(scene.text(right) for right in mixed),
            tuple(mixed.index(pair.right) for pair in lefts),
        )


@dataclass(frozen=True, slots=True)
class AskedMatch:
    """Left sides to find the right ones for."""

    lefts: tuple[str, ...]
    rights: tuple[str, ...]
    key: tuple[int, ...]

    @property
    def help(self) -> str:
        """How to type an answer."""
        return Told("a letter for each number, in the form 1x 2y")

    @property
    def choices(self) -> int | None:
        """Pairings are too many to guess."""
        return None

    def shown(self) -> dict[str, Any]:
        """Return both columns with their labels."""
        return {
            "left": [
                {"label": str(number), "text": text}
                for number, text in enumerate(self.lefts, 1)
            ],
            "right": [
                {"label": label, "text": text}
                for label, text in zip(
                    letters(len(self.rights)), self.rights, strict=True
                )
            ],
        }

    def grade(self, answer: str) -> Grade:
        """Return the share of pairs that are right."""
        given = dict(re.findall(r"(\d{1,2})\s*[-=:.)]?\s*([a-z])", answer.lower()))
        if not given:  # letters alone, in the order of the numbers
            found = re.findall(r"[a-z]", answer.lower())
            given = {str(number): label for number, label in enumerate(found, 1)}
        labels = letters(len(self.rights))
        numbers = {str(number) for number in range(1, len(self.lefts) + 1)}
        if set(given) != numbers or not set(given.values()) <= set(labels):
            form = Told(
                "a letter from a to {last} for each number from 1 to {count}, "
                "in the form 1x 2y",
                last=labels[-1],
                count=len(self.lefts),
            )
            raise not_read(answer, form)
        wrong = [
            number
            for number, right in enumerate(self.key, 1)
            if given[str(number)] != labels[right]
        ]
        remarks = [
            Remark(
                Told(
                    "{number}: “{item}” belongs elsewhere.",
                    number=number,
                    item=self.lefts[number - 1],
                )
            )
            for number in wrong
        ]
        return Grade(1 - len(wrong) / len(self.key), tuple(remarks))

    def typed_key(self) -> str:
        """Return the key as it would be typed."""
        labels = letters(len(self.rights))
        return " ".join(f"{n}{labels[right]}" for n, right in enumerate(self.key, 1))

    def solution(self) -> str:
        """Return every pair."""
        labels = letters(len(self.rights))
        return "; ".join(
            f"{n}{labels[right]}: {left} — {self.rights[right]}"
            for n, (left, right) in enumerate(zip(self.lefts, self.key, strict=True), 1)
        )
