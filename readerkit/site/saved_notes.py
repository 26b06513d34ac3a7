"""The notes of a file that was just saved, before the whole site is made anew.

Whoever writes a note looks at its page. Most saves change the words of notes and no
more: those stand in the open page at once, while titles elsewhere, the search and
whatever else may follow from them wait for the build behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from readerkit.app.folders import read_at_most
from readerkit.content.annotations import ANNOTATIONS, Annotation
from readerkit.content.book import Book
from readerkit.content.kind import Document
from readerkit.content.parse_book import BookFile, as_noted, kind_of, read_strictly
from readerkit.content.translations import NOTE_TRANSLATION
from readerkit.errors import ReaderkitError
from readerkit.model import addresses
from readerkit.render.html.code_with_notes import notes_html
from readerkit.render.html.file_page import file_page
from readerkit.render.html.site_model import SiteModel
from readerkit.site.build import BuildCache
from readerkit.site.inputs import Inputs

NotesOfPages = dict[str, dict[str, str]]
"""By the address of a page and the id of a note: the note's HTML."""


def saved_notes(
    paths: Iterable[Path], inputs: Inputs, build_cache: BuildCache
) -> NotesOfPages:
    """Return the notes whose words changed in the file that was saved.

    None where several files were, or one of another kind, or with faults; nor a note
    whose lines changed, or that is new.
    """
    model, prover = build_cache.model, build_cache.prover
    assert model is not None and prover is not None  # built before it is served
    there = [path for path in paths if path.is_file()]
    if len(there) != 1:
        return {}
    try:
        if (file := _book_file(there[0], inputs)) is None:
            return {}
        book, changed = _with_file(model.book, file)
    except ReaderkitError:  # the build says what is wrong
        return {}
    notes, proofs = dict(model.notes), dict(model.proofs)
    for name in changed:
        notes[name] = replace(notes[name], annotation=book.annotations[name])
        proofs[name] = prover.held(book.annotations[name])
    told = replace(model, book=book, notes=notes, proofs=proofs, views={}, by_file={})
    return _of_pages(told, build_cache, changed)


def _of_pages(
    model: SiteModel, build_cache: BuildCache, changed: set[str]
) -> NotesOfPages:
    templates, site = build_cache.templates, build_cache.frame
    assert templates is not None and site is not None  # as above
    found: NotesOfPages = {}
    for name in changed:
        note = model.notes[name]
        file = note.annotation.upstream, note.span.path
        if (address := addresses.source_page(*file)) not in found:
            html = notes_html(templates, site, file_page(model, file))
            found[address] = {n: html[n].decode() for n in changed & html.keys()}
    return found


def _book_file(path: Path, inputs: Inputs) -> BookFile | None:
    """Return a file of the book or of the reader's own, as it is read; else None."""
    for root, mine in ((inputs.book, False), (inputs.mine, True)):
        if path.is_relative_to(root / "annotations") and path.suffix == ".yaml":
            data = read_at_most(path, None if mine else root)
            return BookFile(path.relative_to(root).as_posix(), data, mine=mine)
    return None


def _with_file(book: Book, file: BookFile) -> tuple[Book, set[str]]:
    """Return the book with what a file says now of notes there were, and their ids.

    Raises:
        ContentError: a file that is no YAML, or of no kind.
    """
    kind: Any = kind_of(file)
    document = read_strictly(file, kind)
    if document.faults:
        return book, set()
    if kind is ANNOTATIONS:
        notes = _annotations(book, file, document)
        return replace(book, annotations={**book.annotations, **notes}), {*notes}
    if kind is NOTE_TRANSLATION:
        language = file.path.split(".")[-2]
        known = book.translations.get(language, {})
        said = {str(key): entry for (key,), entry in document.entries.items()}
        said = {n: e for n, e in said.items() if n in known and known[n] != e}
        others = {**book.translations, language: {**known, **said}}
        return replace(book, translations=others), said.keys() & book.annotations.keys()
    return book, set()


def _annotations(
    book: Book, file: BookFile, document: Document[Annotation]
) -> Mapping[str, Annotation]:
    """Return the notes of a file that say other words of the same lines."""
    found = {}
    for entry in document.entries.values():
        note = as_noted(entry, file)
        known = book.annotations.get(note.id)
        if known and known != note and _lines_of(known) == _lines_of(note):
            found[note.id] = note
    return found


def _lines_of(note: Annotation) -> object:
    also = [(each.anchor, each.says) for each in note.also]
    return note.upstream, note.mine, note.anchor, also
