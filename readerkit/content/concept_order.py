"""Concepts in the order they are taught, and notes and mirrors in that order.

Each concept comes after what it requires. The paths that a reader follows are in
``routes``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import TopologicalSorter

from readerkit.content.annotations import Annotation, Concept
from readerkit.content.mirrors import Mirror


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
