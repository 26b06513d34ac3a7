"""Predict what code does; the key is what a run or a schedule says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from readerkit.errors import ReaderkitError
from readerkit.quiz.draw import Draw
from readerkit.quiz.facts import (
    FaultQuery,
    RecordQuery,
    ScheduleQuery,
    answer_schedule,
)
from readerkit.quiz.kinds.base import Body, Grade, Remark, plain
from readerkit.quiz.kinds.numeric import AskedNumber, Tolerance
from readerkit.quiz.scene import AnswerError, Fact, Scene
from readerkit.quiz.units import find_unit

Source = RecordQuery | ScheduleQuery | FaultQuery


@dataclass(frozen=True, slots=True)
class Predict(Body):
    """Where the key comes from, and how an answer looks."""

    source: Source
    unit: str
    tolerance: Tolerance
    words: tuple[str, ...]

    @classmethod
    def parse(cls, entry: Mapping[str, Any]) -> Predict:
        """Return the prediction of an entry.

        Raises:
            ReaderkitError: a source that names not one of record, schedule, fault.
        """
        value = entry["from"]
        source: Source
        named = {"record", "schedule", "fault"} & set(value)
        if named == {"record"}:
            source = RecordQuery.parse(value)
        elif named == {"schedule"}:
            source = ScheduleQuery.parse(value)
        elif named == {"fault"}:
            source = FaultQuery.parse(value)
        else:
            raise ReaderkitError(
                "'from' must name a record or a schedule or a fault, one of them"
            )
        given = {"relative", "absolute", "significant"} & set(entry)
        exact = Tolerance.parse(entry) if given else Tolerance()
        unit = find_unit(entry.get("unit", ""))
        return cls(source, unit, exact, tuple(entry.get("words", ())))

    def formulas(self) -> list[str]:
        """Return the sizes of a schedule."""
        if isinstance(self.source, ScheduleQuery):
            return self.source.formulas()
        return []

    def ask(self, scene: Scene, draw: Draw) -> AskedNumber | AskedWords:
        """Return a number or words to predict."""
        fact: Fact
        if isinstance(self.source, ScheduleQuery):
            fact = answer_schedule(self.source, scene)
        else:
            fact = scene.fact()
        if isinstance(fact, tuple):
            return AskedWords(fact, self.words)
        return AskedNumber(fact, self.unit, self.tolerance)


@dataclass(frozen=True, slots=True)
class AskedWords:
    """Words to give in their order: operations, or the cells of a schedule."""

    key: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def help(self) -> str:
        """How to type an answer."""
        if self.words:
            return f"{len(self.key)} in order, of: {', '.join(self.words)}"
        return f"{len(self.key)} cells in order: F0 B0 . F1"

    @property
    def choices(self) -> int | None:
        """Only one word among those offered is a choice."""
        return len(self.words) if self.words and len(self.key) == 1 else None

    def shown(self) -> dict[str, Any]:
        """Return the words to choose from and how many are wanted."""
        return {"words": list(self.words), "length": len(self.key)}

    def grade(self, answer: str) -> Grade:
        """Return the share of the words before the first that is wrong."""
        given = [plain(word) for word in re.split(r"[\s,;|→]+", answer.strip()) if word]
        if len(given) != len(self.key):
            raise AnswerError(f"got {len(given)} words, expected {len(self.key)}")
        known = {plain(word) for word in self.words}
        strange = [word for word in given if known and word not in known]
        if strange:
            raise AnswerError(f"got '{strange[0]}', expected {', '.join(self.words)}")
        pairs = list(zip(given, self.key, strict=True))
        wrong = [i for i, (word, key) in enumerate(pairs) if word != plain(key)]
        if not wrong:
            return Grade(1)
        share = wrong[0] / len(self.key)
        return Grade(
            share, (Remark(f"Number {wrong[0] + 1} is the first that is wrong."),)
        )

    def typed_key(self) -> str:
        """Return the key as it would be typed."""
        return " ".join(self.key)

    def solution(self) -> str:
        """Return the words."""
        return " ".join(self.key)
