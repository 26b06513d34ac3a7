"""What a page marks an answer by without a server: what ``grade`` says, in a table.

Nothing here knows what is right: each table holds what the variant's own ``grade`` gave
for an answer. The page's script only reads what was typed, and looks it up.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, permutations
from typing import Any

from msgspec import json

from readerkit.model.expression import Number
from readerkit.model.language import Say, Told, said
from readerkit.quiz.found_words import terms
from readerkit.quiz.kinds.choice import AskedChoice
from readerkit.quiz.kinds.fill import AskedFill
from readerkit.quiz.kinds.locate import FURTHER_DOWN, FURTHER_UP, TOO_WIDE, AskedLine
from readerkit.quiz.kinds.numeric import AskedNumber
from readerkit.quiz.kinds.predict import AskedWords
from readerkit.quiz.kinds.question import Question
from readerkit.quiz.kinds.sequence import AskedMatch, AskedOrder
from readerkit.quiz.kinds.short import AskedShort
from readerkit.quiz.kinds.sketch import AskedSketch
from readerkit.quiz.messages import Remark
from readerkit.quiz.page_rules import TRIES
from readerkit.quiz.report import FREE_TEXT
from readerkit.quiz.variant import Grade, Variant, ended

MOST_ANSWERS = 6_000
"""That a table holds: all orders of seven items."""

Table = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """A variant on a page, and what an answer to it is kept with."""

    question: Question
    seed: int
    version: int
    variant: Variant
    figures: Mapping[str, Number] = field(default_factory=dict)
    """The reader's own, of a page that is theirs alone."""

    def kept_with(self) -> Table:
        """Return what an answer of the history says of its question."""
        of = self.question
        return {
            "question": of.id,
            "topic": of.topic,
            "objective": of.objective,
            "difficulty": of.difficulty,
            "seed": self.seed,
            "bank_version": self.version,
            "choices": self.variant.choices,
        }


