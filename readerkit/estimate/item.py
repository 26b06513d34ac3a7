"""What a question comes to: items, each with its quantity, unit and source."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import inf
from textwrap import dedent
from typing import Any, Literal, cast, get_args

from readerkit.errors import EstimateError
from readerkit.estimate.quantity import Number, Quantity, express, named
from readerkit.model.expression import plain
from readerkit.model.language import Say

Unit = Literal[
    "parameters",
    "bytes",
    "bytes/parameter",
    "bytes/s",
    "seconds",
    "hours",
    "days",
    "years",
    "GPU-hours",
    "FLOPs",
    "FLOP/s",
    "PF-days",
    "fraction",
    "times",
    "steps",
    "elements",
    "tokens",
    "tokens/s",
    "buckets",
    "sequences",
    "microbatches",
    "USD",
]

MOST: dict[Unit, float] = {"bytes": 1e21, "parameters": 1e18, "FLOPs": 1e32}
"""Beyond every machine, model and training there is: a mistake of what was asked."""


@dataclass(frozen=True, slots=True)
class Item:
    """One number, what it is, and where it comes from."""

    name: str
    quantity: Quantity
    """Its value, and the formula that it is."""
    unit: Unit
    source: str
    convention: str = ""
    """Which of several customs it follows, where there are several."""

    def __post_init__(self) -> None:
        """Refuse a number that does not know how it came about, or cannot be.

        Raises:
            EstimateError: it is beyond every machine.
        """
        if not isinstance(self.quantity, Quantity):
            raise TypeError(f"{self.name}: got {self.quantity!r}, expected a Quantity")
        if self.quantity > MOST.get(self.unit, inf):
            raise EstimateError(
                f"{self.name}: got {float(self.quantity):.3g} {self.unit}, expected at "
                f"most {MOST[self.unit]:.0e}: one of the sizes is too large"
            )

    @property
    def value(self) -> Number:
        """The number itself."""
        return self.quantity.value

    @property
    def formula(self) -> str:
        """What it is of other numbers, by their names."""
        return self.quantity.formula

    @property
    def substitution(self) -> str:
        """The formula with its numbers."""
        return self.quantity.substitution

    def said(self, say: Say) -> Item:
        """Return the item with its names in another language."""
        return replace(self, name=say(self.name), quantity=self.quantity.said(say))

    def to_plain(self) -> dict[str, Any]:
        """Return the item as a JSON object."""
        inputs = self.quantity.inputs.items()
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "formula": self.formula,
            "substitution": self.substitution,
            "inputs": {name: plain(each.value) for name, each in inputs},
            "source": self.source,
            "convention": self.convention,
        }


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one question comes to: its items, in reading order."""

    title: str
    items: tuple[Item, ...]
    notes: tuple[str, ...] = ()
    """What the numbers leave out, and where a known tool says otherwise."""

    def __getitem__(self, name: str) -> Number:
        """Return the value of an item by its name."""
        for item in self.items:
            if item.name == name:
                return item.value
        raise KeyError(name)

    @property
    def symbols(self) -> dict[str, str]:
        """What each symbol of the formulas stands for."""
        return {
            name: each.means
            for item in self.items
            for name, each in item.quantity.inputs.items()
            if each.means
        }

    def said(self, say: Say) -> Estimate:
        """Return the estimate with its names in another language."""
        items = tuple(item.said(say) for item in self.items)
        return replace(self, title=say(self.title), items=items)

    def to_plain(self) -> dict[str, Any]:
        """Return the estimate as a JSON object."""
        return {
            "title": self.title,
            "items": [item.to_plain() for item in self.items],
            "symbols": self.symbols,
            "notes": list(self.notes),
        }


_ROW = re.compile(
    r"(?P<name>[^[]+) \[(?P<unit>.+?)\] = (?P<expression>.+?)"
    r" \| (?P<source>.+?) \| (?P<convention>.+)"
)


@dataclass(slots=True)
class Worksheet:
    """An estimate that is being worked out, row by row.

    >>> sheet = Worksheet("a pipe")
    >>> S, B = sheet.given("S", 12, "bytes"), sheet.given("B", 3, "bytes in a second")
    >>> sheet.write("first half [seconds] = S / 2 / B | a count | no latency")
    >>> sheet.write("all of it [seconds] = 2 × first half | a count | no latency")
    >>> sheet.items[-1].formula, sheet.items[-1].value
    ('2 × first half', 4)
    """

    title: str
    items: list[Item] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    """What a row may be made of: what is given, and the rows above it."""

    def __getitem__(self, name: str) -> Any:
        """Return what is given under a name, or the row of that name."""
        return self.names[name]

    def given(self, name: str, value: Any, means: str = "") -> Any:
        """Take a number that is not computed here, and return it under its name."""
        self.names[name] = Quantity.given(name, value, means)
        return self.names[name]

    def write(self, rows: str, **values: Any) -> None:
        """Write rows down: ``name [unit] = expression | source | convention``.

        A row goes on where a line begins further in. An expression is made of the
        sheet's names, those of its rows too, and of ``values``.

        Raises:
            ValueError: a line that is no row, or whose unit is none.
        """
        for line in re.sub(r"\n {4,}", " ", dedent(rows).strip()).splitlines():
            row = _ROW.fullmatch(line)
            if row is None or row["unit"] not in get_args(Unit):
                raise ValueError(
                    f"no row of a worksheet: got {line!r}, expected "
                    "name [unit] = expression | source | convention"
                )
            names, expression = self.names | values, row["expression"]
            # Names as people write them, longest first: no part of one is another.
            wide = sorted((n for n in names if not n.isidentifier()), key=len)
            for at, name in enumerate(reversed(wide)):
                names[f"_{at}"] = names[name]
                expression = expression.replace(name, f"_{at}")
            quantity, unit = express(expression, names), cast(Unit, row["unit"])
            self.add(row["name"], quantity, unit, row["source"], row["convention"])

    def add(
        self, name: str, quantity: Any, unit: Unit, source: str, convention: str = ""
    ) -> Any:
        """Write an item down, and return it by its name for what is made of it."""
        self.items.append(Item(name, quantity, unit, source, convention))
        self.names[name] = named(quantity, name)
        return self.names[name]

    def total(self, names: Iterable[str]) -> Any:
        """Return the sum of some items, by their names."""
        return sum(self.names[name] for name in names)

    def estimate(self) -> Estimate:
        """Return the finished estimate."""
        return Estimate(self.title, tuple(self.items), tuple(self.notes))
