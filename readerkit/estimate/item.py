"""What a question comes to: items, each with its quantity, unit and source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from readerkit.estimate.quantity import Number, Quantity, named
from readerkit.model.expression import plain

Unit = Literal[
    "parameters",
    "bytes",
    "bytes/parameter",
    "bytes/s",
    "seconds",
    "days",
    "years",
    "GPU-hours",
    "FLOPs",
    "FLOP/s",
    "fraction",
    "times",
    "steps",
    "elements",
    "tokens",
    "microbatches",
    "USD",
]


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
        """Refuse a number that does not know how it came about."""
        if not isinstance(self.quantity, Quantity):
            raise TypeError(f"{self.name}: got {self.quantity!r}, expected a Quantity")

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

    def to_plain(self) -> dict[str, Any]:
        """Return the estimate as a JSON object."""
        return {
            "title": self.title,
            "items": [item.to_plain() for item in self.items],
            "symbols": self.symbols,
            "notes": list(self.notes),
        }


@dataclass(slots=True)
class Worksheet:
    """An estimate that is being worked out, item by item."""

    title: str
    items: list[Item] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(
        self, name: str, quantity: Any, unit: Unit, source: str, convention: str = ""
    ) -> Number:
        """Write an item down, and return it by its name for what is made of it."""
        self.items.append(Item(name, quantity, unit, source, convention))
        return named(quantity, name)

    def total(self, names: Iterable[str]) -> Number:
        """Return the sum of some items, by their names."""
        by_name: dict[str, Any] = {item.name: item.quantity for item in self.items}
        return sum(named(by_name[name], name) for name in names)

    def estimate(self) -> Estimate:
        """Return the finished estimate."""
        return Estimate(self.title, tuple(self.items), tuple(self.notes))
