"""``readerkit annotate``: every anchor resolved; the notes in the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from readerkit.commands.options import book_option, json_option

if TYPE_CHECKING:
    from readerkit.book import Note, Sources
    from readerkit.commands.library import Library
    from readerkit.content.kind import Kind
    from readerkit.upstreams import Upstream

KINDS = (
    "annotations",
    "translation",
    "mirror",
    "concepts",
    "concept-translation",
    "references",
    "comparisons",
    "upstreams",
    "diagram",
    "diagram-translation",
    "paths",
    "route-translation",
)


@click.command(short_help="The notes, with every anchor resolved; one by its ID.")
@click.argument("upstream", required=False)
@click.argument("note_id", metavar="[ID]", required=False)
@click.option("--check", is_flag=True, help="Fail on anything wrong in the book.")
@click.option("--strict", is_flag=True, help="With --check: on unreviewed notes too.")
@click.option("--update-lock", is_flag=True, help="Write what anchors resolve to now.")
@click.option(
    "--schema",
    type=click.Choice(KINDS),
    help="Print the JSON Schema of such a file, with this book's ids, for an editor.",
)
@click.option("--lang", metavar="LANGUAGE", help="Show translated notes: es.")
@json_option
@book_option
def annotate(
    upstream: str | None,
    note_id: str | None,
    check: bool,
    strict: bool,
    update_lock: bool,
    schema: str | None,
    lang: str | None,
    as_json: bool,
    book: Path | None,
) -> None:
    """Resolve every anchor of UPSTREAM (or of all) and list the notes; show one by ID.

    \b
    Example:
        readerkit annotate megatron
        readerkit annotate megatron tp-row-forward
        readerkit annotate --check
    """
    from contextlib import nullcontext

    from readerkit.commands.library import open_library, writing
    from readerkit.errors import ReaderkitError

    if check and update_lock:
        raise click.UsageError("--check and --update-lock exclude each other")
    if strict and not check:
        raise click.UsageError("--strict is for --check: add it")
    if note_id and (check or update_lock):
        raise click.UsageError(
            "--check and --update-lock are for a whole upstream: leave out the ID"
        )
    if check:
        _check(upstream, book, strict=strict, as_json=as_json)
        return
    with writing() if update_lock else nullcontext():
        library = open_library(book, whole=update_lock)
        if schema:
            _print_schema(library, schema)
            return
        if upstream and not note_id:
            upstream, note_id = _named(upstream, library)
        if note_id:
            if update_lock:
                raise click.UsageError("--update-lock is for a whole upstream")
            _show_one(library, upstream, note_id, lang, as_json)
            return
        if lang:
            raise click.UsageError("--lang is for one note: add its ID")
        chosen = [library.upstream(upstream)] if upstream else _noted(library)
        if update_lock:
            from readerkit.commands.holding import update_locks

            results = update_locks(library, chosen, say=not as_json)
            if as_json:
                _print_json(results)
        else:
            _list(library, chosen, as_json)
        if not chosen and not as_json:
            raise ReaderkitError("this book has no annotations")


def _named(name: str, library: Library) -> tuple[str | None, str | None]:
    """Return the one name that was given as an upstream, or as a note's id."""
    from readerkit.errors import ReaderkitError

    if name in library.book.upstreams:
        return name, None
    if name in library.book.annotations:
        return None, name
    raise ReaderkitError(_neither(name, library))


def _noted(library: Library) -> list[Upstream]:
    """Return the pinned upstreams that have notes."""
    return [each for each in library.pinned() if library.book.notes_on(each.name)]


def _list(library: Library, chosen: list[Upstream], as_json: bool) -> None:
    """Print every note that resolves; the others are told at the end."""
    from readerkit.book import check_mirrors, resolve_each
    from readerkit.errors import ContentError, Fault

    faults: list[Fault] = []
    plain: list[dict[str, Any]] = []
    for each in chosen:
        with library.sources_to_list(each) as sources:
            notes, wrong = resolve_each(library.book, sources)
        faults += wrong
        faults += check_mirrors(
            library.book, {each.name: sources} if each.folder else {}
        )
        if as_json:
            plain += _plain_notes(library, sources, notes)
        else:
            _print_table(library, sources, notes)
    if as_json:
        _print_json(plain)
    if faults:
        raise ContentError(faults)


def _check(
    upstream: str | None, book: Path | None, *, strict: bool, as_json: bool
) -> None:
    """Hold a book, or one upstream of it; whatever is wrong is told at once."""
    from readerkit.commands.holding import Report, check, print_report
    from readerkit.commands.library import open_library
    from readerkit.errors import ReaderkitError

    report = Report()
    try:
        library = open_library(book, whole=True)
        if upstream in library.book.annotations:
            raise click.UsageError("--check is for a whole upstream: leave out the ID")
        chosen = library.upstream(upstream) if upstream else None
        check(library, chosen, report, strict=strict)
    except ReaderkitError as error:  # a book that cannot be opened has faults too
        report.add(error)
    if as_json:
        _print_json(report.to_plain())
    report.refuse()
    if not as_json:
        print_report(report)


