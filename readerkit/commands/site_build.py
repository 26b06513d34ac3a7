"""Builds the reading site: gathers what pages are made of, renders, publishes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from readerkit.anchors import Span
from readerkit.annotations import Mirror
from readerkit.book import MINIS, Note, Sources, check_mirrors, resolve_notes
from readerkit.commands.evidence import read_evidence
from readerkit.commands.folders import PACKAGE
from readerkit.commands.library import Library
from readerkit.commands.site_disk import publish
from readerkit.commands.site_pages import draw_diagram, read_writing
from readerkit.errors import ContentError, Fault
from readerkit.evidence import comparisons_of, ran_lines
from readerkit.links import File
from readerkit.render.html import addresses, search
from readerkit.render.html.chapter import diagram_file
from readerkit.render.html.environment import Templates
from readerkit.render.html.pages import pages
from readerkit.render.html.shelf import Origin, Sheet, Shelf, join_names, make_sheet
from readerkit.upstreams.store import blob_id

FEW_BYTES = 500_000
"""Below it, starting other processes costs more than they bring."""


@dataclass(frozen=True, slots=True)
class Built:
    """What a build did."""

    site: Path
    pages: int
    written: int


@dataclass(slots=True)
class Workshop:
    """What one build leaves for the next in the same process."""

    sheets: dict[tuple[str, str], Sheet] = field(default_factory=dict)
    """By path and blob id."""


def site_folder(library: Library) -> Path:
    """Return the folder with templates, theme and pages: the book's, or the shipped."""
    for root in (library.root, PACKAGE / "data", PACKAGE.parent):
        if (root / "site" / "templates").is_dir():
            return root / "site"
    raise ContentError([])


def build(library: Library, output: Path, workshop: Workshop | None = None) -> Built:
    """Build the site of a book into a folder.

    Raises:
        ContentError: a note, a mirror or a formula that does not hold.
        StoreError: a disk that cannot be written.
    """
    workshop = workshop or Workshop()
    sources = open_sources(library)
    shelf = make_shelf(library, sources, workshop)
    folder = site_folder(library)
    templates = Templates(
        {p.name: p.read_text("utf-8") for p in (folder / "templates").iterdir()}
    )
    writing = read_writing(library, folder, sources)
    files = {page.address: page.render() for page in pages(shelf, templates, writing)}
    count = len(files)
    files[search.FILE] = search.search_index(shelf, writing.scripts)
    for diagram in writing.diagrams.values():
        for theme in ("light", "dark"):
            image = draw_diagram(library, diagram, theme)
            files[diagram_file(diagram.name, theme)] = image
    for path in sorted((folder / "theme").iterdir()):
        files[f"theme/{path.name}"] = path.read_bytes()
    for name, each in shelf.evidence.items():
        files[addresses.record_file(name)] = each.record.to_text().encode()
    written = publish(output, files, ())
    return Built(output, count, len(written))


def open_sources(library: Library) -> dict[str, Sources]:
    """Return the upstreams that the site shows: those with notes, and the minis."""
    book = library.book
    return {
        upstream.name: library.sources(upstream)
        for upstream in book.upstreams.values()
        if book.notes_on(upstream.name) or upstream.folder
    }


def make_shelf(
    library: Library, sources: dict[str, Sources], workshop: Workshop
) -> Shelf:
    """Return everything that pages are made of.

    Raises:
        ContentError: every note and mirror that does not resolve.
    """
    book = library.book
    notes: dict[str, Note] = {}
    faults: list[Fault] = []
    for each in sources.values():
        try:
            for note in resolve_notes(book, each):
                notes[note.annotation.id] = note
        except ContentError as error:
            faults += error.faults
    if MINIS in sources:
        faults += check_mirrors(book, sources[MINIS])
    if faults:
        raise ContentError(faults)
    sheets = make_sheets(sources.values(), workshop)
    links, uses = join_names(sheets)
    evidence = read_evidence(library)
    return Shelf(
        book=book,
        sheets=sheets,
        links=links,
        uses=uses,
        notes=notes,
        mirrored=dict(_mirrored(book.mirrors.values(), sources)),
        evidence=evidence,
        ran=ran_lines(evidence.values()),
        strips={
            name: addresses.mirror_page(mirror.id)
            for mirror in book.mirrors.values()
            for name in comparisons_of(mirror, evidence)
        },
        origins={
            name: Origin(
                came.origin if (came := library.came_from(each.upstream)) else "", ""
            )
            for name, each in sources.items()
        },
    )


def make_sheets(sources: Iterable[Sources], workshop: Workshop) -> dict[File, Sheet]:
    """Return a sheet for each file, made on all cores where there is much to do."""
    wanted: dict[File, tuple[str, bytes]] = {}
    for each in sources:
        for path in sorted(each.paths):
            data = each.read(path)
            wanted[each.upstream.name, path] = (blob_id(data), data)
    todo = {
        (path, blob): data
        for (_, path), (blob, data) in wanted.items()
        if (path, blob) not in workshop.sheets
    }
    for key, sheet in _made(todo):
        workshop.sheets[key] = sheet
    return {file: workshop.sheets[file[1], blob] for file, (blob, _) in wanted.items()}


def _made(
    todo: dict[tuple[str, str], bytes],
) -> Iterator[tuple[tuple[str, str], Sheet]]:
    paths = [path for path, _ in todo]
    cores = min(os.cpu_count() or 1, 8)
    if cores == 1 or sum(map(len, todo.values())) < FEW_BYTES:
        yield from zip(todo, map(make_sheet, paths, todo.values()), strict=True)
        return
    with ProcessPoolExecutor(cores) as pool:
        sheets = pool.map(make_sheet, paths, todo.values(), chunksize=16)
        yield from zip(todo, sheets, strict=True)


def _mirrored(
    mirrors: Iterable[Mirror], sources: dict[str, Sources]
) -> Iterator[tuple[tuple[str, int], tuple[Span, ...]]]:
    for mirror in mirrors:
        for index, section in enumerate(mirror.sections):
            spans = tuple(sources[MINIS].resolve(anchor) for anchor in section.mini)
            yield (mirror.id, index), spans
