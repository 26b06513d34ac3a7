"""What the numbers in prose come to, each with its unit and where it is from.

A unit that is a symbol is reckoned in: of bytes ``GB`` is a thousand millions, of
seconds ``ms`` a thousandth. A unit that is a word (``days``, ``tokens``) stands behind
the number as that is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from markupsafe import Markup, escape

from readerkit.content.chapters import ChapterText, Part, parts_of
from readerkit.content.inline_numbers import (
    InlineNumber,
    inline_numbers,
    is_whole,
    named_expression,
)
from readerkit.errors import ContentError, ContentFault
from readerkit.model.expression import ExpressionError, Functions, Number, evaluate
from readerkit.model.language import Say, english
from readerkit.render.estimate_table import ONE_OF
from readerkit.wording import numbers

_SLOT = re.compile(r"⟦=(\d+)⟧")
"""Where a number goes once the prose around it is HTML; none stands in a text."""
_SCALED = re.compile(r"(k|[MGTPE]i?|Ki|m|µ|u|n)?(B/s|B|FLOP/s|FLOP|bit/s|s)")
_PREFIXES = {
    **{**numbers.DECIMAL, **numbers.BINARY_PREFIXES},
    **{"m": 1e-3, "µ": 1e-6, "u": 1e-6, "n": 1e-9},
}
_CHOSEN: Mapping[str, Callable[[float], str]] = {
    "B": numbers.format_bytes,
    "B/s": numbers.format_rate,
    "FLOP/s": numbers.format_flop_rate,
    "s": lambda value: numbers.format_seconds(value, None) if value else "0 s",
}
"""Units of which the prefix is chosen by the size."""
_DAYS = {"hours": 1 / 24, "days": 1, "weeks": 7, "months": 30, "years": 365}
_CENTURIES = 400 * 365
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


@dataclass(frozen=True, slots=True)
class Origin:
    """A number of a text, and the expression that it is."""

    name: str
    """Empty where it was given none."""
    expression: str
    value: str


@dataclass(slots=True)
class Computed:
    """The numbers of one text: names that it gives, and what each one comes to."""

    functions: Functions = field(default_factory=dict)
    say: Say = english
    """The Spanish of units."""
    names: dict[str, Number] = field(default_factory=dict)
    origins: dict[tuple[str, str], Origin] = field(default_factory=dict)
    """Each number once, by its name and expression."""

    def define(self, script: ChapterText) -> Iterator[ContentFault]:
        """Give names to what the ``let`` of a text say; yield what is wrong with it."""
        for part in parts_of(script.text, script.file):
            if part.kind == "let":
                for row, text in enumerate(part.body.splitlines()):
                    yield from self._define(part, row, text)

    def _define(self, part: Part, row: int, text: str) -> Iterator[ContentFault]:
        if not text.strip():
            return
        named = named_expression(text)
        if named is None:
            expected = "a name in lower case, =, and an expression"
            yield _fault(part, row + 1, "not a row of 'let'", f"'{text}'", expected)
            return
        name, expression = named
        if name in self.names:
            yield _fault(part, row + 1, f"'{name}' has a value already")
            return
        try:
            self.names[name] = evaluate(expression, self.names, self.functions)
        except ExpressionError as error:
            yield _fault(part, row + 1, str(error))
            return
        shown = plain_number(self.names[name])
        self.origins[name, expression] = Origin(name, expression, shown)

    def faults(self, part: Part) -> Iterator[ContentFault]:
        """Yield what is wrong with the numbers of a run of prose, each at its line."""
        if not is_whole(part.body):
            at = part.body.index("{=", _last_end(part.body))
            expected = "{= EXPRESSION } or {= EXPRESSION | UNIT }"
            row = part.body.count("\n", 0, at)
            yield _fault(part, row, "a number that does not end", "", expected)
        for each in inline_numbers(part.body):
            try:
                self.text_of(each)
            except ExpressionError as error:
                yield _fault(part, part.body.count("\n", 0, each.start), str(error))

    def text_of(self, number: InlineNumber, say: Say = english) -> str:
        """Return a number with its unit, in one language.

        Raises:
            ExpressionError: it has no value, or not in this unit.
        """
        value = evaluate(number.expression, self.names, self.functions)
        text = with_unit(value, number.unit, say)
        if number.expression not in self.names and not _is_plain(number.expression):
            own = Origin("", number.expression, with_unit(value, number.unit))
            self.origins.setdefault(("", number.expression), own)
        return text

    def filled(
        self, text: str, render: Callable[[str], Markup], *, spanish: bool
    ) -> Markup:
        """Return a text as HTML, rendered around its numbers.

        Raises:
            ExpressionError: a number without a value.
        """
        say = self.say if spanish else english
        found = [(each, self.text_of(each, say)) for each in inline_numbers(text)]
        if not found:
            return render(text)
        pieces, reached = [], 0
        for at, (each, told) in enumerate(found):
            pieces.append(text[reached : each.start])
            pieces.append(_in_formula(told) if _in_math(text, each) else f"⟦={at}⟧")
            reached = each.end
        html = render("".join([*pieces, text[reached:]]))
        slot = '<span class="computed">{}</span>'
        return Markup(
            _SLOT.sub(lambda m: slot.format(escape(found[int(m[1])][1])), html)
        )


def with_unit(value: Number, unit: str, say: Say = english) -> str:
    """Return a number in a unit.

    >>> with_unit(140e9, "B"), with_unit(0.125, "%"), with_unit(2.5e-3, "ms")
    ('140 GB', '12.5%', '2.5 ms')
    >>> with_unit(3.15e23, "FLOP"), with_unit(1, "days"), with_unit(70e9, "GB")
    ('3.15 × 10²³ FLOP', '1 day', '70 GB')

    Raises:
        ExpressionError: more of a unit of time than there can be.
    """
    if not unit:
        return plain_number(value)
    if unit in _CHOSEN:
        return _CHOSEN[unit](value)
    if unit == "%":
        return f"{plain_number(value * 100)}%"
    if scaled := _SCALED.fullmatch(unit):
        return f"{plain_number(value / _PREFIXES.get(scaled[1], 1))} {unit}"
    if value * _DAYS.get(unit, 0) > _CENTURIES:
        raise ExpressionError(
            f"got {value:,.4g} {unit}: expected a number of {unit}; seconds are "
            f"divided first, by {numbers.SECONDS_PER_DAY * _DAYS[unit]:,.0f}"
        )
    if unit == "x":
        return f"{plain_number(value)}x"
    named = ONE_OF.get(unit, unit) if value == 1 else unit
    return f"{plain_number(value)} {say(named)}"


def plain_number(value: Number) -> str:
    """Return a number as prose has it: three digits, whole ones in full up to 10^12.

    >>> plain_number(6738415616), plain_number(2.98569), plain_number(1e-5)
    ('6,738,415,616', '2.99', '1 × 10⁻⁵')
    """
    if isinstance(value, float) and value.is_integer() and abs(value) < 10**12:
        value = int(value)
    size = abs(value)
    if value and not 1e-3 <= size < 10**12:
        digits, _, power = f"{value:.2e}".partition("e")
        short = digits.rstrip("0").rstrip(".")
        return f"{short} × 10{str(int(power)).translate(_RAISED)}"
    if isinstance(value, int):
        return f"{value:,}"
    return numbers.format_digits(value)


def _is_plain(expression: str) -> bool:
    return re.fullmatch(r"[\d.,_e]+", expression) is not None


def _last_end(text: str) -> int:
    """Return where the numbers end before the first that does not."""
    end = 0
    for each in inline_numbers(text):
        if "{=" in text[end : each.start]:
            break
        end = each.end
    return end


def _in_math(text: str, number: InlineNumber) -> bool:
    paragraph = text[: number.start].rpartition("\n\n")[2]
    return paragraph.replace("$$", "$").count("$") % 2 == 1


def _in_formula(told: str) -> str:
    value, blank, unit = told.replace("%", r"\%").partition(" ")
    unit = rf"\,\text{{{unit}}}" if blank else ""
    return value.replace(",", "{,}") + unit


def _fault(
    part: Part, row: int, what: str, got: str = "", expected: str = ""
) -> ContentFault:
    return ContentFault(part.file, part.at + row, 1, what, got, expected)


def computed_of(
    script: ChapterText, functions: Functions, say: Say = english
) -> Computed:
    """Return the numbers of a text, its names given.

    Raises:
        ContentError: a name without a value.
    """
    found = Computed(functions, say)
    if faults := [*found.define(script)]:
        raise ContentError(faults)
    return found
