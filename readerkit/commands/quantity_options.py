"""Values that estimates are asked with: sizes and counts with units, ZeRO stages."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from readerkit.model.number_with_unit import (
    UNITS,
    BitOrByteError,
    QuantityError,
    TypedQuantity,
    UnitError,
    dimension,
    parse_quantity,
)
from readerkit.terminal.completing import names

if TYPE_CHECKING:
    from readerkit.estimate.quantity import Number

LEAST = 1000
"""Of bytes and of parameters; fewer lack their unit."""
_SMALL_COUNT = re.compile(r"(?<=\d)\s*[mt]$")
"""A million or a trillion: what has no other unit is no minute."""


class QuantityType(click.ParamType):  # type: ignore[type-arg]
    """A number with a unit: a count (70B, 2T)."""

    in_bytes = False

    def __init__(self, name: str, example: str) -> None:
        self.name, self.example = name, example

    def refused(self, unit: str) -> str:
        """Return what is expected instead of a unit; nothing where it fits."""
        return "" if unit in ("", "x") else self.example

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Number:
        """Return the number in its base unit, whole where it is whole."""
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]
        if (
            value.isascii()
            and value.isdigit()
            and len(value) < 18
            and not self.in_bytes
        ):
            return int(value)
        try:
            given = self._read(value)
        except QuantityError as error:
            self.fail(str(error), param, ctx)
        from fractions import Fraction  # no whole number needs it

        exact = given.exact() * Fraction(UNITS[given.unit][1])
        if exact.denominator == 1:
            return exact.numerator
        if self.name == "count":
            self.fail(f"got '{value}', expected a whole number: 7.5B is", param, ctx)
        return float(exact)

    def _read(self, value: str) -> TypedQuantity:
        to, text = "B", value
        if not self.in_bytes:
            to, text = "", _SMALL_COUNT.sub(lambda found: found[0].upper(), value)
        expected = self.example
        try:
            given = parse_quantity(
                text, expected=expected, to=to, b_is_bit=self.in_bytes
            )
        except UnitError as error:
            if self.in_bytes and isinstance(error, BitOrByteError):
                raise
        else:
            is_twice = given.times != 1 and "e" in given.digits.lower()
            if not is_twice and not (expected := self.refused(given.unit)):
                return given
            if is_twice:
                unit = text.strip()[-1]
                expected = f"one of both: {given.digits}, or a number with {unit}"
        raise QuantityError(f"got '{value}', expected {expected}")


class SizeType(QuantityType):
    """Bytes (10GB, 25MiB), or bits (10Gb); of a rate, in a second (50GB/s, 400Gbps)."""

    in_bytes = True

    def refused(self, unit: str) -> str:
        """Return what is expected instead of a unit; nothing where it fits."""
        is_rate = self.name == "rate"
        if not unit:
            return self.example if is_rate else ""
        fitting = ("bytes", "bytes per second") if is_rate else ("bytes",)
        return "" if dimension(unit) in fitting else self.example


class WholeSizeType(SizeType):
    """Bytes of a tensor: so few that a unit was forgotten are none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Number:
        """Return the bytes."""
        size = super().convert(value, param, ctx)
        bare = isinstance(value, str) and value.strip()[-1:].isdigit()
        if bare and 0 < size < LEAST:
            self.fail(
                f"got '{value}', expected a unit: {value}GB, {value}B", param, ctx
            )
        if isinstance(size, float) and size < LEAST:
            self.fail(
                f"got '{value}', expected whole bytes: 7GB, or 7B (7b is bits)",
                param,
                ctx,
            )
        return size


