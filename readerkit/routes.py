"""The reading paths that people write: from a symptom to notes, and pairs of ideas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from readerkit.book import Book
from readerkit.document import Path, YamlFile
from readerkit.errors import ContentError, Fault
from readerkit.translations import Translation, english_stamp


@dataclass(frozen=True, slots=True)
class Failure:
    """A symptom, what causes it, and the notes that show the lines."""

    id: str
    symptom: str
    cause: str
    notes: tuple[str, ...]

    @property
    def stamp(self) -> str:
        """The name of its texts: what a translation of it is ``of``."""
        return english_stamp((self.symptom, self.cause))


@dataclass(frozen=True, slots=True)
class Pair:
    """A memory mechanism against a coordination mechanism, and the wire they share."""

    id: str
    memory: str
    coordination: str
    wire: str
    notes: tuple[str, ...]

    @property
    def stamp(self) -> str:
        """The same."""
        return english_stamp((self.wire,))


@dataclass(frozen=True, slots=True)
class Routes:
    """What ``site/pages/paths.yaml`` holds, and the Spanish texts beside it."""

    failures: tuple[Failure, ...] = ()
    pairs: tuple[Pair, ...] = ()
    spanish: Mapping[str, Translation] = field(default_factory=dict)
    """By the id of a failure or a pair."""


_KEYS: dict[str, dict[str, type]] = {
    "failures": {"id": str, "symptom": str, "cause": str, "notes": list},
    "pairs": {
        "id": str,
        "memory": str,
        "coordination": str,
        "wire": str,
        "notes": list,
    },
}


def parse_routes(
    document: YamlFile, book: Book, spanish: YamlFile | None = None
) -> Routes:
    """Return the routes of a document, held against the book, and their Spanish.

    Raises:
        ContentError: every fault of the files.
    """
    faults = [*document.faults, *_faults(document, book)]
    if faults:
        raise ContentError(faults)
    value = document.value or {}
    given = {kind: [_entry(e) for e in value.get(kind, ())] for kind in _KEYS}
    known = {kind: {entry["id"] for entry in given[kind]} for kind in given}
    return Routes(
        tuple(Failure(**entry) for entry in given["failures"]),
        tuple(Pair(**entry) for entry in given["pairs"]),
        _translations(spanish, known) if spanish else {},
    )


def _translations(
    document: YamlFile, known: Mapping[str, Set[str]]
) -> dict[str, Translation]:
    """Return the texts of a sidecar that fits its schema, by id."""
    faults = list(document.faults)
    found: dict[str, Translation] = {}
    groups: dict[str, Any] = {} if faults else document.value or {}
    for kind, entries in groups.items():
        for name, texts in entries.items():
            found[name] = Translation.parse(texts)
            if name not in known[kind]:
                mark = document.key_mark((kind, name))
                expected = f"one of the {kind} of paths.yaml"
                what = "unknown id"
                fault = Fault(document.file, *mark, what, f"'{name}'", expected)
                faults.append(fault)
    if faults:
        raise ContentError(faults)
    return found


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
    told: set[str] = set()
    for kind, entries in value.items():
        for index, entry in enumerate(entries if isinstance(entries, list) else [None]):
            path: Path = (kind, index)
            yield from _entry_faults(document, path, entry, book)
            name = str(entry.get("id", "")) if isinstance(entry, dict) else ""
            if name in told:
                yield document.fault(path, "a duplicate id", f"'{name}'", "each once")
            told |= {name} - {""}


def _entry_faults(
    document: YamlFile, path: Path, entry: Any, book: Book
) -> Iterator[Fault]:
    keys = _KEYS[str(path[0])]
    given = entry if isinstance(entry, dict) else {}
    if {key: type(item) for key, item in given.items()} != keys:
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
    if not isinstance(name, str) or name not in known:
        yield document.fault(path, "unknown id", f"'{name}'", "one of this book's")
