"""Builds the reading site: gathers what pages are made of, and renders what changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

from readerkit.anchors import Span
from readerkit.anchors.xref.links import File, Link, Target
from readerkit.anchors.xref.names import Names
from readerkit.app import page_estimates_script
from readerkit.app.interface_translation import read_words
from readerkit.app.library import Library
from readerkit.app.page_questions import OwnAsked, questions_by_note, read_banks
from readerkit.app.read_writing import draw_diagram, read_writing
from readerkit.app.records import read_evidence, read_gpu_evidence, read_played
from readerkit.content.book import Book
from readerkit.content.resolved_notes import Note, Sources, check_mirrors, resolve_each
from readerkit.errors import ContentError, ContentFault
from readerkit.evidence.record import Record
from readerkit.evidence.relevance import homes, ran_lines
from readerkit.model import addresses
from readerkit.model.freshness import digest_all
from readerkit.model.git_names import BlobId, TreePath
from readerkit.render.html import quiz_rules, search, search_names
from readerkit.render.html.chapter_pieces import diagram_file
from readerkit.render.html.code import Drawn
from readerkit.render.html.drift_page import drift_feed
from readerkit.render.html.environment import Templates
from readerkit.render.html.notes import check_texts
from readerkit.render.html.page_order import make_way
from readerkit.render.html.pages import Page, Site, frame, pages
from readerkit.render.html.related_pages import Way
from readerkit.render.html.site_model import Sheet, SiteModel, join_names, make_sheet
from readerkit.render.html.words import Words
from readerkit.site.inputs import OUR_TOPS, Inputs
from readerkit.site.prover import Prover, open_prover, prove
from readerkit.system.children import heed_parent_alone
from readerkit.system.status import Status
from readerkit.upstreams.store import blob_id

SERVED_ONLY = {"live.js", "quiz.js", "run.js", "write.js"}
"""Scripts that ask a server, which a file has not."""
CHOICES = "theme/choices.js"  # all other scripts ask it for words
FEW_BYTES = 500_000
"""Below it, starting other processes costs more than they bring."""

Joined = tuple[
    dict[File, dict[tuple[str, str], Link]],
    dict[Target, list[Target]],
]


@dataclass(slots=True)
class BuildCache:
    """What one build leaves for the next in the same process."""

    sources: dict[str, tuple[Any, Sources]] = field(default_factory=dict)
    """By upstream: the blob ids of its files, and the files parsed so far."""
    sheets: dict[tuple[TreePath, BlobId], Sheet] = field(default_factory=dict)
    """By path and blob id."""
    joined: tuple[str, Joined] | None = None
    """The digest of all files, and the links between them."""
    records: dict[str, Record] = field(default_factory=dict)
    rendered: dict[str, tuple[Any, bytes]] = field(default_factory=dict)
    """By address: what a page is made of, and the page."""
    is_last: bool = False
    """Whether no other build follows, so that no page is kept."""
    prover: Prover | None = None
    templates: Templates | None = None
    model: SiteModel | None = None
    way: Way | None = None
    frame: Site | None = None
    """All of the last build."""

    def rendered_page(self, page: Page) -> bytes:
        """Return a page: the one of before, where it is made of the same."""
        if self.is_last:
            return page.render()
        known = self.rendered.get(page.address)
        if known is None or known[0] != page.made_of:
            known = self.rendered[page.address] = (page.made_of, page.render())
        return known[1]


Show = Callable[[str, int, int], None]
"""Says what is done, how much of it, and of how much."""
Files = dict[str, Callable[[], bytes]]
"""By address, what gives each file of the site when somebody asks."""


def make_site(
    library: Library,
    inputs: Inputs,
    build_cache: BuildCache,
    content_id: str = "",
    status: Status | None = None,
    own_asked: OwnAsked = MappingProxyType({}),
) -> Files:
    """Return every file of a book's site; each note is checked, no page rendered yet.

    A build_cache that makes it again needs the digest of the content from before the
    library was opened: what is written meanwhile belongs to the next build. With
    ``own_asked`` pages ask the reader about these figures, too.

    Raises:
        ContentError: a note, a mirror, a formula or a diagram that does not hold.
    """
    show = status.show if status else _say_nothing
    show("site: reading the book and its upstreams", 0, 0)
    sources = open_sources(library, build_cache)
    show("site: resolving notes and names", 0, 0)
    content_id = content_id or digest_all({**inputs.content(), **inputs.served()})
    model = make_site_model(library, sources, build_cache, content_id, show)
    show("site: reading chapters and diagrams", 0, 0)
    check_texts(model.notes.values(), model.book)
    writing = read_writing(library, sources, own_asked)
    build_cache.model = model
    build_cache.way = way = make_way(model, writing, build_cache.way)
    build_cache.frame = site = frame(model, writing)
    templates = _templates(inputs, build_cache, model.words)
    files: Files = {
        page.address: partial(build_cache.rendered_page, page)
        for page in pages(model, templates, writing, way, site)
    }
    for kept in writing.drifts:
        feed = addresses.drift_feed(kept.upstream)
        files[feed] = partial(drift_feed, model, kept)
    files[search.FILE] = partial(search.search_index, model, writing)
    files[search_names.FILE] = partial(search_names.names_index, model)
    drawn = [each for d in writing.diagrams.values() for each in (d, d.spanish)]
    drawings = list(filter(None, drawn))
    for done, diagram in enumerate(drawings):
        show("site: drawing diagrams", done, len(drawings))
        for theme in ("light", "dark"):
            image = draw_diagram(library, diagram, theme)
            files[diagram_file(diagram.name, theme)] = partial(bytes, image)
    for path in inputs.below("theme"):
        if path.name not in SERVED_ONLY:
            files[f"theme/{path.name}"] = path.read_bytes
    if CHOICES in files:
        files[CHOICES] = partial(model.words.before, files[CHOICES])
    if writing.examples:
        files[page_estimates_script.FILE] = page_estimates_script.estimates_script
    if writing.phases:
        files[quiz_rules.FILE] = partial(_quiz_rules, inputs, model.words)
    for path in inputs.records():
        files[addresses.record_file(path.stem)] = path.read_bytes
    return files


def _quiz_rules(inputs: Inputs, words: Words) -> bytes:
    scripts = [p.read_text("utf-8") for p in inputs.below("theme") if p.suffix == ".js"]
    return quiz_rules.quiz_rules(scripts, words)


def _say_nothing(doing: str, done: int, of: int) -> None:
    """Serve whoever builds again and again: there is nobody who waits."""


def _templates(inputs: Inputs, build_cache: BuildCache, words: Words) -> Templates:
    texts = {path.name: path.read_text("utf-8") for path in inputs.below("templates")}
    known = build_cache.templates
    if known is None or (known.texts, known.words) != (texts, words):
        are_ours = inputs.site.resolve() in (top.resolve() / "site" for top in OUR_TOPS)
        known = build_cache.templates = Templates(texts, words, are_ours=are_ours)
    return known


def open_sources(library: Library, build_cache: BuildCache) -> dict[str, Sources]:
    """Return the upstreams that the site shows: whose lines notes show, the minis."""
    book = library.book
    sources = {}
    for upstream in book.upstreams.values():
        if not (book.anchored_in(upstream.name) or not upstream.is_pinned):
            continue
        opened = library.sources(upstream)
        if upstream.is_pinned:
            same: Any = dict(library.lock(upstream).files)
            same = {} if opened.is_absent else same
        else:
            same = {path: opened.read(path) for path in opened.paths}
        known = build_cache.sources.get(upstream.name)
        if known is None or known[0] != same:
            known = build_cache.sources[upstream.name] = (same, opened)
        sources[upstream.name] = known[1]
    return sources


def make_site_model(
    library: Library,
    sources: Mapping[str, Sources],
    build_cache: BuildCache,
    content_id: str,
    show: Show,
) -> SiteModel:
    """Return everything that pages are made of.

    Raises:
        ContentError: every note and mirror that does not resolve.
    """
    book = library.book
    notes, other_lines = _notes(library, sources)
    sheets, links_id = make_sheets(sources, build_cache, show)
    if build_cache.joined is None or build_cache.joined[0] != links_id:
        build_cache.joined = (links_id, join_names(sheets))
    links, uses = build_cache.joined[1]
    links = dict(links)
    absent = {n: s.upstream.not_fetched for n, s in sources.items() if s.is_absent}
    for note in notes.values():  # they have a page, with nothing but notes on it
        if note.annotation.upstream in absent:
            file = note.annotation.upstream, note.span.path
            sheets[file], links[file] = Sheet(Drawn(), Names()), {}
    evidence = read_evidence(library, build_cache.records)
    spanish, banks = read_words(), read_banks(library.root)
    known = build_cache.prover.proofs if build_cache.prover else {}
    prover = build_cache.prover = open_prover(library, sources, links_id, known)
    return SiteModel(
        book=book,
        sheets=sheets,
        links=links,
        uses=uses,
        notes=notes,
        mirrored=dict(_mirrored(book, sources)),
        evidence=evidence,
        ran=ran_lines(evidence.values()),
        strips={
            name: addresses.mirror_page(mirror.id)
            for name, mirror in homes(book.mirrors.values(), evidence).items()
        },
        origins={
            name: came.public if (came := library.came_from(each.upstream)) else ""
            for name, each in sources.items()
        },
        on_gpus=read_gpu_evidence(library, build_cache.records),
        other_lines=other_lines,
        absent=absent,
        asked=questions_by_note(banks),
        played=read_played(library),
        words=Words(spanish.all, spanish.scripts, spanish.records),
        proofs=prove(library, banks, prover),
        links_id=links_id,
        content_id=content_id,
    )


def _notes(
    library: Library, sources: Mapping[str, Sources]
) -> tuple[dict[str, Note], dict[str, Note]]:
    """Return the notes, and the other lines that they show, by id."""
    found: dict[str, Note] = {}
    faults: list[ContentFault] = []
    for name, each in sources.items():
        anchored = library.book.anchored_in(name)
        notes, wrong = resolve_each(library.book, each, anchored)
        found |= {note.annotation.id: note for note in notes}
        faults += wrong
    folders = {name: each for name, each in sources.items() if each.upstream.folder}
    faults += check_mirrors(library.book, folders)
    if faults:
        raise ContentError(faults)
    asides = {name: found.pop(name) for name in found.keys() - library.book.annotations}
    return found, asides


def make_sheets(
    sources: Mapping[str, Sources], build_cache: BuildCache, show: Show
) -> tuple[dict[File, Sheet], str]:
    """Return a sheet for each file, and a digest of all of them.

    They are made on all cores where there is much to do.
    """
    wanted: dict[File, tuple[TreePath, BlobId]] = {}
    todo: dict[tuple[TreePath, BlobId], bytes] = {}
    for name, each in sources.items():
        known = build_cache.sources[name][0]
        for path in sorted(each.paths) if not each.is_absent else ():
            is_blob = isinstance(known[path], str)
            blob = known[path] if is_blob else blob_id(known[path])
            wanted[name, path] = (path, blob)
            if (path, blob) not in build_cache.sheets:
                todo[path, blob] = each.read(path)
    for done, (key, sheet) in enumerate(_made(todo)):
        show("site: reading names in files", done, len(todo))
        build_cache.sheets[key] = sheet
    files = {f"{name}: {path}": blob for (name, path), (_, blob) in wanted.items()}
    sheets = {file: build_cache.sheets[key] for file, key in wanted.items()}
    return sheets, digest_all(files)


def _made(
    todo: Mapping[tuple[TreePath, BlobId], bytes],
) -> Iterator[tuple[tuple[TreePath, BlobId], Sheet]]:
    paths = [path for path, _ in todo]
    cores = min(os.cpu_count() or 1, 8)
    if cores == 1 or sum(map(len, todo.values())) < FEW_BYTES:
        yield from zip(todo, map(make_sheet, paths, todo.values()), strict=True)
        return
    with ProcessPoolExecutor(cores, initializer=heed_parent_alone) as pool:
        sheets = pool.map(make_sheet, paths, todo.values(), chunksize=16)
        yield from zip(todo, sheets, strict=True)


def _mirrored(
    book: Book, sources: Mapping[str, Sources]
) -> Iterator[tuple[tuple[str, int], tuple[Span, ...]]]:
    for mirror in book.mirrors.values():
        for index, section in enumerate(mirror.sections):
            homes = (sources[book.home_of(anchor.file)] for anchor in section.mini)
            spans = zip(homes, section.mini, strict=True)
            yield (
                (mirror.id, index),
                tuple(home.resolve(anchor) for home, anchor in spans),
            )
