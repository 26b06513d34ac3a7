"""Lines that went past others, so that no alignment in order can pair them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from readerkit.anchors.drift.edited_lines import single_targets
from readerkit.anchors.drift.text import FileText, Weight

_SAYS = 0.8
"""So much a line must weigh to be known wherever it went."""


def find_strays(
    old: FileText,
    new: FileText,
    olds: Sequence[int],
    news: Sequence[int],
    pairs: Mapping[int, int],
    weight: Weight,
) -> dict[int, int]:
    """Return which unpaired positions of old are which of new.

    Those that alone give a value to the same name, and those that are the same line.
    ``olds`` and ``news`` are numbers of lines from 0; -1 stands for a definition.
    """
    taken = {*pairs.values()}
    left_old = [-1 if i in pairs else n for i, n in enumerate(olds)]
    left_new = [-1 if j in taken else n for j, n in enumerate(news)]
    one, other = single_targets(old, olds), single_targets(new, news)
    found = {
        one[target]: other[target]
        for target in one.keys() & other.keys()
        if left_old[one[target]] >= 0 and left_new[other[target]] >= 0
    }
    here, there = (
        _single_keys(text, lines, weight)
        for text, lines in ((old, left_old), (new, left_new))
    )
    return found | {here[key]: there[key] for key in here.keys() & there.keys()}


def _single_keys(
    text: FileText, numbers: Sequence[int], weight: Weight
) -> dict[bytes, int]:
    """Return the lines that are there once and say something, with their positions."""
    counts = Counter(text.keys[n] for n in numbers if n >= 0)
    return {
        text.keys[n]: at
        for at, n in enumerate(numbers)
        if n >= 0 and counts[text.keys[n]] == 1 and weight(text.keys[n]) >= _SAYS
    }
