"""Predict what code does; the key is what a run or a schedule says."""

from __future__ import annotations

import re
from dataclasses import dataclass

from readerkit.model.base import Text
from readerkit.model.language import Told
from readerkit.quiz.kinds.base import Question, joined, not_read, squeezed
from readerkit.quiz.kinds.numeric import (
    Absolute,
    AnswerTolerance,
    AskedNumber,
    Relative,
    Significant,
    ask_number,
)
from readerkit.quiz.lock import held
from readerkit.quiz.messages import PredictPrompt, Remark
from readerkit.quiz.observed_keys import ObservationQuery, answer_schedule
from readerkit.quiz.units import find_unit
from readerkit.quiz.variant import AnswerError, Draw, Grade, Scene, Variant

_STEP = re.compile(r"[a-z]\d+[a-z]?|\.")
"""A step of a schedule as it is compared: f0, b12a, or a dot where a rank waits."""


def _cell(word: str) -> str:
    return "." if word in "-_·" or word == "idle" else squeezed(word)


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
        if self.source.schedule is not None:
            key = answer_schedule(self.source, scene)
        else:
            key = held(scene.lock.facts, self.id).value
        if not isinstance(key, tuple):
            near = (self.relative, self.absolute, self.significant)
            tolerance = AnswerTolerance.of(*near, default=0.0)
            unit = find_unit(self.unit)
            return ask_number(PredictPrompt, scene, key, unit, tolerance)
        how, count = Told("{count} cells in order: F0 B0 . F1", count=len(key)), None
        if self.words:
            words = joined(self.words)
            how = Told("{count} in order, of: {words}", count=len(key), words=words)
            # Only one word among those offered is a choice.
            count = len(self.words) if len(key) == 1 else None
        shown = PredictPrompt(*scene.head(how), words=self.words, length=len(key))
        typed = " ".join(key)
        return AskedWords(
            prompt=shown,
            told=scene.solved(typed),
            typed_key=typed,
            choices=count,
            key=key,
            words=self.words,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedWords(Variant):
    """Words to give in their order: operations, or the cells of a schedule."""

    key: tuple[str, ...]
    words: tuple[str, ...]

    def grade(self, answer: str) -> Grade:
        """Return the share of the words before the first that is wrong."""
        cells = re.split(r"[\s,;|→>\[\]'\"]+", answer.strip())
        given = [_cell(word) for word in cells if word]
        if len(given) != len(self.key):
            raise AnswerError(
                Told(
                    "got {got} words, expected {count}",
                    got=len(given),
                    count=len(self.key),
                )
            )
        known = {squeezed(word) for word in self.words}
        form = joined(self.words) or self.prompt.how
        for word in given:
            if word not in known if known else not _STEP.fullmatch(word):
                raise not_read(word, form)
        pairs = enumerate(zip(given, self.key, strict=True))
        right = next((i for i, (word, key) in pairs if word != _cell(key)), None)
        if right is None:
            return Grade(1)
        first = Told("Number {number} is the first that is wrong.", number=right + 1)
        return Grade(right / len(self.key), (Remark(first),))