def _print_schema(library: Library, kind: str) -> None:
    from readerkit.content.annotations import ANNOTATIONS
    from readerkit.content.diagrams import DIAGRAM
    from readerkit.content.kinds import BY_NAME
    from readerkit.content.mirrors import MIRROR
    from readerkit.content.reading_paths import PATHS
    from readerkit.content.schema import json_schema
    from readerkit.content.translations import (
        DIAGRAM_TRANSLATION,
        NOTE_TRANSLATION,
        PATH_TRANSLATION,
    )

    known: list[Kind[Any]] = [ANNOTATIONS, NOTE_TRANSLATION, MIRROR, *BY_NAME.values()]
    known += [DIAGRAM, DIAGRAM_TRANSLATION, PATHS, PATH_TRANSLATION]
    written = library.book
    choices = {"concepts": written.concepts, "references": written.references}
    of_kind = next(each for each in known if each.name == kind)
    _print_json(json_schema(of_kind, **choices))


def _print_json(value: Any) -> None:
    # In ASCII, so that a terminal's encoding can neither change it nor obey it.
    import json

    click.echo(json.dumps(value, indent=1))


def _neither(name: str, library: Library) -> str:
    """Return the message about a name that is no upstream and no note."""
    import difflib

    upstreams = library.book.upstreams
    known = [*upstreams, *library.book.annotations]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f": did you mean {' or '.join(near)}?" if near else ""
    return (
        f"unknown upstream or note: got '{name}', "
        f"expected one of {', '.join(upstreams)}, or the ID of a note{hint}"
    )


def _print_table(library: Library, sources: Sources, notes: list[Note]) -> None:
    import shutil

    from readerkit.render.table import legend, note_table

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    if notes:
        click.echo(note_table(notes, width))
        click.echo()
    for line in legend(notes):
        click.echo(line)
    click.echo(_summary(library, sources, notes))


def _summary(library: Library, sources: Sources, notes: list[Note]) -> str:
    """Return one line: how many notes, on what, and what was verified."""
    from readerkit.render.visible import visible_line
    from readerkit.wording import counted

    upstream = sources.upstream
    of_files = counted(len(sources.paths), "file")
    if not upstream.is_pinned:
        pin = f"{visible_line(upstream.title)} (a folder, read where it stands)"
    else:
        pin = visible_line(f"{upstream.title} {upstream.pin}")
    if not notes and upstream.folder:
        shown = counted(len(library.book.minis_in(upstream.name)), "place")
        return f"no notes on {pin}, {of_files}: mirrors show {shown} in them"
    if not notes:
        return f"no notes on {pin} ({of_files}) yet: readerkit note FILE:LINES"
    files = len({note.span.path for note in notes})
    kinds = [note.annotation.kind for note in notes]
    came_from = library.came_from(upstream)
    origin = f", from {visible_line(came_from.origin)}" if came_from else ""
    verified = f", verified{origin}" if upstream.is_pinned else ""
    return (
        f"{counted(len(notes), 'note')} "
        f"({counted(kinds.count('citation'), 'citation')}) "
        f"in {files} of {of_files} of {pin}{verified}"
    )


def _show_one(
    library: Library,
    upstream: str | None,
    note_id: str,
    lang: str | None,
    as_json: bool,
) -> None:
    import difflib

    from readerkit.book import resolve_notes
    from readerkit.errors import ReaderkitError

    if upstream:
        library.upstream(upstream)
    annotation = library.book.annotations.get(note_id)
    if annotation is None or (upstream and annotation.upstream != upstream):
        if annotation:
            raise ReaderkitError(
                f"{note_id} is a note on {annotation.upstream}: "
                f"readerkit annotate {annotation.upstream} {note_id}"
            )
        known = library.book.annotations.values()
        ids = [note.id for note in known if upstream in (None, note.upstream)]
        near = difflib.get_close_matches(note_id, ids, n=3, cutoff=0.6)
        hint = (
            f"did you mean {' or '.join(near)}?"
            if near
            else "list them: readerkit annotate"
        )
        where = f" on {upstream}" if upstream else ""
        raise ReaderkitError(f"no note{where} has the id '{note_id}': {hint}")
    if lang:
        _known_language(lang, library)
        translated = library.book.translated(annotation, lang)
        if not translated.texts:
            click.echo(f"(no {lang} text yet: this is the English one)", err=True)
        elif translated.is_outdated(annotation.stamp):
            click.echo(f"(the English changed after this {lang} text)", err=True)
        annotation = annotation.with_texts(translated.texts)
    sources = library.sources(library.upstream(annotation.upstream))
    [note] = resolve_notes(library.book, sources, [annotation])
    if as_json:
        [plain] = _plain_notes(library, sources, [note])
        _print_json(plain)
    else:
        from readerkit.commands.shown_note import show_note

        show_note(library, note, sources)


def _known_language(language: str, library: Library) -> None:
    from readerkit.errors import ReaderkitError

    known = sorted(library.book.translations)
    if language not in known:
        expected = f"expected one of {', '.join(known)}" if known else "there are none"
        raise ReaderkitError(
            f"--lang: this book has no translations into '{language}': {expected}"
        )


def _plain_notes(
    library: Library, sources: Sources, notes: list[Note]
) -> list[dict[str, Any]]:
    from readerkit.commands.evidence import lit_in, read_records

    records = read_records(library, sources.upstream.name)
    return [
        {
            **_plain(note, library),
            "lit": [x.to_plain() for x in lit_in(sources, note.span, records)],
        }
        for note in notes
    ]


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
        "anchor": annotation.anchor.to_yaml(),
        "written_at": f"{annotation.place.file}:{annotation.place.line}",
    }
