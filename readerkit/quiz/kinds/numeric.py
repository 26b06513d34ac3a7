"""Numbers with units: the key is a formula over the parameters as displayed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from readerkit.errors import ReaderkitError
from readerkit.model.base import Formula, Model, Name, Text
from readerkit.model.language import Told
from readerkit.quiz.kinds.base import Parameter, Question, not_read
from readerkit.quiz.messages import NumericPrompt, PredictPrompt, Remark
from readerkit.quiz.units import (
    QuantityError,
    TypedQuantity,
    UnitError,
    binary_twin,
    convert,
    dimension,
    find_unit,
    parse_quantity,
)
from readerkit.quiz.variant import (
    AnswerError,
    Draw,
    Grade,
    Scene,
    Variant,
    format_number,
    formulas_of,
)

DEFAULT_RELATIVE = 0.01


@dataclass(frozen=True, slots=True)
class AnswerTolerance:
    """How near an answer has to be."""

    relative: float = 0.0
    absolute: float = 0.0
    significant: int = 0
    """Digits; where given, the other two do not count."""

    @classmethod
    def of(
        cls,
        relative: float | None,
        absolute: float | None,
        significant: int | None,
        *,
        default: float,
    ) -> AnswerTolerance:
        """Return it as it was written; within a share where none of it was."""
        if relative is absolute is significant is None:
            return cls(default)
        return cls(relative or 0.0, absolute or 0.0, significant or 0)

    def accepts(self, number: float, key: float) -> bool:
        """Tell whether a number x is near enough to the key a.

        By significant digits: |x - a| < 0.51·10^-n with n = d - 1 - floor(log10|a|),
        half a unit of the last digit, and a little for those who rounded at another
        step. 15.8 is 15.789 to three digits; 15.7 is not. Else
        |x - a| <= absolute + relative·|a|, as both add up.

        Source: rounding to nearest, ISO 80000-1 annex B; the rule of numpy.isclose.
        """
        away, limit = abs(number - key), self.limit(key)
        if self.significant:
            return away < limit
        # A hair more, so that a limit typed in decimal is not missed in binary.
        return away <= limit * (1 + 1e-9) + 1e-12

    def limit(self, key: float) -> float:
        """Return how far from the key an answer may be."""
        if self.significant:
            leading = math.floor(math.log10(abs(key))) if key else 0
            return 0.51 * 10.0 ** (leading + 1 - self.significant)
        return self.absolute + self.relative * abs(key)

    def is_near(self, number: float, key: float) -> bool:
        """Tell whether a wrong number may be a right one, rounded too far."""
        return not self.significant and abs(number - key) <= 5 * self.limit(key)

    def told(self, unit: str) -> Told:
        """Return it in words; per cent of a share are told from its points."""
        if self.significant:
            return Told("to {count} significant digits", count=self.significant)
        is_share = unit == "%"
        share = Told(
            "within {share}% of the answer itself, not points"
            if is_share
            else "within {share}%",
            share=format_number(100 * self.relative),
        )
        amount = Told(
            "within {amount} percentage points" if is_share else "within {amount}",
            amount=format_number(self.absolute),
        )
        if self.relative and self.absolute:
            return Told("{one} or {other}", one=share, other=amount)
        if self.relative:
            return share
        return amount if self.absolute else Told("exactly")


class Misconception(Model, frozen=True):
    """A formula that people use instead, and what to say to them."""

    value: Formula
    says: Text
    unit: Text = ""
    """That of the answer where it says none."""


Relative = Annotated[float, Meta(ge=0, le=0.2)]
Absolute = Annotated[float, Meta(ge=0)]
Significant = Annotated[int, Meta(ge=1, le=6)]


class NumericAnswer(Model, frozen=True):
    """The key of a numeric question."""

    value: Formula
    unit: Text = ""
    relative: Relative | None = None
    absolute: Absolute | None = None
    significant: Significant | None = None

    @property
    def tolerance(self) -> AnswerTolerance:
        """How near an answer has to be: 1% where it is not said."""
        near = (self.relative, self.absolute, self.significant)
        return AnswerTolerance.of(*near, default=DEFAULT_RELATIVE)


class Numeric(Question, frozen=True, tag="numeric"):
    """A formula as it was written."""

    answer: NumericAnswer
    parameters: Mapping[Name, Parameter]
    misconceptions: tuple[Misconception, ...] = ()
    again: Annotated[
        Formula | None,
        Meta(description="The key by another formula, if the explanation has none."),
    ] = None

    def check(self) -> None:
        """Refuse a unit that is not in the table, and the key's own formula twice."""
        if self.again == self.answer.value:
            raise ReaderkitError(
                f"'again': got the key's own formula '{self.again}', expected another"
            )
        for unit in (self.answer.unit, *(wrong.unit for wrong in self.misconceptions)):
            find_unit(unit)

    @property
    def unit(self) -> str:
        """The unit of the key, as the table has it."""
        return find_unit(self.answer.unit)

    def formulas(self) -> list[str]:
        """Return the key, what bears it out and what it is mistaken for."""
        wrong = [str(each.value) for each in self.misconceptions]
        again = [] if self.again is None else [str(self.again)]
        return [str(self.answer.value), *again, *wrong]

    def borne_out(self, scene: Scene, asked: AskedNumber) -> bool:
        """Tell whether a formula beside the key's gives the key."""
        alone = self.parameters.get(str(self.answer.value))
        if alone and alone.own:
            return True  # measured, and looked up by the reader
        if self.again is not None:
            return asked.accepts(scene.number(self.again))
        shown = map(scene.number, formulas_of(self.explanation))
        return any(asked.accepts(value) for value in shown)

    def own_texts(self) -> list[str]:
        """Return the remarks on mistakes."""
        return [wrong.says for wrong in self.misconceptions]

    def ask(self, scene: Scene, draw: Draw) -> AskedNumber:
        """Return the computed key and the computed mistakes."""
        known = tuple(
            (
                convert(
                    scene.number(wrong.value),
                    find_unit(wrong.unit) or self.unit,
                    self.unit,
                ),
                Remark(scene.text(wrong.says)),
            )
            for wrong in self.misconceptions
        )
        key = scene.number(self.answer.value)
        near = self.answer.tolerance
        return ask_number(NumericPrompt, scene, key, self.unit, near, known)


