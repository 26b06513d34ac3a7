"""Figures of other tools beside ours: what differs, part by part, and why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from readerkit.estimate.item import Worksheet
from readerkit.estimate.quantity import Number, Quantity

CONVENTIONS = ("megatron-report", "cookbook", "deepspeed")
TOTALS = ("theoretical memory", "training", "per GPU", "per CPU")
"""What each tool's figure is called here."""
COMPARISON = "a comparison"


class Counted(NamedTuple):
    """One part that two ways of counting come to otherwise."""

    name: str
    ours: Number
    theirs: Number
    reason: str
    factor: Number = 1
    """Bytes of one of what both count."""

    @property
    def value(self) -> Number:
        """What ours is more."""
        return (self.ours - self.theirs) * self.factor


def write_differences(
    sheet: Worksheet, theirs: str, parts: Iterable[Counted], ours: str = "ours"
) -> None:
    """Write down each difference, and our total as theirs with all of them."""
    names = [theirs]
    for part in parts:
        value = part.value
        if value:
            if not isinstance(value, Quantity):
                value = Quantity.given(f"δ {part.name}", value, "ours less theirs")
            name = f"{ours} less theirs: {part.name}"
            sheet.add(name, value, "bytes", COMPARISON, part.reason)
            names.append(name)
    total = sheet.total(names)
    sheet.add(ours, total, "bytes", COMPARISON, "theirs, and every difference")
