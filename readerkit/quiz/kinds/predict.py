"""Predict what code does; the key is what a run or a schedule says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from readerkit.model.base import Text
from readerkit.model.language import Told
from readerkit.quiz.kinds.base import (
    Grade,
    Question,
    Remark,
    joined,
    not_read,
    plain,
)
from readerkit.quiz.kinds.numeric import (
    Absolute,
    AnswerTolerance,
    AskedNumber,
    Relative,
    Significant,
)
from readerkit.quiz.observed_keys import ObservationQuery, answer_schedule
from readerkit.quiz.seeded_random import Draw
from readerkit.quiz.units import find_unit
from readerkit.quiz.variant_context import AnswerError, Scene


class Predict(Question, frozen=True, tag="predict", rename={"source": "from"}):
    """Where the key comes from, and how an answer looks."""

    source: ObservationQuery
    unit: Text = ""
    words: tuple[Text, ...] = ()
    relative: Relative | None = None
    absolute: Absolute | None = None
    significant: Significant | None = None

    def check(self) -> None:
        """Hold the source against what it can give, and the unit against the table."""
        self.source.check()
        find_unit(self.unit)

    def formulas(self) -> list[str]:
        """Return the sizes of a schedule."""
        return self.source.sizes() if self.source.schedule else []

    def ask(self, scene: Scene, draw: Draw) -> AskedNumber | AskedWords:
        """Return a number or words to predict."""
        is_drawn = self.source.schedule is not None
        fact = answer_schedule(self.source, scene) if is_drawn else scene.fact()
        if isinstance(fact, tuple):
            return AskedWords(fact, self.words)
        near = (self.relative, self.absolute, self.significant)
        return AskedNumber(
            fact, find_unit(self.unit), AnswerTolerance.of(*near, default=0.0)
        )


@dataclass(frozen=True, slots=True)
class AskedWords:
    """Words to give in their order: operations, or the cells of a schedule."""

    key: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def help(self) -> str:
        """How to type an answer."""
        if self.words:
            words = joined(self.words)
            return Told(
                "{count} in order, of: {words}", count=len(self.key), words=words
            )
        return Told("{count} cells in order: F0 B0 . F1", count=len(self.key))

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
            raise AnswerError(
                Told(
                    "got {got} words, expected {count}",
                    got=len(given),
                    count=len(self.key),
                )
            )
        known = {plain(word) for word in self.words}
        strange = [word for word in given if known and word not in known]
        if strange:
            raise not_read(strange[0], joined(self.words))
        pairs = list(zip(given, self.key, strict=True))
        wrong = [i for i, (word, key) in enumerate(pairs) if word != plain(key)]
        if not wrong:
            return Grade(1)
        share = wrong[0] / len(self.key)
        first = Told("Number {number} is the first that is wrong.", number=wrong[0] + 1)
        return Grade(share, (Remark(first),))

    def typed_key(self) -> str:
        """Return the key as it would be typed."""
        return " ".join(self.key)

    def solution(self) -> str:
        """Return the words."""
        return " ".join(self.key)
