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
    from readerkit.document import Kind

MAX_LISTED = 5


@click.command(short_help="The notes, with every anchor resolved; one by its ID.")
@click.argument("upstream", required=False)
@click.argument("note_id", metavar="[ID]", required=False)
@click.option("--check", is_flag=True, help="Fail on any difference from the locks.")
@click.option("--update-lock", is_flag=True, help="Write what anchors resolve to now.")
@click.option(
    "--schema",
    type=click.Choice(["annotations", "translation", "mirror"]),
    help="Print the JSON Schema of such a file, with this book's ids, for an editor.",
)
@click.option("--lang", metavar="LANGUAGE", help="Show translated notes: es.")
@json_option
@book_option
def annotate(
    upstream: str | None,
    note_id: str | None,
    check: bool,
    update_lock: bool,
    schema: Kind | None,
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
    from readerkit.commands.library import open_library
    from readerkit.errors import ReaderkitError

    if check and update_lock:
        raise click.UsageError("--check and --update-lock exclude each other")
    library = open_library(book)
    if schema:
        _print_schema(library, schema)
        return
    if upstream and not note_id and upstream not in library.book.upstreams:
        if upstream not in library.book.annotations:
            raise ReaderkitError(_neither(upstream, library))
        upstream, note_id = None, upstream
    if note_id:
        if check or update_lock:
            raise click.UsageError(
                "--check and --update-lock are for a whole upstream: leave out the ID"
            )
        _show_one(library, upstream, note_id, lang, as_json)
        return
    if lang:
        raise click.UsageError("--lang is for one note: add its ID")
    chosen = [library.upstream(upstream)] if upstream else library.pinned()
    pages = []
    from readerkit.book import resolve_notes

    for each in chosen:
        if not upstream and not library.book.notes_on(each.name):
            continue
        if (check or update_lock) and not each.is_pinned:
            raise ReaderkitError(
                f"{each.name} is a folder of this book: it has no lock"
            )
        sources = library.sources(each)
        pages.append((sources, resolve_notes(library.book, sources)))
    if update_lock:
        _update_lock(library, pages, as_json)
    elif check:
        _check(library, pages, as_json, whole=upstream is None)
    elif as_json:
        _print_json([_plain(note, library) for _, notes in pages for note in notes])
    else:
        for sources, notes in pages:
            _print_table(library, sources, notes)
    if not pages and not as_json:
        raise ReaderkitError("this book has no annotations")


def _print_schema(library: Library, kind: Kind) -> None:
    from readerkit.schema import json_schema

    written = library.book
    choices = {"concepts": written.concepts, "references": written.references}
    _print_json(json_schema(kind, **choices))


def _print_json(value: Any) -> None:
    # In ASCII, so that a terminal's encoding can neither change it nor obey it.
    import json

    click.echo(json.dumps(value, indent=1))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


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
    from readerkit.render.visible import visible_line

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    upstream = sources.upstream
    if notes:
        click.echo(note_table(notes, width))
        click.echo()
    for line in legend(notes):
        click.echo(line)
    came_from = library.came_from(upstream)
    origin = f", from {visible_line(came_from.origin)}" if came_from else ""
    files = len({note.span.path for note in notes})
    kinds = [note.annotation.kind for note in notes]
    state = (
        f"{upstream.tag}, commit {upstream.commit[:12]}, verified{origin}"
        if upstream.is_pinned
        else "(a folder of this book, read where it stands)"
    )
    click.echo(
        f"{_count(len(notes), 'note')} ({_count(kinds.count('citation'), 'citation')}) "
        f"in {files} of {_count(len(sources.paths), 'file')} of "
        f"{visible_line(upstream.title)} {state}"
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
        texts = library.book.translations.get(lang, {}).get(note_id)
        if texts is None:
            click.echo(f"(no {lang} text yet: this is the English one)", err=True)
        annotation = annotation.with_texts(texts or {})
    sources = library.sources(library.upstream(annotation.upstream))
    [note] = resolve_notes(library.book, sources, [annotation])
    if as_json:
        _print_json(_plain(note, library))
    else:
        show_note(library, note, sources)


def show_note(library: Library, note: Note, sources: Sources) -> None:
    """Print one note with its lines, what is beside it, and its proof."""
    from readerkit.render.note_view import console, note_view, proof

    upstream = sources.upstream
    lock = library.book.locks.get(upstream.name)
    came_from = library.came_from(upstream)
    screen = console()
    screen.print(
        note_view(
            note,
            sources.file(note.span.path),
            library.book.references,
            width=screen.width,
            beside=_beside(library, note),
        )
    )
    # Rich falls back to ASCII only in rules that have a title.
    screen.rule(style="dim", characters="-" if screen.options.ascii_only else "─")
    blob = lock.files[note.span.path] if lock else ""
    origin = came_from.origin if came_from else "the cache"
    for row in proof(note, upstream, blob=blob, came_from=origin):
        screen.print(row, soft_wrap=True)


def _beside(library: Library, note: Note) -> list[Any]:
    """Return the mini lines that mirrors put beside a note."""
    from readerkit.book import MINIS

    sections = [
        (mirror, section)
        for mirror in library.book.mirrors.values()
        for section in mirror.sections
        if note.annotation.id in section.upstream and section.mini
    ]
    if not sections:
        return []
    minis = library.sources(library.upstream(MINIS))
    return [
        (
            f"the mini ({section.relation}): {section.title}",
            minis.file(anchor.file),
            minis.resolve(anchor),
        )
        for mirror, section in sections
        for anchor in section.mini
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


def _update_lock(
    library: Library, pages: list[tuple[Sources, list[Note]]], as_json: bool
) -> None:
    from readerkit.book import lock_notes
    from readerkit.commands.library import save_lock

    results = []
    for sources, notes in pages:
        name = sources.upstream.name
        lock = lock_notes(library.book.locks[name], notes, sources)
        paths = [str(path) for path in save_lock(library, name, lock)]
        results.append({"upstream": name, "anchors": len(notes), "wrote": paths})
        if not as_json:
            for path in paths:
                click.echo(f"wrote {path}")
            click.echo(f"{name}: {_count(len(notes), 'anchor')} locked")
    if as_json:
        _print_json(results)


def _check(
    library: Library,
    pages: list[tuple[Sources, list[Note]]],
    as_json: bool,
    *,
    whole: bool,
) -> None:
    """Hold everything against the locks, mirrors and schemas included."""
    from readerkit.book import MINIS, check_mirrors, lock_differences, lock_notes
    from readerkit.errors import ContentError, LockError

    if MINIS in library.book.upstreams and whole:
        faults = check_mirrors(library.book, library.sources(library.upstream(MINIS)))
        if faults:
            raise ContentError(faults)
    results: list[dict[str, Any]] = []
    for sources, notes in pages:
        upstream = sources.upstream
        locked = library.book.locks[upstream.name]
        now = lock_notes(locked, notes, sources)
        unread = [note.annotation.id for note in notes if note.state != "reviewed"]
        results.append(
            {
                "upstream": upstream.name,
                "anchors": len(notes),
                "differences": [*lock_differences(locked, now, upstream.commit)],
                "not_reviewed": unread,
            }
        )
    if as_json:
        _print_json(results)
    differences = [
        f"{result['upstream']}.lock: {line}"
        for result in results
        for line in result["differences"]
    ]
    if differences:
        rows = "\n".join(differences)
        raise LockError(
            f"{rows}\nanchors and lock differ in {_count(len(differences), 'place')}: "
            "look at each, then readerkit annotate --update-lock"
        )
    if not as_json:
        for result in results:
            _print_checked(**result)


def _print_checked(
    upstream: str, anchors: int, differences: list[str], not_reviewed: list[str]
) -> None:
    click.echo(f"{upstream}: {_count(anchors, 'anchor')}, all as the lock says")
    if not_reviewed:
        first = ", ".join(not_reviewed[:MAX_LISTED])
        more = len(not_reviewed) - MAX_LISTED
        rest = f" and {more} more: readerkit annotate {upstream}" if more > 0 else ""
        click.echo(f"  not reviewed against this code yet: {first}{rest}")
