"""Ordering and matching."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Annotated, ClassVar

from msgspec.structs import replace

from readerkit.model.base import SOME, UNWRITTEN, Count, Text, at_least
from readerkit.model.language import Told, made_of
from readerkit.quiz.kinds.question import Question, Refutation, letters, not_read
from readerkit.quiz.messages import Remark
from readerkit.quiz.prompts import Labelled, MatchPrompt, OrderPrompt
from readerkit.quiz.scoring import order_credit, share_above_constant
from readerkit.quiz.seeded_draw import SeededDraw
from readerkit.quiz.variant import AnswerError, Grade, Scene, Variant


class Because(Refutation, frozen=True):
    """Why an item stands before the next: what refutes the other order of both."""

    TEXTS: ClassVar[tuple[str, ...]] = ("pair", "why")
    pair: Annotated[str, UNWRITTEN] = ""
    """Both items."""


class Order(Question, frozen=True, tag="order"):
    """Items in their right order, and other orders that are right as well."""

    items: Annotated[tuple[Text, ...], at_least(3, 9)]
    because: tuple[Because, ...] = ()
    """Why each item stands before the next."""
    also: Annotated[tuple[tuple[Count, ...], ...], SOME] = ()

    def check(self) -> None:
        """Refuse reasons for other pairs, and an order that names no item once."""
        if len(self.because) not in (0, len(self.items) - 1):
            got, count = len(self.because), len(self.items) - 1
            raise AnswerError(
                f"'because' has {got} reasons: expected {count}, one for each item "
                "and the next"
            )
        for order in self.also:
            if sorted(order) != list(range(1, len(self.items) + 1)):
                shown = " ".join(map(str, order))
                raise AnswerError(f"'also' has {shown}: expected each item once")

    @property
    def valid(self) -> tuple[tuple[int, ...], ...]:
        """Every right order: positions in ``items``, from 0."""
        others = tuple(tuple(n - 1 for n in order) for order in self.also)
        return (tuple(range(len(self.items))), *others)

    def refutations(self) -> Mapping[str, Refutation]:
        """Return the reasons, each with the two items that it is about."""
        pairs = enumerate(zip(pairwise(self.items), self.because, strict=False), 1)
        return {
            f"because/{at}": replace(each, pair=" → ".join(items))
            for at, (items, each) in pairs
        }

    def unborne(self) -> Iterator[str]:
        """Yield each two neighbours whose order no claim bears out."""
        reasons = dict(enumerate(self.refutations().values()))
        for at, items in enumerate(pairwise(self.items)):
            pair = " → ".join(items)
            by = reasons.get(at, self)
            if not self.is_borne_out(pair, by=by, beyond=items):
                yield pair

    def own_texts(self) -> list[str]:
        """Return the items and the reasons."""
        return [*self.items, *(each.why for each in self.because)]

    def ask(self, scene: Scene, draw: SeededDraw) -> AskedOrder:
        """Return the items mixed, never in a right order."""
        mixed = draw.shuffled(range(len(self.items)))
        while tuple(mixed) in self.valid:
            mixed = draw.shuffled(mixed)
        shown = [scene.text(self.items[index]) for index in mixed]
        place = {item: number for number, item in enumerate(mixed, 1)}
        valid = [[place[item] for item in order] for order in self.valid]
        numbers = " ".join(map(str, valid[0]))
        key = made_of(
            (shown[number - 1] for number in valid[0]),
            lambda said: f"{numbers}: {' → '.join(said)}",
        )
        how = Told("the numbers 1 to {count} in order, with blanks", count=len(shown))
        items = Labelled.each(range(1, len(shown) + 1), shown)
        remarks = [
            reason.remark(scene, slot) for slot, reason in self.refutations().items()
        ]
        return AskedOrder(
            prompt=OrderPrompt(*scene.head(how), items=items),
            told=scene.solved(key),
            typed_key=numbers,
            valid=valid,
            refuted=dict(zip(pairwise(valid[0]), remarks, strict=False)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedOrder(Variant):
    """Items to put in order."""

    valid: list[list[int]]
    """Every right order, by the numbers of the items."""
    refuted: Mapping[tuple[int, int], Remark]
    """What is said to who has two neighbours the other way round."""

    def step(self) -> str:
        """Return why one item stands before its next; none where it is half of all."""
        told = [*self.refuted.values()]
        return told[0].text if len(told) > 2 else ""

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
        remarks = [
            remark
            for (one, other), remark in self.refuted.items()
            if given.index(one) > given.index(other)
            and all(order.index(one) < order.index(other) for order in self.valid)
        ]
        if remarks:
            return Grade(credit, tuple(remarks))
        first = next((i for i, item in enumerate(given) if item != key[i]), 0)
        told = Told(
            "Place {number} is the first to look at. Everything before it is in place."
            if first
            else "Place {number} is the first to look at. It starts elsewhere.",
            number=first + 1,
        )
        return Grade(credit, (Remark(told),))


class Pair(Refutation, frozen=True):
    """Two sides that belong together; why the right one fits no other left."""

    left: Text
    right: Text

    @property
    def both(self) -> str:
        """Both sides, as they are read together."""
        return f"{self.left} — {self.right}"

    @property
    def texts(self) -> Mapping[str, str]:
        """What it says that is so."""
        return {"pair": self.both, **super().texts}


class Spare(Refutation, frozen=True):
    """A right side that belongs to no left one, and why."""

    text: Text


class Match(Question, frozen=True, tag="match"):
    """Pairs that belong together, and right sides that belong to nothing."""

    pairs: Annotated[tuple[Pair, ...], at_least(3, 9)]
    spare: tuple[Spare, ...] = ()

    def refutations(self) -> Mapping[str, Refutation]:
        """Return what is said to who puts a right side where it does not belong."""
        pairs = {f"pair/{at}": pair for at, pair in enumerate(self.pairs, 1)}
        spare = {f"spare/{at}": each for at, each in enumerate(self.spare, 1)}
        return {**pairs, **spare}

    def unborne(self) -> Iterator[str]:
        """Yield each pair that no claim holds together."""
        for pair in self.pairs:
            sides = (pair.left, pair.right)
            if not self.is_borne_out(pair.both, by=pair, beyond=sides):
                yield pair.both

    def own_texts(self) -> list[str]:
        """Return the sides and the reasons."""
        sides = [side for pair in self.pairs for side in (pair.left, pair.right)]
        reasons = [each.why for each in self.refutations().values()]
        return [*sides, *(each.text for each in self.spare), *reasons]

    def ask(self, scene: Scene, draw: SeededDraw) -> AskedMatch:
        """Return the left sides in order and the right sides mixed."""
        rights = [pair.right for pair in self.pairs]
        rights += [each.text for each in self.spare]
        mixed = draw.shuffled(list(dict.fromkeys(rights)))
        pairs = draw.shuffled(self.pairs)
        labels = dict(zip(mixed, letters(len(mixed)), strict=True))
        texts = [scene.text(pair.left) for pair in pairs]
        key = [labels[pair.right] for pair in pairs]
        typed = [f"{number}{label}" for number, label in enumerate(key, 1)]
        sides = zip(texts, (scene.text(pair.right) for pair in pairs), strict=True)
        solution = made_of(
            chain.from_iterable(sides),
            lambda said: "; ".join(map("{}: {} — {}".format, typed, said, said)),
        )
        left = Labelled.each(range(1, len(pairs) + 1), texts)
        right = Labelled.each(labels.values(), map(scene.text, mixed))
        how = Told("a letter for each number, in the form 1x 2y")
        told = zip(rights, self.refutations().items(), strict=True)
        remarks = {
            labels[right]: each.remark(scene, slot)
            for right, (slot, each) in told
            if each.why
        }
        return AskedMatch(
            prompt=MatchPrompt(*scene.head(how), left=left, right=right),
            told=scene.solved(solution),
            typed_key=" ".join(typed),
            key={entry.label: label for entry, label in zip(left, key, strict=True)},
            lefts={entry.label: entry.text for entry in left},
            labels=list(labels.values()),
            refuted=remarks,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedMatch(Variant):
    """Left sides to find the right ones for."""

    key: Mapping[str, str]
    """The letter of each number."""
    lefts: Mapping[str, str]
    labels: list[str]
    """Every letter."""
    refuted: Mapping[str, Remark]
    """What is said to who gives a letter to numbers that it does not belong to."""

    def grade(self, answer: str) -> Grade:
        """Return the share of pairs that are right, beyond one letter for all."""
        pairs = re.findall(r"(\d{1,2})\s*(?:->|[-=:.)→])?\s*([a-z])", answer.lower())
        given = dict(pairs) if len({*dict(pairs)}) == len(pairs) else {"": ""}
        if not given:  # letters alone, in the order of the numbers
            found = re.findall(r"[a-z]", answer.lower())
            given = {str(number): label for number, label in enumerate(found, 1)}
        if given.keys() != self.key.keys() or not {*given.values()} <= {*self.labels}:
            raise not_read(answer, self.form)
        wrong: dict[str, list[str]] = {}
        for number, label in self.key.items():
            if given[number] != label:
                wrong.setdefault(given[number], []).append(number)
        remarks = [
            self._remark(label, number)
            for label, numbers in wrong.items()
            for number in (numbers[:1] if label in self.refuted else numbers)
        ]
        total, constant = len(self.key), max(Counter(self.key.values()).values())
        right = total - sum(map(len, wrong.values()))
        credit = share_above_constant(right, total, constant)
        return Grade(credit, tuple(remarks))

    @property
    def form(self) -> str:
        """How an answer looks."""
        return Told(
            "a letter from a to {last} for each number from 1 to {count}, "
            "in the form 1x 2y",
            last=self.labels[-1],
            count=len(self.key),
        )

    def _remark(self, label: str, number: str) -> Remark:
        """Return what is said to a letter that is wrong for a number.

        What refutes the letter names it alone: it is said once for all numbers.
        """
        if known := self.refuted.get(label):
            why = Told("{label}: {why}", label=label, why=known.text)
            return Remark(why, known.place)
        told = "{number}: “{item}” belongs elsewhere."
        return Remark(Told(told, number=number, item=self.lefts[number]))
