"""One JSON Schema of each kind of file, for the loader and for editors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import jsonschema_rs
import msgspec

from readerkit.content.kind import Kind
from readerkit.content.strict_yaml import Path, YamlFile
from readerkit.errors import ContentFault
from readerkit.model.base import ANY_LETTER
from readerkit.wording.meant_name import near_names
from readerkit.wording.numbers import counted

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_EXPECTED = {
    "maxItems": "at most {} entries",
    "maxLength": "at most {} characters",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "pattern": "text that fits {}",
    "uniqueItems": "each entry once",
}


def json_schema(
    kind: Kind[Any], *, concepts: Iterable[str] = (), references: Iterable[str] = ()
) -> Schema:
    """Return the JSON Schema of a kind of file, for editors.

    The ids of the book at hand become choices, so that an editor can complete them.
    """
    choices = {"concept": sorted(concepts), "reference": sorted(references)}
    whole = _with_choices(_schema(kind), choices)
    return {"$schema": _DIALECT, **whole, "title": f"readerkit {kind.name}"}


def _with_choices(node: Any, choices: Mapping[str, list[str]]) -> Any:
    """Copy a schema with what a concept or a reference may be listed."""
    if isinstance(node, list):
        return [_with_choices(item, choices) for item in node]
    if not isinstance(node, dict):
        return node
    title = node.get("title")
    if isinstance(title, str) and choices.get(title):
        return {"enum": choices[title]}
    return {key: _with_choices(value, choices) for key, value in node.items()}


# --- from models ---


@lru_cache
def _schema(kind: Kind[Any]) -> Schema:
    """Return the schema of a kind of file in one piece, so that its path is a place."""
    (whole,), parts = msgspec.json.schema_components([kind.whole])
    return _in_one(whole, parts)


def _in_one(node: Schema, parts: Mapping[str, Schema]) -> Schema:
    """Return a schema with the models that it refers to in their places."""
    if "$ref" in node:
        own = {key: value for key, value in node.items() if key != "$ref"}
        node = {**parts[node["$ref"].rpartition("/")[2]], **own}
    if "discriminator" in node:
        return _by_tag(node, parts)
    if "anyOf" in node:
        node = _merged(node)
        if "$ref" in node:
            return _in_one(node, parts)
    found: Schema = {}
    for key, value in node.items():
        if key == "properties":
            found[key] = {
                name: _in_one(item, parts)
                for name, item in value.items()
                if "unwritten" not in item
            }
        elif key == "description":  # of a class: what its first paragraph says
            found[key] = " ".join(value.partition("\n\n")[0].split())
        elif key == "allOf":
            found[key] = value
        elif isinstance(value, dict) and key != "default":
            found[key] = _in_one(value, parts)
        elif key != "default":
            found[key] = value
    return found


def _merged(node: Schema) -> Schema:
    """Return alternatives as one; a key that may be missing is never null."""
    ways = [way for way in node["anyOf"] if way != {"type": "null"}]
    own = {key: value for key, value in node.items() if key != "anyOf"}
    if len(ways) == 1:
        return {**ways[0], **own}
    types = [way.get("type", "object") for way in ways]
    if "number" in types:  # every integer is one
        types = [name for name in types if name != "integer"]
    for model in (way for way in ways if "$ref" in way):  # of it is what is a mapping
        own |= {"if": {"type": "object"}, "then": model}
    return {**own, "type": types}


def _by_tag(node: Schema, parts: Mapping[str, Schema]) -> Schema:
    """Return a choice of models: the tag says which of them a mapping must fit."""
    tag = node["discriminator"]["propertyName"]
    models = {
        name: _in_one({"$ref": ref}, parts)
        for name, ref in node["discriminator"]["mapping"].items()
    }
    rule = [
        {"if": {"required": [tag], "properties": {tag: {"const": name}}}, "then": model}
        for name, model in models.items()
    ]
    return {
        "type": "object",
        "required": [tag],
        "properties": {tag: {"enum": list(models)}},
        "allOf": rule,
    }


# --- a file against it ---


def misfits(document: YamlFile, kind: Kind[Any]) -> set[Path]:
    """Add to a document's faults what does not fit its kind.

    Returns the places of what does not fit; of a missing or unknown key, of what it is
    in.
    """
    schema = _schema(kind)
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
    return jsonschema_rs.Draft202012Validator(_schema(kind))


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
