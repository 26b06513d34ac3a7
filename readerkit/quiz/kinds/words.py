"""Words: a gap to fill, and a short answer that the reader marks by a rubric."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from readerkit.model.base import SOME, Model, Text, at_least
from readerkit.model.language import Told
from readerkit.quiz.kinds.base import Grade, Question, Remark, plain
from readerkit.quiz.seeded_random import Draw
from readerkit.quiz.variant_context import AnswerError, Scene

MARKS = "::"
"""Parts the reader's own marks from the text of a short answer: ``1 3 :: text``."""


class Mistake(Model, frozen=True):
    """A word that is often put into the gap, and what to say to it."""

    text: Text
    says: Text


class Fill(Question, frozen=True, tag="fill"):
    """A gap, what is right in it, and what is often put there instead."""

    accept: Annotated[tuple[Text, ...], SOME]
    mistakes: tuple[Mistake, ...] = ()

    def texts(self) -> list[str]:
        """Return words and remarks."""
        return [
            *self.accept,
            *(part for each in self.mistakes for part in (each.text, each.says)),
        ]

    def ask(self, scene: Scene, draw: Draw) -> AskedFill:
        """Return the gap with its numbers filled in."""
        accept = tuple(scene.text(word) for word in self.accept)
        mistakes = tuple(
            (scene.text(each.text), scene.text(each.says)) for each in self.mistakes
        )
        return AskedFill(accept, mistakes)


@dataclass(frozen=True, slots=True)
class AskedFill:
    """A gap to fill."""

    accept: tuple[str, ...]
    mistakes: tuple[tuple[str, str], ...]

    @property
    def help(self) -> str:
        """How to type an answer."""
        return Told("a word or a name")

    @property
    def choices(self) -> int | None:
        """Words are not guessed among."""
        return None

    def shown(self) -> dict[str, Any]:
        """Return nothing beside the prompt."""
        return {}

    def grade(self, answer: str) -> Grade:
        """Return all or nothing; case, hyphens, blanks and `()` do not count."""
        given = _name(answer)
        if not given:
            raise AnswerError(Told("got nothing, expected a word"))
        if given in map(_name, self.accept):
            return Grade(1)
        said = [Remark(says) for word, says in self.mistakes if _name(word) == given]
        return Grade(0, tuple(said))

    def typed_key(self) -> str:
        """Return the key as it would be typed."""
        return self.accept[0]

    def solution(self) -> str:
        """Return the first of the right words."""
        return self.accept[0]


def _name(text: str) -> str:
    """Return a word as it is compared; what is around a name in code aside."""
    return re.sub(r"^\.|(\(\s*\))?\s*:?$", "", plain(text))


class Short(Question, frozen=True, tag="short"):
    """A question in whose answer certain points count."""

    rubric: Annotated[tuple[Text, ...], at_least(2)]
    model: Text

    def texts(self) -> list[str]:
        """Return the points and the model answer."""
        return [*self.rubric, self.model]

    def ask(self, scene: Scene, draw: Draw) -> AskedShort:
        """Return the rubric with its numbers filled in."""
        points = tuple(scene.text(point) for point in self.rubric)
        return AskedShort(points, scene.text(self.model))


@dataclass(frozen=True, slots=True)
class AskedShort:
    """A short answer to write, then to mark."""

    rubric: tuple[str, ...]
    model: str

    @property
    def help(self) -> str:
        """How to type an answer."""
        return Told(
            "points you made, then your text: 1 3 {marks} because ...", marks=MARKS
        )

    @property
    def choices(self) -> int | None:
        """Readers mark themselves."""
        return None

    def shown(self) -> dict[str, Any]:
        """Return the rubric: to be shown after the reader has written."""
        return {"rubric": list(self.rubric), "model": self.model, "self_marked": True}

    def grade(self, answer: str) -> Grade:
        """Return the share of the points that the reader marked as made."""
        marks, parted, text = answer.partition(MARKS)
        numbers = {int(word) for word in re.findall(r"\d{1,2}", marks)}
        if not parted or not text.strip():
            raise AnswerError(
                Told(
                    "got no text after '{marks}', expected {form}",
                    marks=MARKS,
                    form=self.help,
                )
            )
        if not numbers <= set(range(1, len(self.rubric) + 1)):
            raise AnswerError(
                Told(
                    "got points {got}, expected some of 1 to {count}",
                    got=sorted(numbers),
                    count=len(self.rubric),
                )
            )
        missed = [
            Remark(Told("Not made: {point}", point=point))
            for number, point in enumerate(self.rubric, 1)
            if number not in numbers
        ]
        return Grade(len(numbers) / len(self.rubric), tuple(missed))

    def typed_key(self) -> str:
        """Return the key as it would be typed."""
        numbers = " ".join(str(n) for n in range(1, len(self.rubric) + 1))
        return f"{numbers} {MARKS} {self.model}"

    def solution(self) -> str:
        """Return the model answer."""
        return self.model
