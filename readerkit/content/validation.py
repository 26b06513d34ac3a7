"""A file of a book, read strictly and held against the model of its kind."""

from __future__ import annotations

from collections.abc import Iterator, Set
from functools import lru_cache, partial
from typing import Any

import jsonschema_rs
from msgspec import convert, to_builtins

from readerkit.content.kind import Document, E, Entry, Kind, Place
from readerkit.content.schema import Schema, schema_of
from readerkit.content.strict_yaml import Path, YamlFile, parse_yaml
from readerkit.errors import ContentFault
from readerkit.model.base import ANY_LETTER, Model, Problem
from readerkit.wording.meant_name import near_names
from readerkit.wording.numbers import counted

_EXPECTED = {
    "maxItems": "at most {} entries",
    "maxLength": "at most {} characters",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "pattern": "text that fits {}",
    "uniqueItems": "each entry once",
}


def read_document(data: bytes, file: str, kind: Kind[E]) -> Document[E]:
    """Return the document in ``data``; what does not fit its model is in its faults.

    Raises:
        ContentError: a file that is no YAML.
    """
    yaml = parse_yaml(data, file)
    wrong = _misfits(yaml, kind)
    document: Document[E] = Document(file, data, faults=yaml.faults, yaml=yaml)
    if () in wrong:
        document.is_broken = True
        return document
    below = _below(wrong)
    for path, plain in kind.entries(yaml.value).items():
        here = below.get(path, set())
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


def _below(places: Set[Path]) -> dict[Path, set[Path]]:
    """Return for each place that leads to some of these, itself among them, which."""
    found: dict[Path, set[Path]] = {}
    for place in places:
        for end in range(len(place) + 1):
            found.setdefault(place[:end], set()).add(place)
    return found


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
        if item and isinstance(item, (tuple, dict, Model)):  # few of them are
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


# --- a file against its schema ---


def _misfits(document: YamlFile, kind: Kind[Any]) -> set[Path]:
    """Add to a document's faults what does not fit its kind.

    Returns the places of what does not fit; of a missing or unknown key, of what it is
    in.
    """
    schema = schema_of(kind)
    if document.value is None and not schema.get("required"):  # nothing in it yet
        return set()
    places: set[Path] = set()
    # Where a key or a value was refused already, its stand-in is no second fault.
    refused = {(fault.line, fault.column) for fault in document.faults}
    for error in _validator(kind).iter_errors(document.value):
        path = _path(error, document.value)
        found = _faults(error, path, document, schema)
        document.faults += [f for f in found if (f.line, f.column) not in refused]
        is_name = error.kind.name == "propertyNames"
        places.add((*path, error.kind.error.instance) if is_name else path)
    return places


@lru_cache
def _validator(kind: Kind[Any]) -> Any:
    return jsonschema_rs.Draft202012Validator(schema_of(kind))


def _path(error: Any, value: Any) -> Path:
    """Return where an error stands; its own path has the key ``'4'`` as a number."""
    path: Path = ()
    for step in error.instance_path:
        key = str(step) if isinstance(value, dict) else step
        path, value = (*path, key), value[key]
    return path


def _faults(
    error: Any, path: Path, document: YamlFile, schema: Schema
) -> list[ContentFault]:
    """Say a validator's error in the words of the file: what, got, expected."""
    rule, value = error.kind.name, error.instance
    around: Any = None
    limit: Any = schema
    for step in error.schema_path:
        around, limit = limit, limit[step]
    if rule == "additionalProperties":
        known = list(around.get("properties", ()))
        return [
            _unknown_key(document, path, key, known) for key in error.kind.unexpected
        ]
    if rule == "required":
        return [
            document.fault(path, f"missing key '{error.kind.property}'{_of(value)}")
        ]
    if rule == "propertyNames":
        name = error.kind.error.instance
        at = document.key_mark((*path, name))
        expected = f"an id: {around['pattern']}"
        return [ContentFault(document.file, *at, "wrong key", _show(name), expected)]
    if rule == "falseSchema":
        what = f"key '{path[-1]}' does not belong here"
        return [ContentFault(document.file, *document.key_mark(path), what)]
    named = path and isinstance(path[-1], str)
    name = f"'{path[-1]}'" if named else "this entry"
    if rule == "type":
        types = [limit] if isinstance(limit, str) else list(limit)
        expected = " or ".join(types) + _quote_hint(value, types)
        return [document.fault(path, f"wrong type for {name}", _show(value), expected)]
    if rule == "enum":
        expected = "one of " + ", ".join(map(str, limit))
    elif rule == "pattern" and "patternErrorMessage" in around:
        expected = around["patternErrorMessage"]
    elif rule in ("minProperties", "maxProperties") and "errorMessage" in around:
        expected = around["errorMessage"]
    elif limit == ANY_LETTER:
        expected = "some text"
    elif rule == "minItems":
        expected = f"at least {counted(limit, 'entry', 'entries')}"
    else:
        expected = _EXPECTED[rule].format(limit) if rule in _EXPECTED else error.message
    return [document.fault(path, f"wrong value for {name}", _show(value), expected)]


def _unknown_key(
    document: YamlFile, path: Path, key: str, known: list[str]
) -> ContentFault:
    near = near_names(key, known)
    expected = f"'{near[0]}', perhaps" if near else "one of " + ", ".join(known)
    mark = document.key_mark((*path, key))
    return ContentFault(document.file, *mark, "unknown key", f"'{key}'", expected)


def _of(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    label = value.get("id") or value.get("key") or value.get("name")
    return f" in {label}" if isinstance(label, str) else ""


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _quote_hint(value: Any, types: list[str]) -> str:
    quotable = isinstance(value, (int, float, bool)) and "string" in types
    return " (put it in quotes)" if quotable else ""
