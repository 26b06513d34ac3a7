"""Values that estimates are asked with: sizes and counts with units, ZeRO stages."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from readerkit.terminal.completing import names

if TYPE_CHECKING:
    from readerkit.estimate.quantity import Number

_NUMBER = re.compile(
    r"([+-]?[0-9][0-9_]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)"
)
_BYTES = {"": 1, "b": 1} | {
    f"{letter}{suffix}": step**power
    for power, letter in enumerate("kmgtp", start=1)
    for suffix, step in (("b", 1000), ("ib", 1024))
}
_COUNTS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}


class QuantityType(click.ParamType):  # type: ignore[type-arg]
    """A number with a unit: bytes (10GB, 25MiB) or counts (70B, 2T)."""

    def __init__(self, name: str, units: dict[str, int], example: str) -> None:
        self.name, self.units, self.example = name, units, example

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Number:
        """Return the number in its base unit, whole where it is whole."""
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]
        found = _NUMBER.fullmatch(value.strip())
        if not found or found[2].lower() not in self.units:
            self.fail(f"got '{value}', expected {self.example}", param, ctx)
        digits = found[1].replace("_", "")
        scale = self.units[found[2].lower()]
        if re.fullmatch(r"[+-]?[0-9]+", digits):
            return int(digits) * scale
        number = float(digits) * scale
        if not math.isfinite(number):
            self.fail(f"got '{value}', expected a finite number", param, ctx)
        return int(number) if number.is_integer() else number


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


SIZE = QuantityType("size", _BYTES, "bytes, such as 10GB (10^9) or 25MiB (2^20)")
COUNT = QuantityType("count", _COUNTS, "a number, such as 70B or 1.5e12")


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


def option(kind: Any, name: str, text: str, default: Any = None, **more: Any) -> Any:
    """Return an option with one value: ``--top-k``, of a kind, what its help says."""
    if default is not None:  # given as None it would answer a required option
        more["default"] = default
    return click.option(f"--{name}", type=kind, help=text, **more)


count, size, real = (partial(option, kind) for kind in (COUNT, SIZE, float))
"""An option for a whole number or so many, for bytes, for a decimal fraction."""
word = partial(option, str, metavar="NAME")
gpu = partial(word, "gpu", shell_complete=names("gpus"))
