"""What a file's schema takes where somebody types: keys, and words of a fixed set."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from readerkit.content.parse_book import BookFile, kind_of
from readerkit.content.schema import schema_of
from readerkit.errors import ContentError

ITEM = "-"
"""A step into a list."""
_ROW = re.compile(r"(?P<lead>\s*)(?P<dash>-\s+)?(?P<rest>.*)")
_OPENS = re.compile(r"(?P<key>[\w-]+):\s*(?:#.*)?")
_VALUE = re.compile(r"(?P<key>[\w-]+):\s+(?P<value>.*)")
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'")


@dataclass(frozen=True, slots=True)
class YamlPlace:
    """Where somebody types: the keys around it, and what stands there so far."""

    steps: tuple[str, ...]
    is_key: bool
    """Whether a key is typed, and no value."""
    typed: str


def place_in(text: str, line: int, character: int) -> YamlPlace | None:
    """Return where a place is, counted from 0; None inside of a text."""
    rows = text.splitlines()
    row = rows[line][:character] if line < len(rows) else ""
    match = _ROW.fullmatch(row)
    assert match is not None  # every row is one
    lead, dash, rest = match["lead"], match["dash"] or "", match["rest"]
    above = _above(rows[:line], len(lead), is_item=bool(dash))
    if above is None:
        return None
    steps = [*above, ITEM] if dash else above
    inner, is_key, typed = _within(_QUOTED.sub(lambda q: "_" * len(q[0]), rest))
    # What was masked above is told as it stands.
    return YamlPlace((*steps, *inner), is_key, rest[len(rest) - len(typed) :])


def _above(rows: list[str], column: int, *, is_item: bool) -> list[str] | None:
    """Return the steps to what begins at a column below some rows."""
    steps: list[str] = []
    for row in reversed(rows):
        match = _ROW.fullmatch(row)
        if match is None or not match["rest"] or match["rest"].startswith("#"):
            continue
        lead = len(match["lead"])
        key_at = lead + len(match["dash"] or "")
        opens = _OPENS.fullmatch(match["rest"])
        if key_at < column or (is_item and key_at == column and opens):
            if opens is None:
                return None
            steps.append(opens["key"])
        elif not (match["dash"] and key_at == column and not is_item):
            continue
        column, is_item = key_at, False
        if match["dash"]:
            steps.append(ITEM)
            column, is_item = lead, True
    return steps[::-1]


def _within(rest: str) -> tuple[list[str], bool, str]:
    """Return the steps within a row, whether a key is typed, and what stands there."""
    steps: list[str] = []
    opened: list[tuple[str, int]] = []
    start = 0
    for at, sign in enumerate(rest):
        if sign in "{[":
            key = _OPENS.fullmatch(rest[start:at].strip())
            here = [key["key"]] if key else []
            steps += here + ([ITEM] if sign == "[" else [])
            opened.append((sign, len(here) + (sign == "[")))
        elif sign in "}]" and opened:
            del steps[len(steps) - opened.pop()[1] :]
        elif not (sign == "," and opened):
            continue
        start = at + 1
    typed = rest[start:].lstrip()
    if opened and opened[-1][0] == "[" and not _VALUE.fullmatch(typed):
        return steps, False, typed
    if value := _VALUE.fullmatch(typed):
        return [*steps, value["key"]], False, value["value"]
    return steps, True, typed


def offered(file: Path, top: Path, place: YamlPlace) -> Iterator[tuple[str, str]]:
    """Yield what the schema of a file takes at a place, each with what it is for."""
    try:
        schema = schema_of(kind_of(BookFile(file.relative_to(top).as_posix(), b"")))
    except (ContentError, ValueError):
        return
    for part in _at(schema, place.steps):
        if place.is_key:
            for name, of in part.get("properties", {}).items():
                yield name, of.get("description", of.get("title", ""))
        else:
            yield from ((str(word), "") for word in part.get("enum", ()))


def _at(schema: dict[str, Any], steps: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield the schemas of what stands at some steps."""
    for choice in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(choice, ()):
            yield from _at(part, steps)
    if not steps:
        yield schema
        return
    first, *rest = steps
    inner = schema.get("items") if first == ITEM else schema.get("properties", {})
    if first != ITEM and isinstance(inner, dict):
        inner = inner.get(first)
    if isinstance(inner, dict):
        yield from _at(inner, tuple(rest))
