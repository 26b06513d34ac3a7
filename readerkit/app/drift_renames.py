"""Where anchors, and names in them, went between two revisions, where that is sure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from readerkit.anchors import SourceFile, equals_of, fingerprint
from readerkit.app.drift_definitions import Homes, symbols_of
from readerkit.content.resolved_notes import Sources
from readerkit.errors import AnchorError
from readerkit.model.anchor import Anchor, Span
from readerkit.model.git_names import TreePath

Renames = Mapping[str, str]
_TOKEN = re.compile(r"\w+|[^\w\s]")
_MAX_RENAMED = 8
"""A place with more new names than that is another place."""


class Moves(Homes):
    """Two revisions of an upstream, and what of the first is where in the second."""

    def __init__(self, before: Sources, after: Sources) -> None:
        super().__init__(before, after)
        self._called: dict[str, set[str]] = {}
        self._words: dict[tuple[str, bool], bool] = {}

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
                for each in symbols_of(self.before, path)
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
        [carried] = self.look([old])
        for each in self._rewritten(anchor, old, to):
            try:
                found = self.after.resolve(each)
            except AnchorError:
                continue
            # Of two that say the same, each may be unsure.
            if found == to or (found == carried.to and not carried.parts):
                return each
            is_whole = each.to_yaml().keys() == {"file", "symbol"}
            if to is None and (is_whole or self._is_same(old, found)):
                return each
        if to is None or not self._is_same(old, to):
            return None
        return self._counted(anchor, old, to) or self._proposed(old, to)

    def picks_another(self, anchor: Anchor) -> bool:
        """Tell whether an anchor picks another of equal places than where its own went.

        One that names nothing picks none.
        """
        if not anchor.counts:
            return False
        try:
            to = self.place(self.before.resolve(anchor))
            return to is not None and self.after.resolve(anchor) != to
        except AnchorError:
            return False

    def _rewritten(
        self, anchor: Anchor, old: Span, to: Span | None
    ) -> Iterable[Anchor]:
        """Yield what an anchor may be now, the least changed first."""
        homes: list[tuple[TreePath, str | None]] = []
        if anchor.symbol:
            if home := self.definition(anchor.file, anchor.symbol):
                homes.append(home)
            if to and (around := self._around(to)):
                homes.append((to.path, around))
        elif to:
            homes.append((to.path, None))
        names = self.renames(old, to) if to else {}
        for path, symbol in dict.fromkeys(homes):
            raw = {**anchor.to_yaml(), "file": path}
            raw |= {"symbol": symbol} if symbol else {}
            yield Anchor.parse(raw)
            if names:
                yield Anchor.parse(with_names(raw, names))

    def _around(self, span: Span) -> str:
        """Return the definition around lines; none of a file that is not read."""
        try:
            found = self.after.file(span.path).symbol_around(span.first, span.last)
        except AnchorError:
            return ""
        return found.name if found else ""

    def _counted(self, anchor: Anchor, old: Span, to: Span) -> Anchor | None:
        """Return an anchor that picks a place by its number among its equals now."""
        if anchor.nth is None or anchor.stop is not None:
            return None
        for each in self._rewritten(anchor, old, to):
            if each.file != to.path:
                continue
            try:
                equals = equals_of(each, self.after.file(to.path))
            except AnchorError:
                continue
            if equals.count(to) == 1:
                nth = equals.index(to) + 1
                return Anchor.parse({**each.to_yaml(), "nth": nth})
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
