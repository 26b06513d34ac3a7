"""A question to answer in one's own words: the machine finds the points it makes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from readerkit.errors import ReaderkitError
from readerkit.model.base import SOME, Count, Model, Text, at_least
from readerkit.model.language import Told
from readerkit.quiz.found_words import WordPattern, find, plain_words, quoted
from readerkit.quiz.kinds.question import Question, joined
from readerkit.quiz.messages import FoundPoint, Remark, TextFinding
from readerkit.quiz.prompts import ShortPrompt
from readerkit.quiz.seeded_draw import SeededDraw
from readerkit.quiz.variant import AnswerError, Grade, Scene, Variant

MARKS = "::"
"""Parts the marks of a short answer from its text: ``1 3 :: text``."""
MAX_WORDS = 200
"""Of an answer: more is a page pasted in, which makes every point there is."""
_HEAD = re.compile(rf"\s*([\d\s,]*)(?:\(found[\d\s,]*\))?\s*{MARKS}")
PATTERNS = {"head": _HEAD}
"""By which an answer is read, on a page too."""


class Point(Model, frozen=True):
    """A claim that a good answer makes, and the words that it is known by."""

    says: Text
    found: Annotated[tuple[WordPattern, ...], SOME]
    denied: tuple[WordPattern, ...] = ()
    """What says the contrary: the point is lost, whatever else is found."""


class Trap(Model, frozen=True):
    """A wrong answer that sounds right, and which points it makes all the same."""

    text: Text
    makes: tuple[Count, ...] = ()


class Short(Question, frozen=True, tag="short"):
    """A question in whose answer certain points count."""

    rubric: Annotated[tuple[Point, ...], at_least(2, 9)]
    model: Text
    traps: Annotated[tuple[Trap, ...], at_least(2)]

    def check(self) -> None:
        """Refuse a trap that makes a point which is none.

        Raises:
            ReaderkitError: there is one.
        """
        for trap in self.traps:
            if not set(trap.makes) <= set(range(1, len(self.rubric) + 1)):
                raise ReaderkitError(
                    f"a trap makes {joined(map(str, trap.makes))}: "
                    f"expected some of 1 to {len(self.rubric)}"
                )

    def own_texts(self) -> list[str]:
        """Return the points and the model answer."""
        return [*(point.says for point in self.rubric), self.model]

    def ask(self, scene: Scene, draw: SeededDraw) -> AskedShort:
        """Return the rubric with its numbers filled in."""
        count = len(self.rubric)
        how = Told("your own words; {count} points are looked for", count=count)
        model = scene.text(self.model)
        return AskedShort(
            prompt=ShortPrompt(*scene.head(how), points=count),
            told=scene.solved(model),
            typed_key=model,
            rubric=self.rubric,
            says=tuple(scene.text(point.says) for point in self.rubric),
            traps=self.traps,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedShort(Variant):
    """A short answer to write: found by the machine, corrected by the reader."""

    rubric: tuple[Point, ...]
    says: tuple[str, ...]
    """Each point in words."""
    traps: tuple[Trap, ...]

    def completed(self, answer: str, before: str, *, is_exam: bool = False) -> str:
        """Return an answer with the reader's marks, if any count, and the machine's."""
        marks, text = self._read(answer)
        reader = "" if marks is None or is_exam else f"{_numbers(marks) or '0'} "
        return f"{reader}(found {_numbers(self._found(text))}) {MARKS} {text}"

    def shows_key(self, text: str) -> bool:
        """Tell whether a text makes one of the points."""
        return bool(self._found(text))

    def grade(self, answer: str) -> Grade:
        """Return the share of the points that were made.

        Those that the reader marked; without marks, those that the machine finds.
        """
        marks, text = self._read(answer)
        finding = self.finding(text)
        made = self._found(text) if marks is None else marks
        remarks = tuple(
            Remark(said_of(p, is_made=p.number in made)) for p in finding.points
        )
        return Grade(len(made) / len(self.rubric), remarks)

    def finding(self, text: str) -> TextFinding:
        """Return for each point the words that make it, or deny it."""
        return TextFinding(tuple(self._points(self._read(text)[1])))

    def problem(self) -> str:
        """Return what the patterns get wrong: of the model, the prompt, a trap."""
        every = set(range(1, len(self.rubric) + 1))
        if lacking := every - self._found(self.typed_key):
            return f"its model answer lacks the points {_numbers(lacking)}"
        if found := self._found(self.prompt.prompt):
            return f"its own prompt makes the points {_numbers(found)}"
        for trap in self.traps:
            if too_many := self._found(trap.text) - set(trap.makes):
                what = f"a trap makes the points {_numbers(too_many)}"
                return f"{what}: {trap.text[:60]}"
        return ""

    def _points(self, text: str) -> Iterator[FoundPoint]:
        rows = zip(self.rubric, self.says, strict=True)
        for number, (point, says) in enumerate(rows, 1):
            denied = quoted(find(point.denied, text))
            found = "" if denied else quoted(find(point.found, text))
            yield FoundPoint(number, says, bool(found), found or denied)

    def _found(self, text: str) -> set[int]:
        return {point.number for point in self._points(text) if point.found}

    def _read(self, answer: str) -> tuple[set[int] | None, str]:
        """Return the reader's marks, None where there are none, and the text.

        Raises:
            AnswerError: no text, more than an answer has, or marks of no point.
        """
        head = _HEAD.match(answer)
        text = answer[head.end() :].strip() if head else answer.strip()
        words = len(plain_words(text).split())
        if not 0 < words <= MAX_WORDS:
            most = Told("1 to {most} words", most=MAX_WORDS)
            got = Told("got {count} words, expected {most}", count=words, most=most)
            raise AnswerError(got)
        numbers = {
            int(each) for each in re.findall(r"\d{1,9}", head[1] if head else "")
        }
        if not numbers:
            return None, text
        known = set(range(1, len(self.rubric) + 1))
        if not numbers - {0} <= known or (0 in numbers and len(numbers) > 1):
            raise AnswerError(
                Told(
                    "got points {got}, expected some of 1 to {count}, or 0 for none",
                    got=_numbers(numbers),
                    count=len(known),
                )
            )
        return numbers - {0}, text


def _numbers(points: set[int]) -> str:
    return " ".join(map(str, sorted(points)))


def said_of(point: FoundPoint, *, is_made: bool | None = None) -> Told:
    """Return what is said of a point that the machine, or its reader, found made."""
    told = {"number": point.number, "words": point.words, "point": point.says}
    if point.found and is_made is not False:
        return Told("{number} found: “{words}”. {point}", **told)
    if is_made:
        return Told("{number} marked by you as made: {point}", **told)
    if point.found:
        return Told("{number} marked by you as not made: {point}", **told)
    if point.words:
        return Told("{number} contradicted: “{words}”. {point}", **told)
    return Told("{number} not found: {point}", **told)
