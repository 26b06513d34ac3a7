"""Two whole trees: their files read and matched once, and searched for lines.

What is looked for in other files is collected first, and the new tree is gone through
once for all of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import log2

from readerkit.anchors.drift.file_match import FileMatch, FileSide
from readerkit.anchors.drift.outline import Block
from readerkit.anchors.drift.text import Tree

_COMMON = 60
"""A line that stands in more places says nothing about where something went."""
_FEW = 4
"""So many files at most are said to hold some lines."""
Hits = dict[bytes, list[tuple[str, int]]]


class Corpus:
    """The old and the new tree."""

    def __init__(self, old: Tree, new: Tree) -> None:
        self.old, self.new = old, new
        self._old: dict[str, FileSide | None] = {}
        self._new: dict[str, FileSide | None] = {}
        self._matches: dict[tuple[str, str], FileMatch] = {}
        self._hosts: dict[tuple[str, str], float] = {}
        self._same: dict[str, bool] = {}
        self._added: dict[bytes, list[str]] | None = None
        self._parts: dict[tuple[str, str, int, int, int, int], FileMatch] = {}
        self.weight = _Weights().__getitem__
        """Returns how much a line says: nothing, for brackets; up to 3."""
        self.windows: dict[tuple[str, int, int], list[tuple[str, int, int]]] = {}
        """Of parts of old files, by their ends: where their lines stand now."""
        self.hits: Hits = {}
        """Of the lines looked for: where in the new tree each stands, from 0."""

    def old_side(self, path: str) -> FileSide | None:
        """Return a file of the old tree; None where there is none to compare."""
        return _side(path, self.old, self._old)

    def new_side(self, path: str) -> FileSide | None:
        """Return a file of the new tree; None where there is none to compare."""
        return _side(path, self.new, self._new)

    def is_unchanged(self, path: str) -> bool:
        """Tell whether a file is the same in both trees, byte for byte."""
        if path not in self._same:
            self._same[path] = self.old.get(path) == self.new.get(path)
        return self._same[path]

    def same_elsewhere(self, path: str) -> str:
        """Return the one new file with every byte of one that is gone; or nothing."""
        data = self.old.get(path)
        if path in self.new or not data:
            return ""
        if self._added is None:
            self._added = defaultdict(list)
            for name in self.new:
                if name not in self.old:
                    self._added[self.new[name]].append(name)
        found = self._added.get(data, [])
        return found[0] if len(found) == 1 else ""

    def match(self, old: str, new: str) -> FileMatch | None:
        """Return two files beside each other; None where one is missing or binary."""
        known = self._matches.get((old, new))
        if known is None:
            one, other = self.old_side(old), self.new_side(new)
            if one is None or other is None:
                return None
            known = self._matches[old, new] = FileMatch(one, other, self.weight)
        return known

    def hosts(self, old: str, new: str) -> float:
        """Return how much of an old file's lines, by weight, a new file has."""
        known = self._hosts.get((old, new))
        if known is None:
            one, other = self.old_side(old), self.new_side(new)
            if one is None or other is None:
                return 0.0
            there = other.text.key_set
            weights = [(self.weight(key), key in there) for key in one.text.key_set]
            total = sum(weight for weight, _ in weights)
            known = sum(w for w, is_in in weights if is_in) / total if total else 0.0
            self._hosts[old, new] = known
        return known

    def laid_over(
        self, old: FileSide, new: FileSide, one: Block, other: Block
    ) -> FileMatch:
        """Return a part of an old file beside a part of a new one."""
        ends = one.first, one.last, other.first, other.last
        key = (old.path, new.path, *ends)
        known = self._parts.get(key)
        if known is None:
            known = FileMatch(old, new, self.weight, (one, other))
            self._parts[key] = known
        return known

    def search(self, wanted: Iterable[bytes]) -> None:
        """Find lines in the whole new tree; those that stand everywhere are left."""
        keys = {k for k in wanted if k not in self.hits and self.weight(k) > 0.3}
        found: Hits = defaultdict(list)
        for path in self.new:
            side = self.new_side(path)
            if side is None:
                continue
            if keys.isdisjoint(side.text.key_set):
                continue
            for number, key in enumerate(side.text.keys):
                if key in keys:
                    found[key].append((path, number))
        for key in keys:
            self.hits[key] = found.get(key, [])

    def holders(self, path: str, first: int, last: int) -> list[str]:
        """Return the new files that hold most of some lines which were looked for.

        Lines are numbered from 1.
        """
        side = self.old_side(path)
        votes: dict[str, float] = defaultdict(float)
        for key in {*side.text.keys[first - 1 : last]} if side else ():
            places = self.hits.get(key, [])
            for other in {other for other, _ in places}:
                votes[other] += rarity(len(places)) * self.weight(key)
        return sorted(votes, key=lambda other: (-votes[other], other))[:_FEW]


def rarity(count: int) -> float:
    """Return what a line that stands in so many places is worth as a witness."""
    return 0.0 if count > _COMMON else 1 / (1 + log2(max(count, 1)))


def _side(path: str, tree: Tree, known: dict[str, FileSide | None]) -> FileSide | None:
    if path not in known:
        data = tree.get(path)
        side = None if data is None else FileSide(path, data)
        known[path] = None if side is None or side.text.is_binary else side
    return known[path]


_SIGNS = bytes(c for c in range(128) if not chr(c).isalnum())


class _Weights(dict[bytes, float]):
    """Weighs a line once, however often it is asked for."""

    def __missing__(self, key: bytes) -> float:
        letters = len(key[:40].translate(None, _SIGNS))
        weight = self[key] = min(3.0, 0.25 + letters / 12) if letters else 0.0
        return weight