def ask_number(
    prompt: type[NumericPrompt | PredictPrompt],
    scene: Scene,
    key: float,
    unit: str,
    tolerance: AnswerTolerance,
    mistakes: tuple[tuple[float, Remark], ...] = (),
) -> AskedNumber:
    """Return a number to give; ``mistakes`` are wrong ones, and what to say to each."""
    form = Told("in {unit}", unit=unit)
    if unit in ("", "%"):
        form = Told("per cent" if unit else "a number")
    near = tolerance.told(unit)
    how = Told("{form}, {tolerance}", form=form, tolerance=near)
    gap = "" if unit in ("%", "") else " "
    solution = f"${key:,.2f}" if unit == "$" else f"{format_number(key)}{gap}{unit}"
    return AskedNumber(
        prompt=prompt(*scene.head(how), unit=unit, tolerance=near),
        told=scene.solved(solution),
        typed_key=f"{key:.12g} {unit}".strip(),
        key=key,
        unit=unit,
        tolerance=tolerance,
        mistakes=mistakes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedNumber(Variant):
    """A number to give."""

    key: float
    unit: str
    tolerance: AnswerTolerance
    mistakes: tuple[tuple[float, Remark], ...]
    ends: tuple[Remark, ...] = ()
    """What else refutes any other number: it shows the key."""

    @property
    def form(self) -> str:
        """How an answer looks."""
        if not self.unit:
            return Told("a number without a unit: 8 or 3/16")
        return Told("a number and a unit: 17.5 {unit}", unit=self.unit)

    @property
    def is_computed(self) -> bool:
        """Whether its explanation reckons: it does."""
        return True

    def grade(self, answer: str) -> Grade:
        """Return all or nothing, with a wrong unit or a known mistake named.

        Raises:
            AnswerError: no quantity, or one of another dimension.
        """
        try:
            given = parse_quantity(answer, expected=self.form, to=self.unit)
        except UnitError as error:
            if self.unit:
                raise AnswerError(*error.args) from None
            raise not_read(answer, self.form) from None
        except QuantityError as error:
            raise AnswerError(*error.args) from None
        if given.unit and dimension(given.unit) != dimension(self.unit):
            raise AnswerError(self._other_dimension(given))
        value = self._value(given)
        if self.accepts(value):
            return Grade(1)
        if given.unit and self.accepts(given.number):
            return Grade(0, (self._other_unit(given.unit),))
        read = []
        if given.is_computed:
            shown = f"{format_number(value)} {self.unit}".strip()
            read = [Remark(Told("Read as {value}.", value=shown))]
        return Grade(0, (*read, *self._said_to(value)))

    def in_the_end(self, answer: str) -> tuple[Remark, ...]:
        """Return what shows the number that was observed."""
        return self.ends

    def _said_to(self, value: float) -> Iterator[Remark]:
        """Yield the first thing that is known of a wrong number."""
        near = [(value, self.near)] if self.tolerance.is_near(value, self.key) else []
        for wrong, said in (*self.mistakes, *self.twin(), *near, *self.eighths()):
            if self.tolerance.accepts(value, wrong):
                yield said
                return

    @property
    def near(self) -> Remark:
        """What is said to a number that may be right, rounded too far."""
        how = self.tolerance.told(self.unit)
        return Remark(Told("Near, but not near enough: {how}.", how=how))

    def accepts(self, number: float) -> bool:
        """Tell whether a number in the question's unit is right."""
        return self.tolerance.accepts(number, self.key)

    def _value(self, given: TypedQuantity) -> float:
        """Return the number that was meant, in the question's unit."""
        if given.unit:
            return convert(given.number, given.unit, self.unit)
        # A share is often given as 0.158 where 15.8% was asked.
        if self.unit == "%" and self.accepts(100 * given.number):
            return 100 * given.number
        # As is a count: 8.7e9 where 8.7 billion was asked.
        if self.unit == "billion" and self.accepts(given.number / 1e9):
            return given.number / 1e9
        return given.number

    def _other_dimension(self, given: TypedQuantity) -> Told:
        return Told(
            "read as {number} {given}, which measures {measured}; expected {asked}, in "
            "{unit}"
            if self.unit
            else "read as {number} {given}, which measures {measured}; expected a "
            "number without a unit",
            number=format_number(given.number),
            given=given.unit,
            measured=Told(dimension(given.unit)),
            asked=Told(dimension(self.unit)),
            unit=self.unit,
        )

    def _other_unit(self, unit: str) -> Remark:
        return Remark(
            Told(
                "The number would be right in {unit}, but you wrote {given}: "
                "1 {given} is {worth} {unit}."
                if self.unit
                else "The number would be right in no unit, but you wrote {given}: "
                "1 {given} is {worth}.",
                given=unit,
                unit=self.unit,
                worth=format_number(convert(1, unit, self.unit)),
            )
        )

    def twin(self) -> list[tuple[float, Remark]]:
        """Return the key in GiB where GB was asked for, or the other way round."""
        twin = binary_twin(self.unit)
        if not twin:
            return []
        told = Told(
            "That is the right number of {given}; {unit} was asked for: "
            "1 {given} is {worth} {unit}.",
            given=twin,
            unit=self.unit,
            worth=f"{convert(1, twin, self.unit):.4f}",
        )
        return [(convert(self.key, self.unit, twin), Remark(told))]

    def eighths(self) -> list[tuple[float, Remark]]:
        """Return the key with bits and bytes confused."""
        if dimension(self.unit) not in ("bytes", "bytes per second"):
            return []
        bits = Told("That is off by 8: bits instead of bytes.")
        eighth = Told("That is off by 8: an eighth instead of bytes.")
        return [(self.key * 8, Remark(bits)), (self.key / 8, Remark(eighth))]
