"""Predict what code does; the key is what a run or a schedule says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from readerkit.errors import ReaderkitError
from readerkit.model.base import Formula, Text
from readerkit.model.language import Told
from readerkit.model.number_with_unit import find_unit
from readerkit.quiz.kinds.numeric import (
    Absolute,
    AskedNumber,
    Relative,
    Significant,
    ask_number,
)
from readerkit.quiz.kinds.question import (
    Question,
    Refutation,
    joined,
    not_read,
    squeezed,
)
from readerkit.quiz.lockfile import Fact
from readerkit.quiz.messages import Remark
from readerkit.quiz.observed_keys import (
    ObservationQuery,
    ObservedFact,
    answer_schedule,
    observed,
)
from readerkit.quiz.prompts import PredictPrompt, ScheduleSizes
from readerkit.quiz.scoring import share_above_constant
from readerkit.quiz.seeded_draw import SeededDraw
from readerkit.quiz.tolerance import AnswerTolerance
from readerkit.quiz.variant import AnswerError, Grade, Scene, Variant

_STEP = re.compile(r"[a-z]\d+[a-z]?|\.")
"""A step of a schedule as it is compared: f0, b12a, or a dot where a rank waits."""
PATTERNS = {"step": _STEP}
"""By which an answer is read, on a page too."""


def _cell(word: str) -> str:
    return "." if word in "-_·" or word == "idle" else squeezed(word)


class Mispredicted(Refutation, frozen=True, rename={"source": "from"}):
    """A prediction that is wrong: words, a number, or another schedule."""

    text: Text = ""
    value: Formula | None = None
    source: ObservationQuery | None = None

    def check(self) -> None:
        """Refuse none of the three, or two."""
        given = [self.text or None, self.value, self.source]
        if sum(each is not None for each in given) != 1:
            raise ReaderkitError("a mistake: expected one of text, value, from")
        if self.source is not None:
            self.source.check()
            if self.source.schedule is None:
                raise ReaderkitError("a mistake: 'from' must name a schedule")

    def answer(self, scene: Scene) -> Fact:
        """Return what is predicted: a number, or words."""
        if self.source is not None:
            return answer_schedule(self.source, scene)
        if self.value is not None:
            return scene.number(self.value)
        return tuple(scene.text(self.text).split())


class Predict(Question, frozen=True, tag="predict", rename={"source": "from"}):
    """Where the key comes from, and how an answer looks."""

    source: ObservationQuery
    unit: Text = ""
    words: tuple[Text, ...] = ()
    gap: Annotated[int, Meta(ge=1)] | None = None
    """Which call of a record's strip is left out, from 1: that one alone is asked."""
    relative: Relative | None = None
    absolute: Absolute | None = None
    significant: Significant | None = None
    mistakes: tuple[Mispredicted, ...] = ()

    def check(self) -> None:
        """Hold the sources against what they can give, the unit against the table."""
        self.source.check()
        if self.gap is not None and (self.source.give != "ops" or not self.words):
            raise ReaderkitError("gap: expected words, and a record that gives ops")
        for each in self.mistakes:
            each.check()
        find_unit(self.unit)

    def formulas(self) -> list[str]:
        """Return the sizes of schedules, and numbers that are predicted wrongly."""
        sources = [self.source, *(each.source for each in self.mistakes)]
        sizes = [
            size for each in sources if each and each.schedule for size in each.sizes()
        ]
        return sizes + [str(each.value) for each in self.mistakes if each.value]

    def own_texts(self) -> list[str]:
        """Return what is said to wrong predictions."""
        return [each.why for each in self.mistakes]

    def refutations(self) -> Mapping[str, Refutation]:
        """Return the wrong predictions."""
        return {f"mistake/{at}": each for at, each in enumerate(self.mistakes, 1)}

    def ask(self, scene: Scene, draw: SeededDraw) -> AskedNumber | AskedWords:
        """Return a number or words to predict."""
        seen = observed(self.source, self.id, scene)
        told = [
            (each.answer(scene), each.remark(scene, f"mistake/{at}"))
            for at, each in enumerate(self.mistakes, 1)
        ]
        if isinstance(seen.key, tuple):
            wrong = [(said, why) for said, why in told if isinstance(said, tuple)]
            return self._ask_words(scene, seen, seen.key, wrong)
        near = (self.relative, self.absolute, self.significant)
        tolerance = AnswerTolerance.of(*near, default=0.0)
        unit = find_unit(self.unit)
        values = tuple((float(n), why) for n, why in told if not isinstance(n, tuple))
        asked = ask_number(PredictPrompt, scene, seen.key, unit, tolerance, values)
        return replace(asked, seen=seen.of_number())

    def _ask_words(
        self,
        scene: Scene,
        seen: ObservedFact,
        key: tuple[str, ...],
        wrong: list[tuple[tuple[str, ...], Remark]],
    ) -> AskedWords:
        strip: tuple[str, ...] | UnsetType = UNSET
        ends = seen.of_each()
        if self.gap is not None:
            if len(key) < self.gap:
                raise ReaderkitError(f"gap: got {self.gap} of {len(key)} calls")
            at = self.gap - 1
            key, strip = (key[at],), (*key[:at], "", *key[self.gap :])
            ends = ends[at : self.gap]
        drawn: ScheduleSizes | UnsetType = UNSET
        if self.source.schedule is not None:
            sizes = map(scene.whole, self.source.sizes())
            drawn = ScheduleSizes(self.source.schedule, *sizes)
        shown = PredictPrompt(
            *scene.head(self._how(len(key))),
            words=self.words,
            length=len(key),
            strip=strip,
            schedule=drawn,
        )
        typed = " ".join(key)
        is_choice = len(key) == 1  # of one word among those offered
        return AskedWords(
            prompt=shown,
            told=scene.solved(typed),
            typed_key=typed,
            choices=len(self.words) if is_choice and self.words else None,
            key=key,
            words=self.words,
            refuted=wrong,
            reasons=seen.reasons(),
            none=seen.none(),
            ends=ends,
        )

    def _how(self, count: int) -> Told:
        """Return how so many words are typed."""
        if not self.words:
            form = "F0a B0a . F1b" if self.source.chunks else "F0 B0 . F1"
            return Told("{count} cells in order: {form}", count=count, form=form)
        words = joined(self.words)
        if count == 1:
            return Told("one of: {words}", words=words)
        return Told("{count} in order, of: {words}", count=count, words=words)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedWords(Variant):
    """Words to give in their order: operations, or the cells of a schedule."""

    key: tuple[str, ...]
    words: tuple[str, ...]
    refuted: list[tuple[tuple[str, ...], Remark]]
    """Wrong words, and what is said to who gives them."""
    reasons: Sequence[Mapping[str, Remark]]
    """At each place, what is said to each word that is wrong there; or nothing."""
    none: Remark | None
    """What is said to any other word."""
    ends: Sequence[tuple[Remark, ...]]
    """At each place, what else refutes who goes wrong there: it shows the key."""

    @property
    def is_computed(self) -> bool:
        """Whether its explanation reckons: as a schedule does."""
        return True

    def before_key(self, words: list[str]) -> int:
        """Return how many words come before more than half of the key was named."""
        key, named = {_cell(word) for word in self.key}, 0
        for at, word in enumerate(words):
            named += _cell(word.strip(",;:.()")) in key
            if 2 * named > len(self.key):
                return at
        return len(words)

    def grade(self, answer: str) -> Grade:
        """Return the share of the words before the first that is wrong.

        Of words that are offered, what one of them for all earns is taken off.
        """
        given = self._read(answer)
        right = self._wrong(given)
        if right is None:
            return Grade(1)
        said = next(
            (r for words, r in self.refuted if self._agree(words, given, right)), None
        )
        first = Told("Number {number} is the first that is wrong.", number=right + 1)
        remarks = [Remark(first)] if len(self.key) > 1 else []
        if self.reasons:
            why = self.reasons[right].get(given[right], self.none)
            remarks += [why] if why else []
        constant = next(
            i for i, word in enumerate([*self.key, ""]) if word != self.key[0]
        )
        if not self.words or constant == len(self.key):
            constant = 0
        credit = share_above_constant(right, len(self.key), constant)
        return Grade(credit, (*remarks, *([said] if said else [])))

    def in_the_end(self, answer: str) -> tuple[Remark, ...]:
        """Return what shows the first word that is wrong as it was recorded."""
        wrong = self._wrong(self._read(answer))
        return self.ends[wrong] if self.ends and wrong is not None else ()

    def _read(self, answer: str) -> list[str]:
        """Return the words of an answer as they are compared."""
        cells = re.split(r"(?:->|[\s,;|→>\[\]'\"])+", answer.strip())
        given = [_cell(word) for word in cells if word]
        if len(given) != len(self.key):
            raise AnswerError(
                Told(
                    "got {got} words, expected one"
                    if len(self.key) == 1
                    else "got {got}, expected {count} words",
                    got=len(given),
                    count=len(self.key),
                )
            )
        known = {squeezed(word) for word in self.words}
        form = joined(self.words) or self.prompt.how
        for word in given:
            if word not in known if known else not _STEP.fullmatch(word):
                raise not_read(word, form)
        return given

    def _wrong(self, given: list[str]) -> int | None:
        """Return where the first wrong word stands; None where none is."""
        pairs = enumerate(zip(given, self.key, strict=True))
        return next((i for i, (word, key) in pairs if word != _cell(key)), None)

    def _agree(self, words: tuple[str, ...], given: list[str], wrong: int) -> bool:
        """Tell whether a mistake begins as an answer does, up to what is wrong."""
        return [_cell(word) for word in words[: wrong + 1]] == given[: wrong + 1]
