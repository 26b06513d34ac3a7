"""Where code stands that a claim names and its own file has no more."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from readerkit.anchors import SourceFile
from readerkit.anchors.code_search import find_code
from readerkit.anchors.settings import find_default
from readerkit.anchors.suggestions import shorten
from readerkit.claims.ground import Ground, NotAtHand
from readerkit.content.claims import (
    AbsentCheck,
    Claim,
    DefaultPlace,
    UsesCheck,
    ValueCheck,
)
from readerkit.errors import AnchorError
from readerkit.model.anchor import Span
from readerkit.model.git_names import TreePath

MAX_PLACES = 3
"""Code that stands in more is not what was meant."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A definition, a default or a pattern that a check names."""

    what: str
    files: Sequence[str]
    """Those that the check looks for it in."""
    words: tuple[str, ...]
    """What a file must hold that has it: most need no parse."""
    find: Callable[[SourceFile], Iterable[Span]]

    def spans(self, paths: Iterable[TreePath], ground: Ground) -> list[Span]:
        """Return where it stands in some files."""
        found: list[Span] = []
        for path in paths:
            with contextlib.suppress(AnchorError, NotAtHand):
                data = ground.read(path)
                if all(word.encode() in data for word in self.words):
                    found += self.find(ground.file(path))
        return found

    def own(self, ground: Ground) -> list[TreePath]:
        """Return the files that it is looked for in, of those that are there."""
        found: list[TreePath] = []
        for glob in self.files:
            with contextlib.suppress(AnchorError):
                found += ground.matching([glob])
        return found


def stands_elsewhere(claim: Claim, ground: Ground) -> Iterator[str]:
    """Yield where each part of a claim stands, of those that its file lacks."""
    for part in _parts(claim.check):
        if part.spans(part.own(ground), ground):
            continue
        spans = part.spans(ground.beside(part.files), ground)
        if 0 < len(spans) <= MAX_PLACES:
            for span in spans:
                lines = f"lines {span.first}-{span.last}"
                yield f"{part.what} stands in {span.path} now, {lines}"
            return


def _parts(check: Any) -> Iterator[_Part]:
    """Yield what a check names: what holds the rest goes first."""
    if isinstance(check, DefaultPlace):
        yield _default(check)
        if not check.of.startswith("-"):
            yield from _symbol(check.of.rpartition(".")[0], [check.file])
    elif isinstance(check, ValueCheck):
        places = check.names.values()
        yield from (_default(p) for p in places if isinstance(p, DefaultPlace))
    elif isinstance(check, UsesCheck):
        for place in check.are or ():
            path, _, symbol = place.partition("::")
            yield from _symbol(symbol, [path])
    elif isinstance(check, AbsentCheck):
        yield from _symbol(check.symbol, check.places)
    elif file := getattr(check, "file", None):
        yield from _symbol(check.symbol, [file])
        wanted = check.code if isinstance(check.code, tuple) else (check.code,)
        for key in ("start", "stop", "under", "unless"):
            wanted = (*wanted, getattr(check, key, None))
        for code in filter(None, wanted):
            yield _code(code, file)


def _symbol(name: str | None, files: Sequence[str]) -> Iterator[_Part]:
    def find(source: SourceFile) -> Iterator[Span]:
        for each in source.symbols.get(name or "", ()):
            yield Span(source.path, each.first, each.last)

    if name:
        last = name.rpartition(".")[2]
        yield _Part(name, files, (f" {last}", *name.split(".")), find)


def _default(place: DefaultPlace) -> _Part:
    def find(source: SourceFile) -> Iterator[Span]:
        yield find_default(place.of, source)[0].span

    option = place.of.startswith("-")
    words = (place.of,) if option else tuple(place.of.split("."))
    return _Part(place.of, [place.file], words, find)


def _code(text: str, file: str) -> _Part:
    def find(source: SourceFile) -> Iterator[Span]:
        return (found.span for found in find_code(text, source))

    return _Part(repr(shorten(text)), [file], (), find)
