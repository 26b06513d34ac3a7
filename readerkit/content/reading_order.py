"""Ways through the notes of a book: stops in turn, and the notes at each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

from readerkit.content.annotations import Annotation, Concept
from readerkit.content.mirrors import Mirror
from readerkit.content.reading_paths import ReadingPaths
from readerkit.content.tours import Tour


@dataclass(frozen=True, slots=True)
class Stop:
    """A place on a path: what it is about, and the notes to read there."""

    id: str
    title: str
    about: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Route:
    """A way through the notes of a book."""

    id: str
    title: str
    stops: tuple[Stop, ...]

    @property
    def notes(self) -> tuple[tuple[Stop, str], ...]:
        """Every note in turn, with its stop; one may come again at another."""
        return tuple((stop, note) for stop in self.stops for note in stop.notes)


def routes(
    paths: ReadingPaths, concepts: Mapping[str, Concept], notes: Sequence[Annotation]
) -> list[Route]:
    """Return the paths that the site shows; ``notes`` are all, in reading order."""
    needs = [
        Stop(name, concepts[name].title, concepts[name].summary, those)
        for name, those in by_need(concepts, notes)
    ]
    failures = [Stop(f.id, f.symptom, f.told, f.notes) for f in paths.failures]
    pairs = [
        Stop(
            pair.id,
            f"{concepts[pair.memory].title} × {concepts[pair.coordination].title}",
            pair.wire,
            pair.notes,
        )
        for pair in paths.pairs
    ]
    found = (
        Route("prerequisite", "every idea after those it needs", tuple(needs)),
        Route("failure", "from a symptom to its lines", tuple(failures)),
        Route("synthesis", "what saves memory against what talks", tuple(pairs)),
    )
    return [path for path in found if path.stops]


def tour_route(tour: Tour, titles: Mapping[str, str]) -> Route:
    """Return the way that a tour goes, each of its notes a stop."""
    stops = (Stop(s.note, titles[s.note], s.says, (s.note,)) for s in tour.stops)
    return Route(tour.id, tour.title, tuple(stops))


def by_need(
    concepts: Mapping[str, Concept], notes: Sequence[Annotation]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the concepts that have notes, each after what it requires.

    A note is told once, with the first of its concepts.
    """
    told: set[str] = set()
    for name in teaching_order(concepts):
        those = [n.id for n in notes if name in n.concepts and n.id not in told]
        told.update(those)
        if those:
            yield name, tuple(those)


def teaching_order(concepts: Mapping[str, Concept]) -> Iterator[str]:
    """Yield the concepts, each after what it requires.

    As the book has it, wherever that does not put something before what it needs.
    """
    sorter = TopologicalSorter({name: c.requires for name, c in concepts.items()})
    order = list(concepts)
    sorter.prepare()
    waiting: list[str] = []
    while sorter.is_active():
        waiting = sorted({*waiting, *sorter.get_ready()}, key=order.index)
        name = waiting.pop(0)
        sorter.done(name)
        yield name


def mirrors_in_turn(
    mirrors: Iterable[Mirror], concepts: Mapping[str, Concept]
) -> list[Mirror]:
    """Return mirrors as they are taught: by the first concept of each.

    Of two with the same, the one that needs less comes first.
    """
    place = {name: index for index, name in enumerate(teaching_order(concepts))}

    def when(mirror: Mirror) -> tuple[int, int]:
        places = [place[name] for name in mirror.concepts] or [len(place)]
        return places[0], max(places)

    return sorted(mirrors, key=when)
