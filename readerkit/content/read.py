"""A file of a book, read strictly and held against the model of its kind."""

from __future__ import annotations

from collections.abc import Iterator, Set
from functools import partial
from typing import Any

from msgspec import convert, to_builtins

from readerkit.content.kind import Document, E, Entry, Kind, Place
from readerkit.content.schema import misfits
from readerkit.content.strict_yaml import Path, YamlFile, parse_yaml
from readerkit.model.base import Model, Problem


def read_document(data: bytes, file: str, kind: Kind[E]) -> Document[E]:
    """Return the document in ``data``; what does not fit its model is in its faults.

    Raises:
        ContentError: a file that is no YAML.
    """
    yaml = parse_yaml(data, file)
    wrong = misfits(yaml, kind)
    document: Document[E] = Document(file, data, faults=yaml.faults, yaml=yaml)
    if () in wrong:
        document.is_broken = True
        return document
    for path, plain in kind.entries(yaml.value).items():
        here = {place for place in wrong if place[: len(path)] == path}
        if not here:
            entry = _entry(plain or {}, kind, path, yaml)
            problems = [*_problems(entry, path)]
            if not problems:
                document.entries[path] = entry
                continue
            yaml.faults += [yaml.fault(place, *problem) for place, problem in problems]
            here = {place for place, _ in problems}
        document.refused |= _names(plain)
        if kind.stand_in is not None and isinstance(plain, dict):
            part, lacking = _part(plain, kind.stand_in, path, here)
            document.partial[path] = _entry(part, kind, path, yaml)
            document.stand_ins |= lacking
    return document


def _part(
    plain: dict[str, Any], stand_in: Any, path: Path, wrong: Set[Path]
) -> tuple[dict[str, Any], set[Path]]:
    """Return the valid part of an entry, and the keys that a stand-in gives instead."""
    misfit = {place[len(path)] for place in wrong if len(place) > len(path)}
    known = stand_in.__struct_encode_fields__
    fits = {key: plain[key] for key in known if key in plain and key not in misfit}
    needed: dict[str, Any] = to_builtins(stand_in)
    return {**needed, **fits}, {(*path, key) for key in needed.keys() - fits}


def _entry(plain: Any, kind: Kind[E], path: Path, yaml: YamlFile) -> E:
    """Return an entry that fits its model, every part of it with its place."""
    entry: E = convert(_stripped(plain), kind.entry)
    for part, at in _models(entry, path):
        if isinstance(part, Entry):
            part.settle(partial(_place, yaml, at))
    return entry


def _problems(entry: object, path: Path) -> Iterator[tuple[Path, Problem]]:
    for part, at in _models(entry, path):
        for problem in part.problems():
            yield at, problem


def _models(value: Any, path: Path) -> Iterator[tuple[Model, Path]]:
    """Yield every model in a value, and where it stands."""
    items: Any = ()
    if isinstance(value, tuple):
        items = enumerate(value)
    elif isinstance(value, dict):
        items = value.items()
    elif isinstance(value, Model):
        yield value, path
        items = (
            (key, getattr(value, name))
            for name, key in zip(
                value.__struct_fields__, value.__struct_encode_fields__, strict=True
            )
        )
    for key, item in items:
        yield from _models(item, (*path, key))


def _stripped(value: Any) -> Any:
    """Return a value whose texts have no white space around them."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        return [_stripped(item) for item in value]
    if isinstance(value, dict):
        return {key: _stripped(item) for key, item in value.items()}
    return value


def _place(yaml: YamlFile, path: Path, *below: str | int) -> Place:
    return Place(yaml.file, *yaml.mark((*path, *below)))


def _names(entry: Any) -> set[str]:
    """Return the ids of an entry with faults, as far as it has them."""
    given = entry if isinstance(entry, dict) else {}
    names = (given.get(key) for key in ("id", "key", "name"))
    return {name for name in names if isinstance(name, str)}
