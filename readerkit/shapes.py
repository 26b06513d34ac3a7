"""The parts that schemas of hand-written files are made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

ANY_LETTER = "\\S"
TEXT = {"type": "string", "pattern": ANY_LETTER}
ID_PATTERN = "^[a-z0-9]+(-[a-z0-9]+)*$"
ID = {"type": "string", "pattern": ID_PATTERN, "maxLength": 60}
NAME = {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"}
COUNT = {"type": "integer", "minimum": 1}


def object_of(required: Iterable[str], **properties: Any) -> dict[str, Any]:
    """Return the schema of a mapping with these keys and no others."""
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "additionalProperties": False,
    }


def list_of(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": items, **more}


def where(key: str, values: Iterable[str], **then: Any) -> dict[str, Any]:
    """Return a rule for objects whose ``key`` has one of these values."""
    has_value = {"required": [key], "properties": {key: {"enum": list(values)}}}
    return {"if": has_value, "then": then}


ANCHOR_KEYS: dict[str, Any] = {
    "file": {**TEXT, "description": "Path from the root of the upstream."},
    "symbol": {**TEXT, "description": "A definition: Class.method, outer.inner."},
    "code": {**TEXT, "description": "A pattern; ... stands for anything."},
    "from": {**TEXT, "description": "The pattern where a range begins."},
    "to": {**TEXT, "description": "The pattern where the range ends."},
    "query": {**TEXT, "description": "A tree-sitter query with one @anchor capture."},
    "nth": {**COUNT, "description": "Which of equal matches, from 1."},
    "to_nth": {**COUNT, "description": "Which of equal matches of 'to', from 1."},
}
ANCHOR = object_of(["file"], **ANCHOR_KEYS)
CITED = list_of(object_of(["key"], key={**ID, "title": "reference"}, section=TEXT))
IDS = list_of(ID, uniqueItems=True)
