"""The search index: a script with every name and path, and all that people wrote."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from readerkit.content.annotations import TEXT_FIELDS
from readerkit.content.reading_paths import ReadingPaths
from readerkit.content.scripts import Script
from readerkit.model import addresses
from readerkit.model.language import SPANISH
from readerkit.render.html.estimate_page import SECTIONS
from readerkit.render.html.lab_page import LabScript
from readerkit.render.html.pages import Writing, menu, tree_items
from readerkit.render.html.quiz_page import BankView
from readerkit.render.html.site_model import SiteModel
from readerkit.render.terminal_safe import visible

FILE = "search-index.js"


def search_index(model: SiteModel, writing: Writing) -> bytes:
    """Return the script; it works from a file as well as from a server."""
    texts = [*_notes(model), *_ideas(model), *_chapters(writing.scripts)]
    texts += _labs(writing.labs)
    texts += _estimates() if writing.examples else ()
    texts += [*_quiz(writing.phases), *_symptoms(writing.routes)]
    texts += [*_works(model), *_pages(model, writing)]
    data = {"texts": texts, "files": list(_files(model))}
    # ASCII, so that no character of a name can end a string or hide in it.
    packed = json.dumps(data, separators=(",", ":"))
    return f"readerkitIndex({packed});\n".encode()


def _notes(model: SiteModel) -> Iterator[list[str]]:
    for name, note in model.notes.items():
        annotation = note.annotation
        page = addresses.source_page(annotation.upstream, note.span.path)
        body = " ".join(getattr(annotation, field) for field in TEXT_FIELDS)
        for language in model.book.translations:
            translated = model.book.translated(annotation, language)
            body += " " + " ".join(translated.texts.values())
        spanish = model.book.translated(annotation, SPANISH)
        folder = note.span.path.rpartition("/")[0]
        lines = addresses.lines_text(note.span.path, note.span.first, note.span.last)
        place = f"{folder}/{lines}".removeprefix("/")
        title = visible(annotation.title.replace("`", ""))
        address = f"{addresses.href(page)}#{name}"
        yield [
            annotation.kind,
            title,
            visible(place),
            address,
            visible(f"{name} {body}"),
            visible(spanish.texts.get("title", "").replace("`", "")),
        ]


def _ideas(model: SiteModel) -> Iterator[list[str]]:
    for concept in model.book.concepts.values():
        page = f"{addresses.CONCEPTS}#{concept.id}"
        text = concept.summary
        for language in model.book.concept_translations:
            translated = model.book.translated(concept, language)
            text += " " + " ".join(translated.texts.values())
        spanish = model.book.translated(concept, SPANISH)
        yield [
            "concept",
            visible(concept.title),
            concept.layer,
            page,
            visible(text),
            visible(spanish.texts.get("title", "")),
        ]
    for mirror in model.book.mirrors.values():
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


def _quiz(phases: Iterable[BankView]) -> Iterator[list[str]]:
    for phase in phases:
        title = visible(phase.title)
        goals = " ".join(visible(objective) for objective, _ in phase.objectives)
        yield ["quiz", title, "quiz", phase.page, goals]
        for each in phase.topics:
            topic = visible(each.topic)
            page = f"{phase.page}#topic-{topic.replace(' ', '_')}"
            yield ["quiz", topic, title, page, each.command]


def _symptoms(routes: ReadingPaths) -> Iterator[list[str]]:
    for each in routes.failures:
        page = f"{addresses.PATHS}#failure"
        yield ["symptom", visible(each.symptom), "paths", page, visible(each.cause)]


def _works(model: SiteModel) -> Iterator[list[str]]:
    for work in model.book.references.values():
        page = f"{addresses.REFERENCES}#{work.key}"
        where = f"{work.authors}, {work.year}"
        text = " ".join([work.key, work.authors, *work.sections.values()])
        yield ["reference", visible(work.title), visible(where), page, visible(text)]


def _pages(model: SiteModel, writing: Writing) -> Iterator[list[str]]:
    items = {item.page: item for item in (*menu(model, writing), *tree_items(model))}
    for item in items.values():
        spanish = model.words.phrases.get(item.label, "")
        page = addresses.href(item.page)
        yield ["page", visible(item.label), item.page, page, "", spanish]


def _text(kind: str, script: Script, page: str) -> list[str]:
    title = script.text.partition("\n")[0].removeprefix("# ")
    spanish = script.spanish.partition("\n")[0].removeprefix("# ")
    text = visible(script.text + " " + script.spanish)
    return [kind, visible(title), kind, page, text, visible(spanish)]


def _files(model: SiteModel) -> Iterator[list[str]]:
    for file, sheet in model.sheets.items():
        page = addresses.href(addresses.source_page(*file))
        names = " ".join(
            f"{name}:{line}"
            for name, lines in sheet.names.defined.items()
            for line in lines
        )
        yield [page, visible(file[1]), visible(names)]
