"""Ways through the notes of a book: stops in turn, and the notes at each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from readerkit.content.annotations import Annotation, Concept
from readerkit.content.concept_order import by_need
from readerkit.content.paths_file import ReadingPaths
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
