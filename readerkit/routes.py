"""The reading paths that people write: from a symptom to notes, and pairs of ideas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from readerkit.book import Book
from readerkit.document import Path, YamlFile
from readerkit.errors import ContentError, Fault


@dataclass(frozen=True, slots=True)
class Failure:
    """A symptom, what causes it, and the notes that show the lines."""

    symptom: str
    cause: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """A memory mechanism against a coordination mechanism, and the wire they share."""

    memory: str
    coordination: str
    wire: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Routes:
    """What ``site/pages/paths.yaml`` holds."""

    failures: tuple[Failure, ...] = ()
    pairs: tuple[Pair, ...] = ()


_KEYS = {
    "failures": {"symptom": str, "cause": str, "notes": list},
    "pairs": {"memory": str, "coordination": str, "wire": str, "notes": list},
}


def parse_routes(document: YamlFile, book: Book) -> Routes:
    """Return the routes of a document, held against the book.

    Raises:
        ContentError: every fault of the file.
    """
    faults = [*document.faults, *_faults(document, book)]
    if faults:
        raise ContentError(faults)
    value = document.value or {}
    given = {kind: [_entry(e) for e in value.get(kind, ())] for kind in _KEYS}
    return Routes(
        tuple(Failure(**entry) for entry in given["failures"]),
        tuple(Pair(**entry) for entry in given["pairs"]),
    )


def _entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: tuple(item) if isinstance(item, list) else item.strip()
        for key, item in entry.items()
    }


def _faults(document: YamlFile, book: Book) -> Iterator[Fault]:
    value = document.value or {}
    if not isinstance(value, dict) or not value.keys() <= _KEYS.keys():
        yield document.fault((), "unknown content", "", f"{', '.join(_KEYS)}")
        return
    for kind, entries in value.items():
        for index, entry in enumerate(entries if isinstance(entries, list) else [None]):
            yield from _entry_faults(document, (kind, index), entry, book)


def _entry_faults(
    document: YamlFile, path: Path, entry: Any, book: Book
) -> Iterator[Fault]:
    keys = _KEYS[str(path[0])]
    shape = {key: type(item) for key, item in entry.items()} if entry else {}
    if shape != keys:
        expected = ", ".join(f"{key} ({kind.__name__})" for key, kind in keys.items())
        yield document.fault(path, "an entry of another shape", "", expected)
        return
    for position, name in enumerate(entry["notes"]):
        yield from _unknown(
            document, (*path, "notes", position), name, book.annotations
        )
    for key in ("memory", "coordination"):
        if key in entry:
            yield from _unknown(document, (*path, key), entry[key], book.concepts)


def _unknown(
    document: YamlFile, path: Path, name: Any, known: Mapping[str, object] | Set[str]
) -> Iterator[Fault]:
    if name not in known:
        yield document.fault(path, "unknown id", f"'{name}'", "one of this book's")
