"""Pages about the same, what few others are about counting most, and where each is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log, sqrt
from typing import Any

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
LEAST, SHARE = 0.12, 0.55
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
class Kin:
    """What is akin to what, on a whole site."""

    made_of: Any
    """A value: while it stays equal, so does the rest."""
    pages: Mapping[str, Akin]
    """By address."""
    sections: Mapping[str, Akin]
    """By the section of the page of estimates."""
    concepts: Mapping[str, Akin]
    """By concept."""
    symptoms: Mapping[str, Akin]
    """By what shows of a failure."""


@dataclass(frozen=True, slots=True)
class Way:
    """The way through a whole site."""

    places: Mapping[str, Around]
    """By address."""
    kin: Kin


class Kinship:
    """What pages have in common: the concepts that few others are about."""

    def __init__(self, stops: Sequence[Readable]) -> None:
        self._of_kind: dict[str, list[Readable]] = {}
        for stop in stops:
            self._of_kind.setdefault(stop.kind, []).append(stop)
        told = Counter(name for stop in stops for name in stop.about)
        self._rare = {name: log(1 + len(stops) / n) for name, n in told.items()}
        self._unit = {stop.page: self._unit_of(stop) for stop in stops}

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
            unit = self._unit_of(stop)
            names = sorted(stop.about, key=lambda name: -unit[name])
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
            about = [s for s in self._of_kind.get(kind, ()) if name in s.about]
            about.sort(key=lambda stop: -self._unit[stop.page][name])
            if about:
                yield KINDS[kind], tuple(about[:MOST])

    def _nearest(self, stop: Readable, kind: str) -> Iterator[Readable]:
        those = self._of_kind.get(kind, ())
        named = [e for e in those if e.page in stop.named or stop.page in e.named]
        if named or kind == "code":
            yield from named[: 2 * MOST]
            return
        own = self._unit.get(stop.page) or self._unit_of(stop)
        near = [(_nearness(own, self._unit[each.page]), each) for each in those]
        near.sort(key=lambda each: -each[0])
        for value, each in near[:MOST]:
            if value > max(LEAST, SHARE * near[0][0]):
                yield each

    def _unit_of(self, stop: Readable) -> About:
        """Return what a page is about, weighed, as a vector of length one."""
        weighed = {
            name: value * self._rare.get(name, 0) for name, value in stop.about.items()
        }
        length = sqrt(sum(value**2 for value in weighed.values())) or 1
        return {name: value / length for name, value in weighed.items()}


def _nearness(one: About, other: About) -> float:
    fewer, more = sorted((one, other), key=len)
    return sum(value * more[name] for name, value in fewer.items() if name in more)
