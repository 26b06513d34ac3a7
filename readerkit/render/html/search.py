"""The search index: a script with every name, path, note, chapter and lab."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from readerkit.annotations import TEXT_FIELDS
from readerkit.render.html import addresses
from readerkit.render.html.chapter import Script
from readerkit.render.html.estimate_page import SECTIONS
from readerkit.render.html.lab_page import LabScript
from readerkit.render.html.notes import SPANISH
from readerkit.render.html.pages import Writing
from readerkit.render.html.shelf import Shelf
from readerkit.render.visible import visible

FILE = "search-index.js"


def search_index(shelf: Shelf, writing: Writing) -> bytes:
    """Return the script; it works from a file as well as from a server."""
    texts = [*_notes(shelf), *_ideas(shelf), *_chapters(writing.scripts)]
    texts += _labs(writing.labs)
    texts += _estimates() if writing.examples else ()
    data = {"texts": texts, "files": list(_files(shelf))}
    # ASCII, so that no character of a name can end a string or hide in it.
    packed = json.dumps(data, separators=(",", ":"))
    return f"readerkitIndex({packed});\n".encode()


def _notes(shelf: Shelf) -> Iterator[list[str]]:
    for name, note in shelf.notes.items():
        annotation = note.annotation
        page = addresses.source_page(annotation.upstream, note.span.path)
        body = " ".join(getattr(annotation, field) for field in TEXT_FIELDS)
        for texts in shelf.book.translations.values():
            body += " " + " ".join(texts.get(name, {}).values())
        spanish = shelf.book.translations.get(SPANISH, {}).get(name, {})
        place = f"{note.span.path}:{note.span.first}-{note.span.last}"
        title = visible(annotation.title.replace("`", ""))
        address = f"{addresses.href(page)}#{name}"
        yield [
            annotation.kind,
            title,
            visible(place),
            address,
            visible(f"{name} {body}"),
            visible(spanish.get("title", "").replace("`", "")),
        ]


def _ideas(shelf: Shelf) -> Iterator[list[str]]:
    for concept in shelf.book.concepts.values():
        page = f"{addresses.CONCEPTS}#{concept.id}"
        text = concept.summary
        for texts in shelf.book.concept_translations.values():
            text += " " + " ".join(texts.get(concept.id, {}).values())
        spanish = shelf.book.concept_translations.get(SPANISH, {}).get(concept.id, {})
        yield [
            "concept",
            visible(concept.title),
            concept.layer,
            page,
            visible(text),
            visible(spanish.get("title", "")),
        ]
    for mirror in shelf.book.mirrors.values():
        text = " ".join([mirror.idea, *(section.title for section in mirror.sections)])
        page = addresses.mirror_page(mirror.id)
        yield ["beside", visible(mirror.title), "side by side", page, visible(text)]


def _chapters(scripts: Iterable[Script]) -> Iterator[list[str]]:
    for script in scripts:
        yield _text("chapter", script, addresses.chapter_page(script.name))


def _labs(labs: Iterable[LabScript]) -> Iterator[list[str]]:
    for lab in labs:  # what its solution says is for after an attempt
        yield _text("lab", lab.problem, addresses.lab_page(lab.problem.name))


def _estimates() -> Iterator[list[str]]:
    for name, (title, about) in SECTIONS.items():
        page = f"{addresses.ESTIMATES}#{name}"
        yield ["estimate", title, "estimates", page, f"{name} {about}"]


def _text(kind: str, script: Script, page: str) -> list[str]:
    title = script.text.partition("\n")[0].removeprefix("# ")
    spanish = script.spanish.partition("\n")[0].removeprefix("# ")
    text = visible(script.text + " " + script.spanish)
    return [kind, visible(title), kind, page, text, visible(spanish)]


def _files(shelf: Shelf) -> Iterator[list[str]]:
    for file, sheet in shelf.sheets.items():
        page = addresses.href(addresses.source_page(*file))
        names = " ".join(
            f"{name}:{lines[0]}" for name, lines in sheet.names.defined.items()
        )
        yield [page, visible(file[1]), visible(names)]
