"""Which items of two sequences are the same ones: exact, in order, heavy ones first.

What is unique on both sides is an anchor; the heaviest row of anchors that do not
cross is kept, and what lies between two of them is aligned by itself.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from difflib import SequenceMatcher

Item = Hashable
Pairs = list[tuple[int, int]]

_RUNS = (1, 2, 3, 5)
"""How many items in a row are looked at as one, where no single one is unique."""
_SMALL = 4_000
_LARGE = 4_000_000
"""How many pairs difflib may look at, at the most."""


def align(
    old: Sequence[Item], new: Sequence[Item], weight: Callable[[Item], float]
) -> Pairs:
    """Return the positions of equal items, in order on both sides."""
    pairs: Pairs = []
    todo = [(0, len(old), 0, len(new))]
    while todo:
        a, b, c, d = todo.pop()
        while a < b and c < d and old[a] == new[c]:
            pairs.append((a, c))
            a, c = a + 1, c + 1
        while a < b and c < d and old[b - 1] == new[d - 1]:
            b, d = b - 1, d - 1
            pairs.append((b, d))
        if a == b or c == d:
            continue
        found = _anchors(old, new, (a, b, c, d), weight)
        if not found:
            pairs += _rest(old, new, (a, b, c, d))
            continue
        for i, j in [*found, (b, d)]:
            if a < i and c < j:
                todo.append((a, i, c, j))
            if i < b:
                pairs.append((i, j))
            a, c = i + 1, j + 1
    return sorted(pairs)


def _anchors(
    old: Sequence[Item],
    new: Sequence[Item],
    within: tuple[int, int, int, int],
    weight: Callable[[Item], float],
) -> Pairs:
    """Return the heaviest row of pairs that are unique in a part of both."""
    a, b, c, d = within
    for run in _RUNS:
        if b - a < run or d - c < run:
            return []
        here = _unique(old, a, b, run)
        there = _unique(new, c, d, run)
        # A row that weighs nothing (blank lines, brackets) ties nothing down.
        pairs = [
            (i, there[key], total)
            for key, i in here.items()
            if key in there
            and (total := sum(weight(old[i + k]) for k in range(run))) > 0
        ]
        if pairs:
            chosen = heaviest(sorted(pairs))
            return _whole(chosen, run)
    return []


def _unique(items: Sequence[Item], start: int, end: int, run: int) -> dict[Item, int]:
    if run == 1:
        part = items[start:end]
        counts = Counter(part)
        return {k: start + i for i, k in enumerate(part) if counts[k] == 1}
    keys = [tuple(items[i : i + run]) for i in range(start, end - run + 1)]
    counts = Counter(keys)
    return {k: start + i for i, k in enumerate(keys) if counts[k] == 1}


def _whole(chosen: Pairs, run: int) -> Pairs:
    """Return every position of rows of several items, none twice."""
    pairs: Pairs = []
    for i, j in chosen:
        for k in range(run):
            if not pairs or (i + k > pairs[-1][0] and j + k > pairs[-1][1]):
                pairs.append((i + k, j + k))
    return pairs


def heaviest(pairs: Sequence[tuple[int, int, float]]) -> Pairs:
    """Return the heaviest part of some pairs that goes up on both sides.

    ``pairs`` go up on the left. A staircase of (right, total) holds, for each right
    end, the best total that ends there; none below a better one to its left is kept.
    """
    rights: list[int] = []
    totals: list[float] = []
    ends: list[int] = []
    before = [-1] * len(pairs)
    for number, (_, j, own) in enumerate(pairs):
        at = bisect_left(rights, j)
        total = own + (totals[at - 1] if at else 0.0)
        before[number] = ends[at - 1] if at else -1
        stop = at
        while stop < len(rights) and totals[stop] <= total:
            stop += 1
        rights[at:stop] = [j]
        totals[at:stop] = [total]
        ends[at:stop] = [number]
    chosen: Pairs = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chosen.append(pairs[at][:2])
        at = before[at]
    return chosen[::-1]


def _rest(
    old: Sequence[Item], new: Sequence[Item], within: tuple[int, int, int, int]
) -> Pairs:
    """Align what holds nothing unique, by its longest rows; too much is left."""
    a, b, c, d = within
    size = (b - a) * (d - c)
    if size > _LARGE or (size > _SMALL and not {*old[a:b]} & {*new[c:d]}):
        return []
    matcher = SequenceMatcher(None, old[a:b], new[c:d], autojunk=size > _SMALL * 10)
    return [
        (a + block.a + k, c + block.b + k)
        for block in matcher.get_matching_blocks()
        for k in range(block.size)
    ]
