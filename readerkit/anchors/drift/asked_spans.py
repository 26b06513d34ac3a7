"""The rows of ``--spans``: what is asked, one JSON object a line, and the answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from readerkit.anchors.drift.verdict import Carried
from readerkit.anchors.source import is_binary, without_mark
from readerkit.model.anchor import Span
from readerkit.model.git_names import parse_lines, parse_path

MAX_ROW_BYTES = 100_000
_EXPECTED = '{"id": ..., "path": "a/file.py", "start": 1, "end": 2}'
_NO_JSON = f"got no JSON, expected {_EXPECTED}"


@dataclass(frozen=True, slots=True)
class AskedSpan:
    """A span that is asked for, under the name that its answer goes by."""

    id: str | int
    span: Span


@dataclass(frozen=True, slots=True)
class BadRow:
    """A line that asks for nothing: where it stands, and what is wrong with it."""

    line: int
    problem: str


def parse_rows(data: bytes) -> tuple[list[AskedSpan], list[BadRow]]:
    """Return the rows of a file, and the lines that are none. Blank lines are left."""
    rows: list[AskedSpan] = []
    bad: list[BadRow] = []
    if is_binary(data):
        return [], [BadRow(1, f"got a binary file, expected lines of {_EXPECTED}")]
    for number, line in enumerate(without_mark(data).split(b"\n"), 1):
        if line.strip():
            try:
                rows.append(_row(line))
            except ValueError as error:
                bad.append(BadRow(number, str(error)))
    if not rows and len(bad) != 1 and {each.problem for each in bad} <= {_NO_JSON}:
        got = f"got no JSON in {len(bad)} lines" if bad else "got no row"
        return [], [BadRow(1, f"{got}, expected lines of {_EXPECTED}")]
    return rows, bad


def asked_twice(rows: Iterable[AskedSpan]) -> list[str | int]:
    """Return the ids that more than one row has: their answers cannot be told apart."""
    counts = Counter((type(row.id), row.id) for row in rows)
    return [name for (_, name), count in counts.items() if count > 1]


def _row(line: bytes) -> AskedSpan:
    """Return what a line asks for.

    Raises:
        ValueError: what is wrong with it.
    """
    if len(line) > MAX_ROW_BYTES:
        size = f"{len(line):,} bytes, expected at most {MAX_ROW_BYTES:,}"
        raise ValueError(f"got a row of {size}")
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError(_NO_JSON) from None
    if not isinstance(row, dict):
        raise ValueError(f"got {_kind(row)}, expected an object: {_EXPECTED}")
    lacking = [key for key in ("id", "path", "start", "end") if key not in row]
    if lacking:
        raise ValueError(f"got no '{lacking[0]}', expected {_EXPECTED}")
    name = row["id"]
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise ValueError(f"got {_said(name)} as 'id', expected a text or a number")
    return AskedSpan(name, Span(parse_path(row["path"]), *parse_lines(*_ends(row))))


def _ends(row: dict[str, Any]) -> tuple[object, object]:
    for key in ("start", "end"):
        if type(row[key]) is not int:
            got = f"{_said(row[key])} as '{key}'"
            raise ValueError(f"got {got}, expected the number of a line, from 1")
    if not 0 < row["start"] <= row["end"]:
        got = f"lines {row['start']} to {row['end']}"
        raise ValueError(f"got {got}, expected numbers from 1 on, in order")
    return row["start"], row["end"]


def _said(value: object) -> str:
    """Return what a value is, and which number."""
    return str(value) if isinstance(value, float) else _kind(value)


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return names.get(type(value), "a number" if value is not None else "null")


def answer(row: AskedSpan, verdict: Carried) -> dict[str, Any]:
    """Return the answer to a row, as JSON has it."""
    to = verdict.to
    return {
        "id": row.id,
        "status": verdict.status,
        "path": to.path if to else None,
        "start": to.first if to else None,
        "end": to.last if to else None,
        "confidence": round(verdict.confidence, 4),
        "reason": verdict.reason,
    }


def answers(rows: Iterable[AskedSpan], verdicts: Iterable[Carried]) -> Iterable[str]:
    """Yield a line of JSON for each row."""
    for row, verdict in zip(rows, verdicts, strict=True):
        yield json.dumps(answer(row, verdict))
