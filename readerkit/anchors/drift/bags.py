"""Definitions as bags of lines: how alike two are, and which are worth a look."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from readerkit.anchors.drift.text import Weight

_FEW = 20
"""A line that more definitions hold says little about which one it came from."""


def bag_likeness(one: Counter[bytes], other: Counter[bytes], weight: Weight) -> float:
    """Return how much of two bags of lines is the same, by weight, from 0 to 1."""
    if len(one) > len(other):
        one, other = other, one
    both = sum(
        min(count, other[key]) * weight(key)
        for key, count in one.items()
        if key in other
    )
    if not both:
        return 0.0
    total = sum(
        count * weight(key) for bag in (one, other) for key, count in bag.items()
    )
    return 2 * both / total


def holders_of(bags: list[Counter[bytes]]) -> dict[bytes, list[int]]:
    """Return which bags hold each line."""
    found: dict[bytes, list[int]] = defaultdict(list)
    for number, bag in enumerate(bags):
        for key in bag:
            found[key].append(number)
    return found


def worth_a_look(
    bag: Counter[bytes], holders: dict[bytes, list[int]] | None, count: int
) -> Iterable[int]:
    """Return the bags that share a line with one which few have; few bags: all."""
    if holders is None:
        return range(count)
    lists = (holders.get(key, ()) for key in bag)
    return sorted({n for found in lists if len(found) <= _FEW for n in found})