@dataclass(frozen=True, slots=True)
class PageKey:
    """How one variant is marked; empty ``table`` where a page cannot mark it."""

    asked: Asked
    remarks: list[Remark]
    """That tables name by their number; other variants may share them."""
    table: Table = field(default_factory=dict)

    @classmethod
    def of(cls, asked: Asked, remarks: list[Remark]) -> PageKey:
        """Return the key of a variant; what it says is added to the remarks."""
        key = cls(asked, remarks)
        key.table.update(key._table(asked.variant))
        return key

    def unfolded(self, say: Say) -> bytes:
        """Return it as JSON; what is told, in English and in another language."""

        def told(text: object) -> object:
            return [str(text), said(text, say)] if isinstance(text, Told) else str(text)

        prompt = self.asked.variant.prompt
        tries = 1 if prompt.kind in FREE_TEXT else TRIES
        whole = {
            "how": prompt.how,
            "tries": tries,
            "row": self.asked.kept_with(),
            "figures": self.asked.figures,
            **self.table,
        }
        return json.encode(whole, enc_hook=told)

    def folded(self, say: Say) -> str:
        """Return it as a page holds it: not to be read in passing."""
        return base64.b64encode(self.unfolded(say)).decode()

    # --- one table for each kind ---

    def _table(self, variant: Variant) -> Table:
        if isinstance(variant, AskedChoice):
            labels, least = list(variant.options), 1
            most = len(labels) if variant.several else 1
            sizes = range(least, most + 1)
            chosen = (each for n in sizes for each in combinations(labels, n))
            answers = self._outcomes(map(" ".join, chosen))
            for answer, outcome in answers.items():
                if missed := self._all(ended(variant, answer, variant.grade(answer))):
                    outcome.append(missed)
            return {"answers": answers}
        if isinstance(variant, AskedOrder):
            return self._orders(variant)
        if isinstance(variant, AskedLine):
            return self._lines(variant)
        if isinstance(variant, AskedMatch):
            return self._pairs(variant)
        if isinstance(variant, AskedWords):
            return self._words(variant)
        if isinstance(variant, AskedNumber):
            return self._number(variant)
        if isinstance(variant, AskedFill):
            said = variant.mistakes.items()
            mistakes = {word: self._index(Remark(text)) for word, text in said}
            return {
                "accept": sorted(variant.accept),
                "mistakes": mistakes,
                "ends": self._all(variant.ends),
            }
        if isinstance(variant, AskedSketch):
            return self._grid(variant)
        if isinstance(variant, AskedShort):
            return {"points": list(_points(variant))}
        return {}

    def _outcome(self, grade: Grade) -> list[Any]:
        return [round(grade.credit, 6), [self._index(each) for each in grade.remarks]]

    def _all(self, remarks: Iterable[Remark]) -> list[int]:
        return [self._index(each) for each in remarks]

    def _index(self, remark: Remark) -> int:
        if remark not in self.remarks:
            self.remarks.append(remark)
        return self.remarks.index(remark)

    def _outcomes(self, answers: Iterable[str]) -> dict[str, list[Any]]:
        grade = self.asked.variant.grade
        return {answer: self._outcome(grade(answer)) for answer in answers}

    def _orders(self, variant: AskedOrder) -> Table:
        """Return an outcome for each order, the orders as words are sorted."""
        labels = sorted(map(str, variant.valid[0]))
        orders = list(map(" ".join, permutations(labels)))
        if len(orders) > MOST_ANSWERS:
            return {}
        found, at = list[list[Any]](), []
        for order in orders:
            outcome = self._outcome(variant.grade(order))
            if outcome not in found:
                found.append(outcome)
            at.append(found.index(outcome))
        return {"outcomes": found, "orders": at}

    def _lines(self, variant: AskedLine) -> Table:
        """Return runs of lines with one outcome, and what is said to too many."""
        within = variant.within
        runs = list[list[Any]]()
        for line in range(within.first, within.last + 1):
            outcome = self._outcome(variant.grade(str(line)))
            if not runs or runs[-1][2:] != outcome:
                runs.append([line, line, *outcome])
            runs[-1][1] = line
        said = {"wide": TOO_WIDE, "below": FURTHER_DOWN, "above": FURTHER_UP}
        own = [
            [each.first, self._index(variant.told_of(each))]
            for each in variant.statements
        ]
        return {
            "lines": runs,
            "file": variant.file,
            "in_file": variant.how_in_file(),
            **{at: self._index(each) for at, each in said.items()},
            "own": own,
            "ends": self._all(variant.in_the_end("")),
        }

    def _pairs(self, variant: AskedMatch) -> Table:
        """Return credit by how many are right, and what each wrong pair is told."""
        numbers, labels = list(variant.key), variant.labels

        def graded(key: dict[str, str]) -> Grade:
            return variant.grade(" ".join(f"{n}{label}" for n, label in key.items()))

        right = dict(variant.key)
        parts, credit = [], [graded(right).credit]
        for number in numbers:
            others = [label for label in labels if label != variant.key[number]]
            told = {each: graded({**variant.key, number: each}) for each in others}
            row = {each: self._outcome(grade)[1] for each, grade in told.items()}
            parts.append({variant.key[number]: [], **row})
            right[number] = others[0]
            credit.insert(0, round(graded(right).credit, 6))
        return {"parts": parts, "credit": credit, "form": variant.form}

    def _words(self, variant: AskedWords) -> Table:
        """Return outcomes by the first word that is wrong."""
        key, prefixes = list(variant.key), []
        by_name = [remark for _, remark in variant.refuted]
        for at in range(len(key)):
            offered = variant.words or ("f99", "b99")
            other = next(w for w in offered if w != key[at])
            grade = variant.grade(" ".join([*key[:at], other, *key[at + 1 :]]))
            last = variant.none if variant.reasons else None
            told = [e for e in grade.remarks if e not in by_name and e != last]
            prefixes.append(self._outcome(Grade(grade.credit, tuple(told))))
        refuted = [[words, self._index(each)] for words, each in variant.refuted]
        return {
            "cells": key,
            "words": variant.words,
            "prefixes": prefixes,
            "refuted": refuted,
            "reasons": [
                {word: self._index(why) for word, why in row.items()}
                for row in variant.reasons
            ],
            "none": self._all([variant.none] if variant.none else []),
            "each_end": [self._all(row) for row in variant.ends],
        }

    def _number(self, variant: AskedNumber) -> Table:
        """Return the key, and the numbers of which something is known."""

        def known(rows: Iterable[tuple[float, Remark]]) -> list[Any]:
            return [[value, self._index(remark)] for value, remark in rows]

        near = variant.tolerance
        return {
            "key": variant.key,
            "unit": variant.unit,
            "form": variant.form,
            "tolerance": [near.relative, near.absolute, near.significant],
            "before": known((*variant.mistakes, *variant.twin())),
            "near": self._index(variant.near),
            "after": known(variant.eighths()),
            "counts": variant.counts,
            "ends": self._all(variant.ends),
        }

    def _grid(self, variant: AskedSketch) -> Table:
        """Return the cells, credit by how many are right, and what is said to one."""
        rows = [list(cells) for _, cells in variant.rows]
        columns = [kind for _, kind in variant.columns]
        wrong = {"shape": "999x997", "number": "999983", "groups": "990,991"}
        credit, said = [1.0], []
        given = [list(cells) for cells in rows]
        for at, cells in enumerate(rows):
            for column, (cell, kind) in enumerate(zip(cells, columns, strict=True)):
                other = wrong.get(kind) or next(w for w in variant.words if w != cell)
                alone = [list(each) for each in rows]
                alone[at][column] = given[at][column] = other
                [remark] = variant.grade(_typed(alone)).remarks
                assert isinstance(remark.text, Told)
                blank = {**remark.text.values, "cell": "{cell}", "why": "{why}"}
                said.append(Told(remark.text.phrase, **blank))
                credit.insert(0, round(variant.grade(_typed(given)).credit, 6))
        return {
            "rows": rows,
            "columns": columns,
            "words": variant.words,
            "labels": [label for label, _ in variant.rows],
            "titles": [title for title, _ in variant.columns],
            "credit": credit,
            "said": said,
            "layout": list(variant.layout.items()),
            "axes": variant.axes,
            "reckoned": [[self._all([e] if e else []) for e in r] for r in variant.how],
            "whys": [self._all([each] if each else []) for each in variant.whys],
        }


def _points(variant: AskedShort) -> Iterator[Table]:
    """Yield each point with the words that make it, and those that deny it."""
    for point, says in zip(variant.rubric, variant.says, strict=True):
        found, denied = (
            [[[t.pattern, is_not] for t, is_not in terms(each)] for each in patterns]
            for patterns in (point.found, point.denied)
        )
        yield {"says": says, "found": found, "denied": denied}


def _typed(rows: list[list[str]]) -> str:
    return "\n".join(map(" ".join, rows))
