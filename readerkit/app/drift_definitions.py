"""Where definitions and files went between two revisions, where that is sure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from readerkit.anchors import Symbol
from readerkit.anchors.drift.corpus import Corpus
from readerkit.anchors.drift.engine import carry
from readerkit.anchors.drift.verdict import Carried
from readerkit.app.drift_target import SourceTree
from readerkit.content.resolved_notes import Sources
from readerkit.errors import AnchorError
from readerkit.model.anchor import Span
from readerkit.model.git_names import TreePath

Home = tuple[TreePath, str]
"""The file and the name of a definition."""
_SURE = ("same", "moved", "edited")
_LIKELY = 0.6
_MOST, _MUCH = 0.5, 0.2
"""Of a file's lines, by weight: what keeps less is another file; what has less, none
of those that it became."""


class Homes:
    """Two revisions of an upstream, and where definitions of the first are now."""

    def __init__(self, before: Sources, after: Sources) -> None:
        self.before, self.after = before, after
        self._trees = SourceTree(before), SourceTree(after)
        self._corpus = Corpus(*self._trees)
        self._carried: dict[Span, Carried] = {}
        self._homes: dict[Home, Home | None] = {}

    def look(self, spans: Sequence[Span]) -> list[Carried]:
        """Carry many spans at once, which is faster than one by one."""
        new = [span for span in dict.fromkeys(spans) if span not in self._carried]
        found = carry(new, *self._trees, self._corpus)
        self._carried |= dict(zip(new, found, strict=True))
        return [self._carried[span] for span in spans]

    def place(self, span: Span) -> Span | None:
        """Return where lines surely are now, in one piece."""
        [found] = self.look([span])
        is_sure = found.status in _SURE and not found.parts
        return found.to if is_sure else None

    def definition(self, path: TreePath, name: str) -> Home | None:
        """Return the file and name that a definition has now."""
        home = path, name
        if home not in self._homes:
            self._homes[home] = None  # a definition around itself is no answer
            self._homes[home] = self._definition(path, name)
        return self._homes[home]

    def _definition(self, path: TreePath, name: str) -> Home | None:
        if name in symbols_of(self.after, path):
            return path, name
        symbols = symbols_of(self.before, path).get(name, [])
        if not symbols:
            return None
        symbol = symbols[0]
        if found := self._begun(path, symbol) or self._likely(path, symbol):
            return found
        if found := self._origin_of(path, symbol):
            return found
        owner, _, last = name.rpartition(".")
        if owner and (home := self.definition(path, owner)):
            inner = f"{home[1]}.{last}"
            if inner in symbols_of(self.after, home[0]):
                return home[0], inner
        return self._named_so(path, name)

    def _begun(self, path: TreePath, symbol: Symbol) -> Home | None:
        """Return the definition whose lines, or whose first line, surely are these."""
        for last in (symbol.last, symbol.first):
            to = self.place(Span(path, symbol.first, last))
            if to is None:
                continue
            for each in self._alike(to.path, symbol):
                is_end = last == symbol.first or each.last == to.last
                if each.first == to.first and is_end:
                    return to.path, each.name
        return None

    def _likely(self, path: TreePath, symbol: Symbol) -> Home | None:
        """Return the definition, new there, that begins and ends where one likely is.

        That it is a definition tells its ends, which lines alone leave open.
        """
        for first in (symbol.first, symbol.first + 1):
            [found] = self.look([Span(path, first, symbol.last)])
            to, whole = found.to, found.candidate
            if to is None or whole is None or found.parts or whole.share < _LIKELY:
                continue
            if found.confidence < _LIKELY:
                continue
            for each in self._alike(to.path, symbol):
                begins = each.first == to.first - (first - symbol.first)
                was_there = each.name in symbols_of(self.before, to.path)
                if begins and each.last == to.last and not was_there:
                    return to.path, each.name
        return None

    def _origin_of(self, path: TreePath, symbol: Symbol) -> Home | None:
        """Return the one definition, new there, that was this one by the way back.

        Of code that lost some of its lines more is found from where they are few.
        """
        found = set()
        for other in self._corpus.holders(path, symbol.first, symbol.last):
            there = TreePath(other)
            for each in self._alike(there, symbol):
                if each.name in symbols_of(self.before, there):
                    continue
                was = self._back._begun(there, each) or self._back._likely(there, each)
                if was == (path, symbol.name):
                    found.add((there, each.name))
        return found.pop() if len(found) == 1 else None

    @cached_property
    def _back(self) -> Homes:
        return Homes(self.after, self.before)

    def _alike(self, path: TreePath, symbol: Symbol) -> Iterator[Symbol]:
        """Yield the definitions of a new file that are of the same kind."""
        for symbols in symbols_of(self.after, path).values():
            yield from (each for each in symbols if each.kind == symbol.kind)

    def _named_so(self, path: TreePath, name: str) -> Home | None:
        """Return the one definition of the same name that is new in its file."""
        words = [word.encode() for word in name.split(".")]
        found = []
        for other in self.after.paths - {path}:
            data = self.after.read(other)
            if not all(word in data for word in words):
                continue
            was = other in self.before.paths and name in symbols_of(self.before, other)
            if name in symbols_of(self.after, other) and not was:
                found.append(other)
        return (found[0], name) if len(found) == 1 else None

    def files(self, path: str) -> list[TreePath]:
        """Return the files that hold now what one held: itself, if it is there."""
        here = TreePath(path)
        if here in self.after.paths:
            return [here]
        if here not in self.before.paths:
            return []
        count = len(self.before.read(here).splitlines())
        if count and (to := self.place(Span(here, 1, count))):
            return [to.path]
        homes = self._homes_of(here)
        return [] if None in homes else [home for home in homes if home]

    def _homes_of(self, path: TreePath) -> list[TreePath | None]:
        """Return each file that a definition of one surely is in; None for unsure."""
        names = [name for name in symbols_of(self.before, path) if "." not in name]
        homes = [self.definition(path, name) for name in names]
        return list(dict.fromkeys(home and home[0] for home in homes))

    def went(self, paths: Iterable[TreePath]) -> list[TreePath]:
        """Return the other files that hold now much of what some of these held."""
        found: dict[TreePath, None] = {}
        for path in paths:
            if self._keeps_most(path):
                continue
            gone = path not in self.after.paths
            homes = (self.files(path) if gone else []) or self._homes_of(path)
            for home in homes:
                if home and home != path and self._corpus.hosts(path, home) >= _MUCH:
                    found[home] = None
        return list(found)

    def _keeps_most(self, path: TreePath) -> bool:
        if path not in self.after.paths:
            return False
        is_same = self._corpus.is_unchanged(path)
        return is_same or self._corpus.hosts(path, path) >= _MOST


def symbols_of(side: Sources, path: TreePath) -> Mapping[str, list[Symbol]]:
    """Return the definitions of a file; none of one that is not there or not read."""
    try:
        return side.file(path).symbols if path in side.paths else {}
    except AnchorError:
        return {}
