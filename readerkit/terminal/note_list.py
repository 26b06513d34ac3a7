"""The list of notes: which of them, as a table, as JSON, and what was verified."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from typing import Any

from readerkit.app.interface_translation import say_in
from readerkit.app.library import Library
from readerkit.app.mini_names import ALIASES
from readerkit.content.annotations import TEXT_FIELDS, Annotation
from readerkit.content.book import Book
from readerkit.content.resolved_notes import (
    Note,
    Sources,
    check_mirrors,
    resolve_each,
    resolve_notes,
)
from readerkit.errors import ContentError, ContentFault, ReaderkitError
from readerkit.model.language import Say
from readerkit.model.language import said as in_language
from readerkit.render.table import legend, note_rows, note_table
from readerkit.render.terminal_safe import visible_line
from readerkit.terminal.as_json import print_json
from readerkit.terminal.note_group import WORDS, Group
from readerkit.terminal.pager import show_paged
from readerkit.upstreams import Upstream
from readerkit.wording.meant_name import choose
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import counted


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which notes are asked for; whatever is empty asks for nothing."""

    group: Group | None = None
    concept: str = ""
    condition: str = ""
    topic: str = ""
    mini: str = ""
    kind: str = ""
    start: str = ""
    file: str = ""
    """A part of a path, or a pattern with ``*``."""
    text: str = ""
    """Words of a note, in any case."""

    @classmethod
    def parse(cls, given: Mapping[str, str | None], book: Book) -> Wanted:
        """Return the filters that options ask for, each name as the book has it.

        Raises:
            ReaderkitError: a concept, condition, topic or mini that no note has.
        """
        notes = book.annotations
        named: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
        known = {
            "concept": sorted({c for note in notes.values() for c in note.concepts}),
            "condition": sorted(book.conditions),
            "topic": sorted({note.topic for note in notes.values()}),
            "mini": sorted({m for name in notes for m in book.minis_beside(name)}),
        }
        for key, names in known.items():
            if key in named:
                short = ALIASES if key == "mini" else WORDS
                named[key] = choose(key, named[key], names, aliases=short)
        return cls(**named)

    def fits(self, note: Annotation, book: Book) -> bool:
        """Tell whether a note is one of those asked for."""
        minis = book.minis_beside(note.id)
        group, path = self.group, note.anchor.file
        in_group = group is None or (
            note.topic in group.topics
            or not {*note.concepts}.isdisjoint(group.concepts)
            or not {*minis}.isdisjoint(group.minis)
        )
        said = [note.id, note.title, *(getattr(note, name) for name in TEXT_FIELDS)]
        said += [each.says for each in note.also]
        return (
            in_group
            and self.concept in ("", *note.concepts)
            and (
                not self.condition
                or self.condition in {each.id for each in book.presumed_by(note)}
            )
            and self.topic in ("", note.topic)
            and self.mini in ("", *minis)
            and self.kind in ("", note.kind)
            and self.start in ("", *note.starts)
            and (self.file in path or fnmatch(path, self.file))
            and self.text.casefold() in "\n".join(said).casefold()
        )


def list_notes(
    library: Library,
    upstreams: list[Upstream],
    wanted: Wanted,
    *,
    as_json: bool,
    pager: bool,
    language: str = "en",
) -> None:
    """Print every note that is wanted and resolves; the others are told at the end.

    In another language a title without a translation is marked as English.

    Raises:
        ContentError: every anchor that does not resolve.
        ReaderkitError: no note that fits.
    """
    faults: list[ContentFault] = []
    found: list[dict[str, Any]] = []
    tables: list[str] = []
    is_all = wanted == Wanted()
    for each in upstreams:
        notes_on = library.book.notes_on(each.name)
        chosen = [note for note in notes_on if wanted.fits(note, library.book)]
        if not chosen and not is_all:
            continue
        with library.sources_to_list(each) as sources:
            notes, wrong = resolve_each(library.book, sources, chosen)
        faults += wrong
        if language != "en":
            notes = [_in_language(note, library.book, language) for note in notes]
        if each.folder and is_all:
            faults += check_mirrors(library.book, {each.name: sources})
        if as_json:
            found += plain_notes(library, sources, notes)
        elif notes or not wrong:
            tables.append(_table(library, sources, notes, say_in(language)))
    if as_json:
        print_json(found)
    elif tables:
        if wanted.group:
            tables.insert(0, _said(str(wanted.group)))
        show_paged("\n".join(tables), pager=pager, language=language)
    if faults:
        raise ContentError(faults)
    if not tables and not as_json:
        where = f" on {', '.join(each.name for each in upstreams)}" if upstreams else ""
        raise ReaderkitError(
            "this book has no annotations"
            if is_all
            else f"no note{where} fits all of that"
        )


def _said(line: str) -> str:
    """Return a sentence about the list: folded on a terminal, marked in a pipe."""
    if not sys.stdout.isatty():
        return f"# {line}"
    return textwrap.fill(line, shutil.get_terminal_size().columns)


def _in_language(note: Note, book: Book, language: str) -> Note:
    texts = dict(book.translated(note.annotation, language).texts)
    texts.setdefault("title", f"[en] {note.annotation.title}")
    return replace(note, annotation=note.annotation.with_texts(texts))


