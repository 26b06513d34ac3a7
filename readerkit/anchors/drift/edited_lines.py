"""The lines between two that are the same: which edited line became which.

Two ways. Where a gap holds nearly the same words on other lines (an argument list that
was reflowed), the words are aligned. Else lines are paired in order by their likeness.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from readerkit.anchors.drift.sequences import align
from readerkit.anchors.drift.statement_ends import target_of
from readerkit.anchors.drift.text import FileText, likeness

LEAST = 0.42
"""Two lines that share less are not one edited line."""
_REFLOWED = 0.82
_SAME_TARGET = 0.6
"""So alike are two lines at least that give a value to the same name."""
_MAX_CELLS = 90_000
_MAX_WEIGHED = 20_000
_MAX_WORDS = 4_000


class Edit(NamedTuple):
    """A line of a gap in old, and what it became; positions in the gap."""

    old: int
    first: int
    last: int
    likeness: float
    rival: float
    """How alike the next best line is to either of the two."""


def fill_gap(
    old: FileText, olds: Sequence[int], new: FileText, news: Sequence[int]
) -> list[Edit]:
    """Return which positions of a gap became which, each with how alike they are.

    ``olds`` and ``news`` are numbers of lines from 0; -1 stands for a definition.
    """
    if not olds or not news:
        return []
    if reflowed := _reflowed(old, olds, new, news):
        return reflowed
    return _in_order(old, olds, new, news)


def _in_order(
    old: FileText, olds: Sequence[int], new: FileText, news: Sequence[int]
) -> list[Edit]:
    """Pair lines in order, so that their likeness adds up to the most."""
    rows, columns = len(olds), len(news)
    if rows * columns > _MAX_CELLS:
        return []
    mine = [old.token_set(n) if n >= 0 else frozenset() for n in olds]
    theirs = [new.token_set(n) if n >= 0 else frozenset() for n in news]
    like = _likenesses(mine, theirs)
    _favour(like, old, olds, new, news)
    indents = [new.indents[n] if n >= 0 else -1 for n in news]
    best = [[0.0] * (columns + 1)]
    for i, n in enumerate(olds):
        indent = old.indents[n] if n >= 0 else -1
        above, row = best[-1], [0.0] * (columns + 1)
        if not mine[i]:
            best.append(above)
            continue
        worth = min(len(mine[i]), 12) ** 0.5
        for j, shared in enumerate(like[i]):
            value = above[j + 1] if above[j + 1] >= row[j] else row[j]
            if shared >= LEAST:
                near = 0.05 if indents[j] == indent else 0.0
                value = max(value, above[j] + (shared - LEAST + 0.05 + near) * worth)
            row[j + 1] = value
        best.append(row)
    return list(_trace(best, like))[::-1]


def _likenesses(
    mine: Sequence[frozenset[bytes]], theirs: Sequence[frozenset[bytes]]
) -> list[list[float]]:
    """Return how alike each two lines are; what all lines of a gap have says little."""
    if len(mine) * len(theirs) > _MAX_WEIGHED:
        return [[likeness(a, b) for b in theirs] for a in mine]
    lines = Counter(word for words in (*mine, *theirs) for word in words)
    weight = {
        word: (1.0 if word[:1].isalnum() or word[:1] == b"_" else 0.5) / count**0.5
        for word, count in lines.items()
    }
    totals = [sum(map(weight.__getitem__, words)) for words in theirs]
    rows = []
    for words in mine:
        total = sum(map(weight.__getitem__, words))
        row = []
        for j, other in enumerate(theirs):
            shared = words & other
            both = total + totals[j]
            is_like = shared and len(shared) * 5 > len(words)
            row.append(
                2 * sum(map(weight.__getitem__, shared)) / both if is_like else 0.0
            )
        rows.append(row)
    return rows


def _favour(
    like: list[list[float]],
    old: FileText,
    olds: Sequence[int],
    new: FileText,
    news: Sequence[int],
) -> None:
    """Make two lines more alike that alone give a value to the same thing."""
    mine = single_targets(old, olds)
    theirs = single_targets(new, news)
    for target, i in mine.items():
        if (j := theirs.get(target)) is not None:
            like[i][j] = max(like[i][j], _SAME_TARGET + 0.4 * like[i][j])


def single_targets(text: FileText, numbers: Sequence[int]) -> dict[bytes, int]:
    """Return what one line alone gives a value to, with its position."""
    found: dict[bytes, int] = {}
    twice: set[bytes] = set()
    for position, number in enumerate(numbers):
        target = target_of(text.lines[number]) if number >= 0 else b""
        if target in found:
            twice.add(target)
        elif target:
            found[target] = position
    return {target: at for target, at in found.items() if target not in twice}


def _trace(best: list[list[float]], likes: list[list[float]]) -> Iterator[Edit]:
    i, j = len(best) - 1, len(best[0]) - 1
    while i and j:
        if best[i][j] == best[i - 1][j]:
            i -= 1
        elif best[i][j] == best[i][j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            others = [like for k, like in enumerate(likes[i]) if k != j]
            others += [row[j] for k, row in enumerate(likes) if k != i]
            rival = max(others, default=0.0)
            yield Edit(i, j, j, likes[i][j], rival)


def _reflowed(
    old: FileText, olds: Sequence[int], new: FileText, news: Sequence[int]
) -> list[Edit]:
    """Pair lines by their words, where the words are nearly the same ones."""
    if len(olds) == len(news) or min(*olds, *news) < 0:
        return []
    mine = [(word, i) for i, n in enumerate(olds) for word in old.tokens(n)]
    theirs = [(word, j) for j, n in enumerate(news) for word in new.tokens(n)]
    if not mine or not theirs or max(len(mine), len(theirs)) > _MAX_WORDS:
        return []
    one, other = Counter(w for w, _ in mine), Counter(w for w, _ in theirs)
    shared = 2 * (one & other).total() / (len(mine) + len(theirs))
    if shared < _REFLOWED:
        return []
    pairs = align([w for w, _ in mine], [w for w, _ in theirs], _word_weight)
    lines: dict[int, list[int]] = {}
    for a, b in pairs:
        lines.setdefault(mine[a][1], []).append(theirs[b][1])
    return [Edit(i, min(js), max(js), shared, 0.0) for i, js in sorted(lines.items())]


def _word_weight(word: object) -> float:
    return 1.0 if isinstance(word, bytes) and word[:1].isalnum() else 0.2
