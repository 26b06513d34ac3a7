"""Where definitions, files and names went between two revisions, where that is sure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from readerkit.anchors import SourceFile, Symbol, fingerprint
from readerkit.app.drift_target import SourceTree
from readerkit.content.resolved_notes import Sources
from readerkit.drift.corpus import Corpus
from readerkit.drift.engine import carry
from readerkit.drift.verdict import Carried
from readerkit.errors import AnchorError
from readerkit.model.anchor import Anchor, Span
from readerkit.model.git_names import TreePath

Home = tuple[TreePath, str]
"""The file and the name of a definition."""
Renames = Mapping[str, str]
_SURE = ("same", "moved", "edited")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_LIKELY = 0.6
_MOST, _MUCH = 0.5, 0.2
"""Of a file's lines, by weight: what keeps less is another file; what has less, none
of those that it became."""
_MAX_RENAMED = 8
"""A place with more new names than that is another place."""


class Moves:
    """Two revisions of an upstream, and what of the first is where in the second."""

    def __init__(self, before: Sources, after: Sources) -> None:
        self.before, self.after = before, after
        self._trees = SourceTree(before), SourceTree(after)
        self._corpus = Corpus(*self._trees)
        self._carried: dict[Span, Carried] = {}
        self._homes: dict[Home, Home | None] = {}
        self._called: dict[str, set[str]] = {}
        self._words: dict[tuple[str, bool], bool] = {}

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

    # --- definitions and files --------------------------------------------------------

    def definition(self, path: TreePath, name: str) -> Home | None:
        """Return the file and name that a definition has now."""
        home = path, name
        if home not in self._homes:
            self._homes[home] = None  # a definition around itself is no answer
            self._homes[home] = self._definition(path, name)
        return self._homes[home]

    def _definition(self, path: TreePath, name: str) -> Home | None:
        if name in _symbols(self.after, path):
            return path, name
        symbols = _symbols(self.before, path).get(name, [])
        if not symbols:
            return None
        symbol = symbols[0]
        if found := self._begun(path, symbol) or self._likely(path, symbol):
            return found
        owner, _, last = name.rpartition(".")
        if owner and (home := self.definition(path, owner)):
            inner = f"{home[1]}.{last}"
            if inner in _symbols(self.after, home[0]):
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
                was_there = each.name in _symbols(self.before, to.path)
                if begins and each.last == to.last and not was_there:
                    return to.path, each.name
        return None

    def _alike(self, path: TreePath, symbol: Symbol) -> Iterator[Symbol]:
        """Yield the definitions of a new file that are of the same kind."""
        for symbols in _symbols(self.after, path).values():
            yield from (each for each in symbols if each.kind == symbol.kind)

    def _named_so(self, path: TreePath, name: str) -> Home | None:
        """Return the one definition of the same name that is new in its file."""
        words = [word.encode() for word in name.split(".")]
        found = []
        for other in self.after.paths - {path}:
            data = self.after.read(other)
            if not all(word in data for word in words):
                continue
            was = other in self.before.paths and name in _symbols(self.before, other)
            if name in _symbols(self.after, other) and not was:
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
        names = [name for name in _symbols(self.before, path) if "." not in name]
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

    # --- names ------------------------------------------------------------------------

    def renames(self, old: Span, new: Span) -> Renames:
        """Return the names that are others in the same lines, if nothing else is."""
        one, other = self._tokens(self.before, old), self._tokens(self.after, new)
        if len(one) != len(other):
            return {}
        found: dict[str, str] = {}
        for was, now in zip(one, other, strict=True):
            if found.setdefault(was, now) != now:
                return {}
        renamed = {was: now for was, now in found.items() if was != now}
        are_apart = len({*found.values()}) == len(found)
        if not are_apart or len(renamed) > _MAX_RENAMED:
            return {}
        return renamed if all(map(self._is_rename, renamed, renamed.values())) else {}

    def is_renamed_only(self, old: Span, new: Span, renames: Renames) -> bool:
        """Tell whether the code is the same but for names, blocks and all."""
        if not renames:
            return False
        text = renamed(self.before.read(old.path).decode("utf-8", "replace"), renames)
        try:
            was = fingerprint(old, SourceFile(old.path, text.encode()))
            return was.code == fingerprint(new, self.after.file(new.path)).code
        except AnchorError:
            return False

    def _is_rename(self, old: str, new: str) -> bool:
        """Tell whether one name took the place of another in the whole code.

        It was given to something in the old code, and is nowhere now; or it is the
        name of a definition that surely went where that name is.
        """
        if not (old.isidentifier() and new.isidentifier()):
            return False
        if new in self._new_names(old):
            return True
        if self._stands(old, is_new=True) or self._stands(new, is_new=False):
            return False
        return self._is_given(old)

    def _new_names(self, name: str) -> set[str]:
        """Return what definitions of a name are called where they surely are now."""
        if name not in self._called:
            self._called[name] = set()  # of one that is within another of the name
            raw = name.encode()
            homes = [
                self.definition(path, each)
                for path in sorted(self.before.paths)
                if raw in self.before.read(path)
                for each in _symbols(self.before, path)
                if each.rpartition(".")[2] == name
            ]
            found = {home[1].rpartition(".")[2] for home in homes if home}
            self._called[name] = found - {name}
        return self._called[name]

    def _stands(self, word: str, *, is_new: bool) -> bool:
        key = word, is_new
        if key not in self._words:
            side = self.after if is_new else self.before
            whole = re.compile(rf"\b{re.escape(word)}\b".encode())
            raw = word.encode()
            texts = (side.read(path) for path in sorted(side.paths))
            self._words[key] = any(raw in text and whole.search(text) for text in texts)
        return self._words[key]

    def _is_given(self, word: str) -> bool:
        """Tell whether the old code gives a name to something of its own."""
        name = re.escape(word)
        given = re.compile(
            rf"\b(?:def|class|fn|func|function|struct|enum|trait|interface|type|const|"
            rf"let|var)\s+{name}\b|\b{name}\b\s*(?::[^=\n]*)?:?=(?!=)".encode()
        )
        raw = word.encode()
        texts = (self.before.read(path) for path in sorted(self.before.paths))
        return any(raw in text and given.search(text) for text in texts)

    @staticmethod
    def _tokens(side: Sources, span: Span) -> list[str]:
        lines = side.read(span.path).split(b"\n")[span.first - 1 : span.last]
        return _TOKEN.findall(b"\n".join(lines).decode("utf-8", "replace"))

    # --- anchors ----------------------------------------------------------------------

    def anchor(self, anchor: Anchor) -> Anchor | None:
        """Return an anchor as it is now: the same lines, named in the same way.

        None, where its lines are not surely somewhere, or it does not name them.
        """
        try:
            old = self.before.resolve(anchor)
        except AnchorError:
            return None
        to = self.place(old)
        for each in self._rewritten(anchor, old, to):
            try:
                found = self.after.resolve(each)
            except AnchorError:
                continue
            is_whole = each.to_yaml().keys() == {"file", "symbol"}
            if found == to or (to is None and (is_whole or self._is_same(old, found))):
                return each
        return self._proposed(old, to) if to and self._is_same(old, to) else None

    def _rewritten(
        self, anchor: Anchor, old: Span, to: Span | None
    ) -> Iterable[Anchor]:
        """Yield what an anchor may be now, the least changed first."""
        homes: list[tuple[TreePath, str | None]] = []
        if anchor.symbol:
            if home := self.definition(anchor.file, anchor.symbol):
                homes.append(home)
            if to and (
                around := self.after.file(to.path).symbol_around(to.first, to.last)
            ):
                homes.append((to.path, around.name))
        elif to:
            homes.append((to.path, None))
        names = self.renames(old, to) if to else {}
        for path, symbol in dict.fromkeys(homes):
            raw = {**anchor.to_yaml(), "file": path}
            raw |= {"symbol": symbol} if symbol else {}
            yield Anchor.parse(raw)
            if names:
                yield Anchor.parse(with_names(raw, names))

    def _around(self, span: Span) -> Symbol | None:
        try:
            return self.after.file(span.path).symbol_around(span.first, span.last)
        except AnchorError:
            return None

    def _is_same(self, old: Span, new: Span) -> bool:
        try:
            was = fingerprint(old, self.before.file(old.path)).code
            return was == fingerprint(new, self.after.file(new.path)).code
        except AnchorError:
            return False

    def _proposed(self, old: Span, to: Span) -> Anchor | None:
        from readerkit.anchors.propose import propose

        try:
            anchor = propose(to, self.after.file(to.path))
            return anchor if self.after.resolve(anchor) == to else None
        except AnchorError:
            return None


PATTERNS = ("code", "from", "to", "under", "unless")


def with_names(raw: Mapping[str, object], names: Renames) -> dict[str, object]:
    """Return a mapping of an anchor or a check with other names in its patterns."""

    def one(value: object) -> object:
        if isinstance(value, str):
            return renamed(value, names)
        return [one(v) for v in value] if isinstance(value, list | tuple) else value

    return {key: one(v) if key in PATTERNS else v for key, v in raw.items()}


def renamed(text: str, names: Renames) -> str:
    """Return a text with other names, each a whole word."""
    if not names:
        return text
    words = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
    return words.sub(lambda found: names[found[0]], text)


def _symbols(side: Sources, path: TreePath) -> Mapping[str, list[Symbol]]:
    """Return the definitions of a file; none of one that is not there or not read."""
    try:
        return side.file(path).symbols if path in side.paths else {}
    except AnchorError:
        return {}