def _table(library: Library, sources: Sources, notes: list[Note], say: Say) -> str:
    """Return a table, what its marks mean, and what was verified; plain in a pipe."""
    below = [*legend(notes, say), _summary(library, sources, notes, say)]
    below = [_said(line) for line in below]
    if not sys.stdout.isatty():
        return "\n".join([*note_rows(notes), *below])
    table = note_table(notes, shutil.get_terminal_size().columns, say)
    return "\n".join([table, "", *below] if notes else below)


def _summary(library: Library, sources: Sources, notes: list[Note], say: Say) -> str:
    """Return one line: how many notes, on what, and what was verified."""
    upstream = sources.upstream
    of_files = _counted(len(sources.paths), "file", "files", say)
    if upstream.is_living:
        title, branch = visible_line(upstream.title), upstream.branch
        pin = say("{title} (the work tree, as it is now)").format(title=title)
        if branch:
            pin = say("{title} (branch {branch})").format(title=title, branch=branch)
    elif not upstream.is_pinned:
        title = visible_line(upstream.title)
        pin = say("{title} (a folder, read where it stands)").format(title=title)
    else:
        pin = visible_line(f"{upstream.title} {upstream.pin}")
    if not notes and upstream.folder:
        shown = _counted(
            len(library.book.minis_in(upstream.name)), "place", "places", say
        )
        none = say("no notes on {pin}, {files}: mirrors show {places} in them")
        return none.format(pin=pin, files=of_files, places=shown)
    if not notes:
        if sources.is_absent:
            return visible_line(in_language(upstream.not_fetched, say))
        none = say("no notes on {pin} ({files}) yet: {command}")
        return none.format(pin=pin, files=of_files, command=typed("note", "FILE:LINES"))
    kinds = [note.annotation.kind for note in notes]
    told = say("{notes} ({citations}) in {with_notes} of {files} of {pin}").format(
        notes=_counted(len(notes), "note", "notes", say),
        citations=_counted(kinds.count("citation"), "citation", "citations", say),
        with_notes=len({note.span.path for note in notes}),
        files=of_files,
        pin=pin,
    )
    came_from = library.came_from(upstream)
    if sources.is_absent:
        return f"{told}. {in_language(upstream.not_fetched, say)}"
    told += f", {say('verified')}" if upstream.is_pinned else ""
    if upstream.is_pinned and came_from:
        told += f", {say('from')} {visible_line(came_from.origin)}"
    return told


def _counted(number: int, one: str, several: str, say: Say) -> str:
    return counted(number, say(one), say(several))


def plain_notes(
    library: Library, sources: Sources, notes: list[Note]
) -> list[dict[str, Any]]:
    """Return notes as JSON has them, with what records show of their lines."""
    from readerkit.app.records import lit_in, read_records

    records = read_records(library, sources.upstream.name)
    return [
        {
            **_plain(note, library),
            "lit": [x.to_plain() for x in lit_in(sources, note.span, records)],
        }
        for note in notes
    ]


def asides_of(library: Library, note: Note) -> list[Note]:
    """Return the other lines that a note shows, where they stand."""
    return [
        found
        for aside in library.book.asides_of(note.annotation)
        for found in resolve_notes(
            library.book,
            library.sources(library.book.upstreams[aside.upstream]),
            [aside],
        )
    ]


def _plain_aside(aside: Note, library: Library) -> dict[str, Any]:
    said, span = aside.annotation, aside.span
    return {
        "says": said.title,
        "upstream": said.upstream,
        "symbol": aside.symbol,
        "path": span.path,
        "first": span.first,
        "last": span.last,
        "state": aside.state,
        "permalink": library.book.upstreams[said.upstream].permalink(span),
        "anchor": said.anchor.to_yaml(),
    }


def _plain(note: Note, library: Library) -> dict[str, Any]:
    annotation, span = note.annotation, note.span
    upstream = library.book.upstreams[annotation.upstream]
    lock = library.book.locks.get(upstream.name)
    return {
        "id": annotation.id,
        "upstream": annotation.upstream,
        "kind": annotation.kind,
        "title": annotation.title,
        "symbol": note.symbol,
        "path": span.path,
        "first": span.first,
        "last": span.last,
        "state": note.state,
        "minis": list(note.minis),
        "commit": upstream.commit,
        "blob": lock.files.get(span.path) if lock else None,
        "permalink": upstream.permalink(span),
        "decision": annotation.decision,
        "alternative": annotation.alternative,
        "why": annotation.why,
        "cost": annotation.cost,
        "text": annotation.text,
        "references": [
            {"key": citation.key, "section": citation.section}
            for citation in annotation.references
        ],
        "concepts": list(annotation.concepts),
        "starts": list(annotation.starts),
        "conditions": [each.id for each in library.book.presumed_by(annotation)],
        "also": [_plain_aside(each, library) for each in asides_of(library, note)],
        "anchor": annotation.anchor.to_yaml(),
        "written_at": f"{annotation.place.file}:{annotation.place.line}",
    }
