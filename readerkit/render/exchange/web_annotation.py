"""Notes as W3C Web Annotations: JSON-LD, with quotes that find their lines again.

Each body carries in its id which part of the note it is, so that what is read back is
the note; a program that does not know these ids sees an annotation like any other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from readerkit.content.annotations import TEXT_FIELDS
from readerkit.render.exchange.shared_note import SharedNote

CONTEXT = "http://www.w3.org/ns/anno.jsonld"
AROUND = 80
"""Characters before and after a quote that tell it from its equals."""


def web_annotations(title: str, notes: Iterable[SharedNote], language: str) -> bytes:
    """Return a collection of annotations, with all of them on its first page."""
    items = [annotation(note, language) for note in notes]
    collection = {
        "@context": CONTEXT,
        "id": "urn:readerkit:notes",
        "type": "AnnotationCollection",
        "label": title,
        "total": len(items),
        "first": {
            "id": "urn:readerkit:notes:page",
            "type": "AnnotationPage",
            "startIndex": 0,
            "items": items,
        },
    }
    return (json.dumps(collection, indent=1, ensure_ascii=False) + "\n").encode()


def annotation(note: SharedNote, language: str) -> dict[str, Any]:
    """Return one annotation; of a file that is not at hand, without its quote."""
    own, span = note.annotation, note.span
    found: dict[str, Any] = {
        "id": f"urn:readerkit:note:{own.id}",
        "type": "Annotation",
        "motivation": "describing",
        "body": [*_bodies(note, language)],
        "target": {
            "type": "SpecificResource",
            "source": source_of(note),
            "selector": [*_selectors(note)],
        },
    }
    if note.licence:
        found["target"]["rights"] = note.licence
    if link := note.upstream.permalink(span):
        found["via"] = link
    return found


def source_of(note: SharedNote) -> str:
    """Return the address of the file at its commit; its path, where it has none."""
    upstream, path = note.upstream, quote(note.span.path)
    if not (upstream.url and upstream.commit):
        return f"urn:readerkit:file:{upstream.name}/{path}"
    return f"{upstream.url}/blob/{upstream.commit}/{path}"


def _bodies(note: SharedNote, language: str) -> Iterator[dict[str, Any]]:
    own = note.annotation
    here = f"urn:readerkit:note:{own.id}"
    for name in ("title", *TEXT_FIELDS):
        if text := getattr(own, name):
            yield {
                "id": f"{here}:{name}",
                "type": "TextualBody",
                "purpose": "describing",
                "format": "text/markdown",
                "language": language,
                "value": text,
            }
    yield _tag(f"{here}:kind", own.kind)
    for concept in own.concepts:
        yield _tag(f"{here}:concept", concept)
    for each in own.references:
        yield {
            "id": f"{here}:reference:{each.key}:{quote(each.section)}",
            "type": "SpecificResource",
            "purpose": "linking",
            "source": note.works[each.key].url,
        }


def _tag(name: str, value: str) -> dict[str, Any]:
    return {"id": name, "type": "TextualBody", "purpose": "tagging", "value": value}


def _selectors(note: SharedNote) -> Iterator[dict[str, Any]]:
    if note.text is None:
        return
    start, end = note.extent
    yield {
        "type": "TextQuoteSelector",
        "exact": note.text[start:end],
        "prefix": note.text[max(start - AROUND, 0) : start],
        "suffix": note.text[end : end + AROUND],
    }
    yield {"type": "TextPositionSelector", "start": start, "end": end}
