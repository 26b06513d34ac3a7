"""W3C Web Annotations as values: what is said, and which text of which file it quotes.

A collection, a page, a list or one annotation; keys that are not asked for are passed
over. What stands in other kinds of selectors is not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from msgspec import json

from readerkit.errors import ContentFault, GivenFileError

MAX_DEPTH = 4
"""Of collections in pages in lists."""


@dataclass(frozen=True, slots=True)
class Quote:
    """The text that is meant, what is around it, and where it was."""

    exact: str = ""
    prefix: str = ""
    suffix: str = ""
    start: int | None = None
    end: int | None = None
    """In characters of the file."""


@dataclass(frozen=True, slots=True)
class QuotedNote:
    """An annotation on a quote."""

    name: str
    """Its id, or which of the file it is."""
    source: str
    quote: Quote
    parts: Mapping[str, str] = field(default_factory=dict)
    """The texts of its bodies that say which part of a note they are."""
    said: str = ""
    """The other texts."""
    tags: tuple[str, ...] = ()
    cited: tuple[tuple[str, str], ...] = ()
    """Keys of works, each with a section."""


def read_quotes(data: bytes, file: str) -> list[QuotedNote]:
    """Return the annotations in a file.

    Raises:
        GivenFileError: no JSON, no annotation, or one without a source.
    """
    expected = "Web Annotations: JSON-LD with a 'target', its 'source' and 'selector'"
    try:
        whole = json.decode(data)
    except (ValueError, RecursionError) as error:
        fault = ContentFault(file, 1, 1, "no readable JSON", str(error), expected)
        raise GivenFileError([fault]) from None
    found: list[QuotedNote] = []
    faults: list[ContentFault] = []
    for number, plain in enumerate(_annotations(whole), 1):
        read = _quoted(plain, number)
        if isinstance(read, str):
            what = f"annotation {number}: {read}"
            faults.append(ContentFault(file, 1, 1, what, expected=expected))
        else:
            found.append(read)
    if not found and not faults:
        faults.append(ContentFault(file, 1, 1, "no annotation in it", "", expected))
    if faults:
        raise GivenFileError(faults)
    return found


def _annotations(value: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, list):
        for each in value:
            yield from _annotations(each, depth + 1)
    elif isinstance(value, dict) and "target" in value:
        yield value
    elif isinstance(value, dict):
        for key in ("first", "items", "rows"):
            if isinstance(value.get(key), (list, dict)):
                yield from _annotations(value[key], depth + 1)


def _quoted(plain: Mapping[str, Any], number: int) -> QuotedNote | str:
    target = _first(plain["target"])
    if isinstance(target, str):
        target = {"source": target}
    source = _text(target, "source") if isinstance(target, dict) else ""
    if not source:
        return "its target has no 'source'"
    selectors = [s for s in _list(target.get("selector")) if isinstance(s, dict)]
    parts: dict[str, str] = {}
    said, tags, cited = [], [], []
    for body in _list(plain.get("body")) + _list(plain.get("bodyValue")):
        value = body if isinstance(body, str) else _text(body, "value")
        mark = _text(body, "id").rpartition("urn:readerkit:note:")[2].split(":")[1:]
        if mark[:1] == ["reference"] and len(mark) == 3:
            cited.append((mark[1], unquote(mark[2])))
        elif mark == ["concept"] or (not mark and _text(body, "purpose") == "tagging"):
            tags.append(value)
        elif len(mark) == 1:
            parts[mark[0]] = value
        elif value:
            said.append(value)
    name = _text(plain, "id") or f"annotation {number}"
    return QuotedNote(
        name,
        source,
        _quote(selectors),
        parts,
        "\n\n".join(said),
        tuple(filter(None, tags)),
        tuple(cited),
    )


def _quote(selectors: list[dict[str, Any]]) -> Quote:
    by_type = {_text(each, "type"): each for each in reversed(selectors)}
    quoted = by_type.get("TextQuoteSelector", {})
    at = by_type.get("TextPositionSelector", {})
    start, end = (
        n if type(n) is int and n >= 0 else None
        for n in (at.get("start"), at.get("end"))
    )
    exact, prefix, suffix = (_text(quoted, n) for n in ("exact", "prefix", "suffix"))
    return Quote(exact, prefix, suffix, start, end)


def _text(value: Any, key: str) -> str:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value