class ParametersType(QuantityType):
    """Parameters: so few that B or M was forgotten are none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Number:
        """Return how many."""
        many = super().convert(value, param, ctx)
        if isinstance(value, str) and 0 < many < LEAST:
            meant = f"{LEAST:,} or more: {value}B is {value} × 10^9, {value}M × 10^6"
            self.fail(f"got '{value}', expected {meant}", param, ctx)
        return many


class MemoryType(SizeType):
    """Bytes of a GPU: with their unit, and never in bits."""

    def refused(self, unit: str) -> str:
        """Return what is expected instead of a unit; nothing where it fits."""
        if not unit:
            return "a unit: 80GB"
        if unit.endswith("bit"):
            return "bytes: 80GB"
        return "the memory of a GPU: 80GB" if unit == "B" else super().refused(unit)


class RealType(click.types.FloatParamType):
    """A decimal fraction, and no word for one that is none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number."""
        try:
            number = float(value)
        except ValueError:
            share = " (a share: 0.4 is 40%)" if str(value).endswith("%") else ""
            self.fail(f"got '{value}', expected a number{share}", param, ctx)
        if not math.isfinite(number):
            self.fail(f"got '{value}', expected a finite number", param, ctx)
        return number


class EstimateCommand(click.Command):
    """A command that takes a negative number for one, and not for an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does; name the number where one looks like an option."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if not error.option_name.lstrip("-")[:1].isdigit():
                raise
            number = next(arg for arg in given if arg.startswith(error.option_name))
            message = f"got '{number}', expected a number that is not negative"
            raise click.UsageError(message, ctx) from None


SIZE = WholeSizeType(
    "size", "bytes, such as 10GB (10^9) or 25MiB (2^20), or bits: 10Gb"
)
RATE = SizeType("rate", "bytes a second, such as 50GB/s, or bits: 400Gb/s, 400Gbps")
REAL = RealType()
MEMORY = MemoryType("size", "bytes, such as 80GB (10^9) or 80GiB (2^30)")
COUNT = QuantityType("count", "a number, such as 70B or 1.5e12")
PARAMETERS = ParametersType(
    "count", "a number, such as 70B or 1.5e12; B and b are 10^9: it has no bytes"
)
AMOUNT = QuantityType("amount", "a number, such as 2 or 1.5")


ZERO_SPELLINGS = {
    "0": (0,),
    "ddp": (0,),
    "1": (1,),
    "2": (2,),
    "3": (3,),
    "fsdp": (3,),
    "1/2": (1, 2),
    "½": (1, 2),
}


class ZeroStages(click.ParamType):  # type: ignore[type-arg]
    """A ZeRO stage by any of its names; ``1/2`` and ``½`` mean both stages."""

    name = "stage"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Return the stages that are meant."""
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]
        word = re.sub(r"^zero[ -]?", "", value.strip().lower())
        if word not in ZERO_SPELLINGS:
            self.fail(f"got '{value}', expected 0 (ddp), 1, 2 or 3 (fsdp)", param, ctx)
        return ZERO_SPELLINGS[word]

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names that are letters and digits."""
        fitting = (name for name in ZERO_SPELLINGS if name.startswith(incomplete))
        return [CompletionItem(name) for name in fitting if name.isascii()]


class Several(click.ParamType):  # type: ignore[type-arg]
    """Values of one kind with commas between, each once; or ``all``."""

    name = "list"

    def __init__(self, kind: click.ParamType) -> None:  # type: ignore[type-arg]
        self.kind = kind

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the values in their order."""
        if not isinstance(value, str) or value == "all":
            return value
        each = (self.kind.convert(one.strip(), param, ctx) for one in value.split(","))
        return tuple(dict.fromkeys(each))


def option(kind: Any, name: str, text: str, default: Any = None, **more: Any) -> Any:
    """Return an option with one value: ``--top-k``, of a kind, what its help says."""
    if default is not None:  # given as None it would answer a required option
        more["default"] = default
    return click.option(f"--{name}", type=kind, help=text, **more)


def either(names: Iterable[str], default: str) -> str:
    """Return names as a help says them: one, another (default) or a third."""
    *first, last = (f"{each} (default)" if each == default else each for each in names)
    return f"{', '.join(first)} or {last}"


def word(name: str, text: str, default: Any = None, **more: Any) -> Any:
    """Return an option that takes a name; the shell completes it if that is known."""
    complete = names(name, several=name == "recompute")
    more = {"shell_complete": complete, "metavar": "NAME", **more}
    return option(str, name, text, default, **more)


count, amount, size, rate, real = (
    partial(option, kind) for kind in (COUNT, AMOUNT, SIZE, RATE, REAL)
)
"""An option for a count, an amount, bytes, bytes a second, a decimal fraction."""
parameter_count = partial(option, PARAMETERS, "params")
"""The option for how many parameters, without a model."""
memory_size = partial(option, MEMORY)
"""An option for the bytes of a GPU."""
gpu = partial(word, "gpu", shell_complete=names("gpus"))
