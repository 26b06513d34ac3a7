"""One variant of a question: what is asked, the key behind it, and what made it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from readerkit.errors import ReaderkitError
from readerkit.model.expression import Functions, Number, evaluate
from readerkit.model.language import InBoth, Told
from readerkit.quiz.lockfile import QuizLock, held
from readerkit.quiz.messages import Remark, Solution, TextFinding
from readerkit.quiz.prompts import CitedLines, Prompt, QuotedWork

if TYPE_CHECKING:
    from readerkit.quiz.kinds.question import Question

MAX_FORMULA_WORDS = 12
"""Of a number that is typed as a product or with its unit."""
WHOLE = 1 - 1e-9
"""Credit that counts as right, whatever binary fractions add up to."""
_SLOT = re.compile(r"(?<=\$)\{([^{}]+)\}|\{([^{}]+)\}")
"""A formula in a text, in dollars or not."""


class AnswerError(ReaderkitError):
    """An answer that cannot be read as one: it is not marked, but typed again."""


@dataclass(frozen=True, slots=True)
class Grade:
    """What an answer earned, from 0 to 1, and what is said about it."""

    credit: float
    remarks: tuple[Remark, ...] = ()

    @property
    def is_right(self) -> bool:
        """Whether all of it was right."""
        return self.credit >= WHOLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A question made concrete by a seed; each kind adds the key that it marks by."""

    prompt: Prompt
    told: Solution
    """What is told once it is done; made with it, so that nothing is missing then."""
    typed_key: str
    """The key as a reader would type it: ``grade`` gives it all credit."""
    choices: int | None = None
    """How many answers there are to guess among; None where nobody can guess."""

    def grade(self, answer: str) -> Grade:
        """Return the grade of an answer, a pure function of variant and answer.

        Raises:
            AnswerError: an answer that cannot be read as one.
        """
        raise NotImplementedError

    def in_the_end(self, answer: str) -> tuple[Remark, ...]:
        """Return what else refutes a wrong answer, and shows the key: after all tries.

        Raises:
            AnswerError: an answer that cannot be read as one.
        """
        return ()

    def step(self) -> str:
        """Return one step towards the answer, of its own kind; nothing by default."""
        return ""

    @property
    def is_computed(self) -> bool:
        """Whether its explanation reckons, so that a part of it is a step."""
        return False

    def shows_key(self, text: str) -> bool:
        """Tell whether words of a text that stand together would earn all credit."""
        words = text.split()
        return self.before_key(words) < len(words)

    def before_key(self, words: list[str]) -> int:
        """Return how many words of a text come before the key, or all of them."""
        longest = max(MAX_FORMULA_WORDS, len(self.typed_key.split()))
        for end in range(1, len(words) + 1):
            for first in range(end - 1, max(-1, end - 1 - longest), -1):
                span = " ".join(words[first:end]).strip(" .,;:=")
                bare = span.strip("()[]")
                parts = re.split(r"[^\w.^%$]+", span) if first == end - 1 else []
                if any(self._earns_all(each) for each in {span, bare, *parts} if each):
                    return first
        return len(words)

    def _earns_all(self, answer: str) -> bool:
        try:
            return self.grade(answer).is_right
        except AnswerError:
            return False

    def completed(self, answer: str, before: str, *, is_exam: bool = False) -> str:
        """Return an answer as it is kept: a part with the rest that was given before.

        In an exam nothing counts that readers say of their own answers.
        """
        return answer

    def finding(self, text: str) -> TextFinding:
        """Return what is found in a text to write.

        Raises:
            AnswerError: none was asked for.
        """
        raise AnswerError(Told("got a text to look at, expected an answer"))


def ended(variant: Variant, text: str, grade: Grade) -> tuple[Remark, ...]:
    """Return what else is said to the last answer, where it is wrong."""
    return variant.in_the_end(text) if text and not grade.is_right else ()


def all_said(variant: Variant, text: str) -> tuple[Remark, ...]:
    """Return all that refutes an answer to a question that is over."""
    try:
        grade = variant.grade(text)
    except AnswerError:  # skipped, or read otherwise when it was given
        return ()
    return (*grade.remarks, *ended(variant, text, grade))


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that one variant depends on."""

    written: Question
    objective: str
    """In words."""
    values: Mapping[str, Number]
    """Parameters as they are displayed."""
    functions: Functions
    lock: QuizLock
    words: Mapping[str, str] = field(default_factory=dict)
    """What to say instead of the English texts, in another language."""
    in_both: bool = False
    """Whether it is said beside them, not instead."""

    def head(self, how: str) -> tuple[str, str, str, int, str, str]:
        """Return what a prompt of any kind begins with."""
        of = self.written
        text = self.text(of.prompt)
        return of.id, of.topic, self.objective, of.difficulty, text, how

    def solved(self, key: str) -> Solution:
        """Return what is told once the question is done.

        Raises:
            KeyMissingError: the lock lacks a link of it.
        """
        of = self.written
        slots = [f"note:{note}" for note in of.notes]
        slots += [f"code/{number}" for number in range(1, len(of.code) + 1)]
        works = [
            QuotedWork(
                **asdict(held(self.lock.works, cited.key)),
                key=cited.key,
                section=cited.section,
            )
            for cited in of.references
        ]
        links = tuple(map(self.place, slots))
        return Solution(key, self.text(of.explanation), links, tuple(works))

    def number(self, formula: object) -> Number:
        """Return the value of a formula over the parameters."""
        return evaluate(str(formula), self.values, self.functions)

    def whole(self, formula: object) -> int:
        """Return the value of a formula that counts something.

        Raises:
            ReaderkitError: a value that is no whole number.
        """
        value = self.number(formula)
        if value != int(value):
            raise ReaderkitError(f"'{formula}': got {value}, expected a whole number")
        return int(value)

    def text(self, template: str) -> str:
        """Return a text with each ``{formula}`` replaced by its value."""
        other = self.words.get(template)
        if other is None:
            return self._filled(template)
        if self.in_both:
            return InBoth(self._filled(template), self._filled(other))
        return self._filled(other)

    def _filled(self, template: str) -> str:
        return _SLOT.sub(
            lambda m: (
                format_dollars(self.number(m[1]))
                if m[1]
                else format_number(self.number(m[2]))
            ),
            template,
        )

    def place(self, slot: str) -> CitedLines:
        """Return the lines of a slot of this question, or of ``note:ID``.

        Raises:
            KeyMissingError: the lock has none.
        """
        name = slot if slot.startswith("note:") else f"{self.written.id}/{slot}"
        return CitedLines.of(held(self.lock.places, name))


def formulas_of(template: str) -> list[str]:
    """Return the formulas between the braces of a text."""
    return [one or other for one, other in _SLOT.findall(template)]


def format_dollars(value: Number) -> str:
    """Return an amount as money is written; what is finer than a cent as a number.

    >>> format_dollars(0.5), format_dollars(12), format_dollars(0.125)
    ('0.50', '12', '0.125')
    """
    cents = round(value * 100, 6)
    is_broken = value != int(value) and cents == int(cents)
    return f"{value:,.2f}" if is_broken else format_number(value)


def format_number(value: Number) -> str:
    """Return a number for readers: whole ones exactly, others to four digits.

    >>> format_number(16384), format_number(4096.0), format_number(0.18756)
    ('16,384', '4096', '0.1876')
    """
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}" if abs(value) >= 10_000 else str(int(value))
    rounded = float(f"{value:.4g}")
    if abs(rounded) >= 10_000 and abs(rounded) < 1e15:
        return f"{rounded:,.0f}"
    return f"{rounded:.12g}"
