"""Pages about the same, what few others are about counting most, and where each is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log, sqrt

from readerkit.model import addresses
from readerkit.render.html.notes import concept_title
from readerkit.render.html.site_model import SiteModel
from readerkit.render.html.words import Text

KINDS = {
    "chapter": "Chapters",
    "mirror": "Side by side",
    "mechanism": "Mechanisms",
    "mini": "Minis",
    "code": "Code",
    "estimate": "Estimates",
    "lab": "Labs",
    "topic": "Questions",
    "concept": "Concepts",
}
"""What pages are about the same, and what stands before each kind of them."""
MOST = 3
"""Pages of one kind that are named as akin."""
LEAST, SHARE = 0.12, 0.6
"""How near they must be: at all, and beside the nearest."""

About = Mapping[str, float]
"""Concepts, and how much a page is about each."""


@dataclass(frozen=True, slots=True)
class Readable:
    """A page, or a section of one, that something is read on."""

    page: str
    title: Text
    kind: str = ""
    about: About = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    """Pages that it names, or that name it, whatever they are about."""


Akin = tuple[tuple[str, tuple[Readable, ...]], ...]
"""What stands before each group of pages, and the pages."""


@dataclass(frozen=True, slots=True)
class Around:
    """Where a page is on the way."""

    part: Text
    number: int
    """Its number in the part; none of a list of the part's pages."""
    count: int
    before: Readable | None
    after: Readable | None
    akin: Akin = ()


@dataclass(frozen=True, slots=True)
class Way:
    """The way through a whole site."""

    places: Mapping[str, Around]
    """By address."""
    sections: Mapping[str, Akin]
    """By the section of the page of estimates."""
    concepts: Mapping[str, Akin]
    """By concept."""
    symptoms: Mapping[str, Akin]
    """By what shows of a failure."""


class Kinship:
    """What pages have in common: the concepts that few others are about."""

    def __init__(self, stops: Sequence[Readable]) -> None:
        self._stops = stops
        told = Counter(name for stop in stops for name in stop.about)
        self._rare = {name: log(1 + len(stops) / n) for name, n in told.items()}
        self._size = {stop.page: self._length(stop) for stop in stops}

    def of(self, stop: Readable, model: SiteModel) -> Akin:
        """Return the pages that are akin to one, kind by kind."""
        if not stop.kind:
            return ()
        found = [
            (label, those)
            for kind, label in KINDS.items()
            if kind != stop.kind and (those := tuple(self._nearest(stop, kind)))
        ]
        if stop.kind in ("estimate", "topic", "lab", "chapter", "mechanism", "symptom"):
            names = sorted(stop.about, key=lambda name: -self._of(stop, name))
            cards = tuple(
                Readable(
                    f"{addresses.CONCEPTS}#{name}", concept_title(name, model.book)
                )
                for name in names[: 2 * MOST]
            )
            found += [(KINDS["concept"], cards)] if cards else []
        return tuple(found)

    def of_concept(self, name: str) -> Iterator[tuple[str, tuple[Readable, ...]]]:
        """Yield the pages that are about a concept."""
        for kind in ("chapter", "mechanism", "mini", "estimate", "lab", "topic"):
            about = [s for s in self._stops if s.kind == kind and name in s.about]
            about.sort(key=lambda stop: -self._of(stop, name) / self._size[stop.page])
            if about:
                yield KINDS[kind], tuple(about[:MOST])

    def _nearest(self, stop: Readable, kind: str) -> Iterator[Readable]:
        those = [each for each in self._stops if each.kind == kind]
        named = [e for e in those if e.page in stop.named or stop.page in e.named]
        if named or kind == "code":
            yield from named[: 2 * MOST]
            return
        near = [(self._nearness(stop, each), each) for each in those]
        near.sort(key=lambda each: -each[0])
        for value, each in near[:MOST]:
            if value > max(LEAST, SHARE * near[0][0]):
                yield each

    def _length(self, stop: Readable) -> float:
        return sqrt(sum(self._of(stop, name) ** 2 for name in stop.about)) or 1

    def _nearness(self, one: Readable, other: Readable) -> float:
        common = one.about.keys() & other.about.keys()
        product = sum(self._of(one, name) * self._of(other, name) for name in common)
        size = self._size.get(one.page) or self._length(one)
        return product / size / self._size[other.page]

    def _of(self, stop: Readable, name: str) -> float:
        return stop.about[name] * self._rare.get(name, 0)
