"""One JSON Schema of each kind of file, from its model: for reading, for editors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from readerkit.content.kind import Kind

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(
    kind: Kind[Any],
    *,
    concepts: Iterable[str] = (),
    conditions: Iterable[str] = (),
    references: Iterable[str] = (),
) -> Schema:
    """Return the JSON Schema of a kind of file, for editors.

    The ids of the book at hand become choices, so that an editor can complete them.
    """
    choices = {
        "concept": sorted(concepts),
        "condition": sorted(conditions),
        "reference": sorted(references),
    }
    whole = _with_choices(schema_of(kind), choices)
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
def schema_of(kind: Kind[Any]) -> Schema:
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
