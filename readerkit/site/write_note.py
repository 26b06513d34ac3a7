"""A note written on the served page: what its form asks for, and its way in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from starlette.responses import JSONResponse, PlainTextResponse, Response

from readerkit.anchors.xref.links import File
from readerkit.app.library import Library, open_library, writing
from readerkit.app.new_note import (
    add_note,
    filled_entry,
    find_lines,
    free_id,
    note_file,
    text_before,
)
from readerkit.content.book import Book
from readerkit.errors import ContentError, ReaderkitError
from readerkit.model import addresses
from readerkit.site.http import HEADERS
from readerkit.upstreams.store import blob_id

TOPIC = "my-notes"
KINDS = ("note", "pitfall", "citation")
MAX_LINE = 10_000_000
_TEXTS = [
    "upstream",
    "path",
    "digest",
    "kind",
    "title",
    "text",
    "decision",
    "alternative",
    "why",
    "cost",
    "key",
    "section",
    "concepts",
]


@dataclass(frozen=True, slots=True)
class NoteForm:
    """What a form says: the lines, of which bytes, and what was typed."""

    typed: Mapping[str, str]
    first: int
    last: int

    @classmethod
    def parse(cls, body: bytes) -> NoteForm:
        """Return what a form says.

        Raises:
            ValueError: it says something else than a form of the page.
        """
        try:
            given: Any = json.loads(body)
        except (ValueError, RecursionError):  # the latter: nested too deeply
            given = None
        if not isinstance(given, dict):
            raise ValueError("expected the form of a note")
        typed = {name: given.get(name, "") for name in _TEXTS}
        for name, text in typed.items():
            if not isinstance(text, str) or any(map(_is_half, text)):
                raise ValueError(f"{name}: expected a text")
        first, last = given.get("first"), given.get("last")
        if not (type(first) is type(last) is int and 0 < first <= last < MAX_LINE):
            raise ValueError("expected the numbers of the first and the last line")
        if typed["kind"] not in KINDS:
            raise ValueError(f"kind: expected {' or '.join(KINDS)}")
        return cls({name: text.strip() for name, text in typed.items()}, first, last)


def _is_half(letter: str) -> bool:
    """Tell whether this is half of a surrogate pair, which is no text."""
    return "\ud800" <= letter <= "\udfff"


class StaleError(ReaderkitError):
    """The page shows other bytes than the file has."""


async def answer_note(body: bytes, book: Path | None) -> Response:
    """Write the note of a form, or say why not, in the words of ``readerkit note``."""
    try:
        asked = NoteForm.parse(body)
        written = await asyncio.to_thread(take, asked, book)
    except ValueError as error:
        return PlainTextResponse(str(error), 400, headers=HEADERS)
    except ReaderkitError as error:
        status = 409 if isinstance(error, StaleError) else 422
        return PlainTextResponse(str(error), status, headers=HEADERS)
    return JSONResponse(written, headers=HEADERS)


def script_of(file: File, known: Mapping[str, bytes | str]) -> bytes:
    """Return what lets a note be written on the page of a file, of these bytes."""
    data = known.get(file[1])
    if data is None:  # it was not fetched
        return b""
    digest = blob_id(data) if isinstance(data, bytes) else data
    values = {"upstream": file[0], "path": file[1], "digest": digest}
    marks = "".join(f' data-{name}="{escape(v)}"' for name, v in values.items())
    script = f'<script src="/-/write.js"{marks}></script>\n'
    return script.encode("utf-8", "replace")


def digest_of(library: Library, upstream: str, path: str) -> str:
    """Return the digest of the bytes that lines are chosen in."""
    sources = library.sources(library.upstream(upstream))
    return blob_id(sources.read(next(p for p in sources.paths if p == path)))


def choices(book: Book) -> dict[str, list[str]]:
    """Return what a form offers: the concepts there are, and the works to cite."""
    return {"concepts": sorted(book.concepts), "references": sorted(book.references)}


def take(asked: NoteForm, book: Path | None) -> dict[str, str]:
    """Write a note into the reader's own book; return its id and its place.

    Raises:
        StaleError: the lines were chosen in other bytes.
        ReaderkitError: the book does not hold with it; nothing is changed then.
    """
    typed = asked.typed
    with writing():
        library = open_library(book, whole=True, quiet=True)
        upstream, span = find_lines(
            typed["path"],
            asked.first,
            asked.last,
            library,
            only=library.upstream(typed["upstream"]),
        )
        if digest_of(library, upstream.name, span.path) != typed["digest"]:
            raise StaleError(
                f"{span.path}: these lines have changed since the page was made; load "
                "it again and choose them anew: what you typed is kept"
            )
        target = note_file(library.mine, upstream, TOPIC)
        name = free_id(library, target)
        entry = filled_entry(name, typed["kind"], library, upstream, span, typed)
        try:
            add_note(library, upstream, target, entry, book)
        except ContentError as error:
            raise ReaderkitError(_of_the_form(error, target)) from None
    page = addresses.href(addresses.source_page(upstream.name, span.path))
    return {"id": name, "page": f"{page}#{name}"}


def _of_the_form(error: ContentError, target: Path) -> str:
    """Return what is wrong; of what was just typed without a place that is nowhere."""
    before = text_before(target).count("\n")
    return "\n".join(
        fault.message
        if str(target).endswith(fault.file) and fault.line > before
        else str(fault)
        for fault in error.faults
    )
