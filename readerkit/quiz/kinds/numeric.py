"""Numbers with units: the key is a formula over the parameters as displayed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from msgspec import Meta

from readerkit.errors import ReaderkitError
from readerkit.model.base import Formula, Model, Name, Text
from readerkit.model.expression import Number
from readerkit.model.language import Told
from readerkit.model.number_with_unit import (
    MEGA,
    UNITS,
    QuantityError,
    TypedQuantity,
    UnitError,
    binary_twin,
    convert,
    dimension,
    find_unit,
    may_be_billions,
    parse_quantity,
)
from readerkit.quiz.kinds.question import Parameter, Question, not_read
from readerkit.quiz.messages import Remark
from readerkit.quiz.number_reasons import counts_in, shown_formula, told_factor
from readerkit.quiz.prompts import NumericPrompt, PredictPrompt
from readerkit.quiz.seeded_draw import SeededDraw
from readerkit.quiz.tolerance import AnswerTolerance, two_readings
from readerkit.quiz.variant import (
    AnswerError,
    Grade,
    Scene,
    Variant,
    format_number,
    formulas_of,
)

DEFAULT_RELATIVE = 0.01


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
        return any(asked.accepts(scene.number(each)) for each in self._beside())

    def _beside(self) -> list[str]:
        """Return the formulas that may give the key a second time."""
        again = self.again
        return formulas_of(self.explanation) if again is None else [str(again)]

    def own_texts(self) -> list[str]:
        """Return the remarks on mistakes."""
        return [wrong.says for wrong in self.misconceptions]

    def ask(self, scene: Scene, draw: SeededDraw) -> AskedNumber:
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
        asked = ask_number(NumericPrompt, scene, key, self.unit, near, known)
        return replace(asked, formulas=(str(self.answer.value), *self._beside()))


def ask_number(
    prompt: type[NumericPrompt | PredictPrompt],
    scene: Scene,
    key: float,
    unit: str,
    tolerance: AnswerTolerance,
    mistakes: tuple[tuple[float, Remark], ...] = (),
) -> AskedNumber:
    """Return a number to give; ``mistakes`` are wrong ones, and what to say to each."""
    large = {"million": Told("millions"), "billion": Told("billions")}
    form = Told("in {unit}", unit=large.get(unit, unit))
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
        values=scene.values,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedNumber(Variant):
    """A number to give."""

    key: float
    unit: str
    tolerance: AnswerTolerance
    mistakes: tuple[tuple[float, Remark], ...]
    values: Mapping[str, Number] = field(default_factory=dict)
    """The numbers of the question."""
    formulas: tuple[str, ...] = ()
    """Those that may give the key."""
    seen: tuple[Remark, ...] = ()
    """What shows a key that was observed."""

    @property
    def ends(self) -> tuple[Remark, ...]:
        """What else refutes any other number: it shows the key."""
        told = (self.values, self.accepts, self.told.solution)
        return self.seen or shown_formula(self.formulas, *told)

    @property
    def counts(self) -> tuple[int, ...]:
        """Numbers of the question that may be taken one too large or too small."""
        return counts_in(self.values)

    @property
    def form(self) -> str:
        """How an answer looks."""
        if not self.unit:
            return Told("a number without a unit: 41.7 or 3/16")
        return Told("a number and a unit: 41.7 {unit}", unit=self.unit)

    @property
    def is_computed(self) -> bool:
        """Whether its explanation reckons: it does."""
        return True

    def grade(self, answer: str) -> Grade:
        """Return all or nothing, with a wrong unit or a known mistake named.

        Raises:
            AnswerError: no quantity, one of another dimension, or two at once.
        """
        given = self._read(answer)
        value = self._value(given)
        if self.accepts(value):
            return Grade(1)
        if given.unit and self.accepts(given.number):
            return Grade(0, (self._other_unit(given.unit),))
        if ask := two_readings(answer, value, self.key):
            raise AnswerError(ask)
        read = []
        if given.is_computed or (not given.unit and value != given.number):
            shown = f"{format_number(value)} {self.unit}".strip()
            read = [Remark(Told("Read as {value}.", value=shown))]
        return Grade(0, (*read, *self._said_to(value)))

    def in_the_end(self, answer: str) -> tuple[Remark, ...]:
        """Return how far off a number is that nobody foresaw, then the formula."""
        given = self._read(answer)
        value = self._value(given)
        is_known = bool(given.unit) and self.accepts(given.number)
        foreseen = (*self.mistakes, *self.twin(), *self.eighths())
        is_known |= any(self.tolerance.accepts(value, wrong) for wrong, _ in foreseen)
        off = None if is_known else told_factor(value, self.key, self.counts)
        return (*((Remark(off),) if off else ()), *self.ends)

    def _read(self, answer: str) -> TypedQuantity:
        """Return the quantity that was typed.

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
        if may_be_billions(given, self.unit):
            told = "read as {number} bytes; a billion is e9: 16 * 7e9 B, or {unit}"
            number = format_number(given.number)
            raise AnswerError(Told(told, number=number, unit=self.unit))
        return given

    def _said_to(self, value: float) -> Iterator[Remark]:
        """Yield the first thing that is known of a wrong number."""
        near = [(value, self.near)] if self.tolerance.is_near(value, self.key) else []
        for wrong, said in (*self.mistakes, *self.twin(), *near, *self.eighths()):
            if self.tolerance.accepts(value, wrong):
                yield said
                return

    @property
    def near(self) -> Remark:
        """What is said to a number that may be right, rounded too far, or not yet."""
        if self.tolerance.is_of_counts(self.key):
            return Remark(Told("Near; a whole number is asked for."))
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
        # As is a count, 8.7e9 where 8.7 billion was asked, and 480e9 for 480 GB.
        scale = UNITS[self.unit][1]
        if scale >= MEGA and given.number > self.key * math.sqrt(scale) > 0:
            return given.number / scale
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
