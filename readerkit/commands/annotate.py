"""``readerkit annotate``: every anchor resolved; the notes in the terminal."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from readerkit.commands.options import book_option, json_option

if TYPE_CHECKING:
    from readerkit.book import Note, Sources
    from readerkit.commands.library import Library
    from readerkit.schema import Kind


@click.command()
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
    if upstream and not note_id and upstream in library.book.annotations:
        upstream, note_id = None, upstream
    if note_id:
        _show_one(library, upstream, note_id, lang, as_json)
        return
    chosen = [library.upstream(upstream)] if upstream else library.pinned()
    pages = []
    from readerkit.book import resolve_notes

    for each in chosen:
        if not upstream and not library.book.notes_on(each.name):
            continue
        sources = library.sources(each)
        pages.append((sources, resolve_notes(library.book, sources)))
    if update_lock:
        _update_lock(library, pages)
    elif check:
        _check(library, pages, whole=upstream is None)
    elif as_json:
        rows = [_plain(note, library) for _, notes in pages for note in notes]
        click.echo(json.dumps(rows, indent=1, ensure_ascii=False))
    else:
        for sources, notes in pages:
            _print_table(library, sources, notes)
    if not pages and not as_json:
        raise ReaderkitError("this book has no annotations")


def _print_schema(library: Library, kind: Kind) -> None:
    from readerkit.schema import json_schema

    written = library.book
    choices = {"concepts": written.concepts, "references": written.references}
    click.echo(json.dumps(json_schema(kind, **choices), indent=1, ensure_ascii=False))


def _print_table(library: Library, sources: Sources, notes: list[Note]) -> None:
    from readerkit.render.table import legend, note_table

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    upstream = sources.upstream
    if notes:
        click.echo(note_table(notes, width))
        click.echo()
    for line in legend(notes):
        click.echo(line)
    came_from = library.came_from(upstream)
    origin = f", from {came_from.origin}" if came_from else ""
    files = len({note.span.path for note in notes})
    kinds = [note.annotation.kind for note in notes]
    click.echo(
        f"{len(notes)} notes ({kinds.count('citation')} citations) in {files} of "
        f"{len(sources.paths)} files of {upstream.title} {upstream.tag}, "
        f"commit {upstream.commit[:12]}, verified{origin}"
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
        near = difflib.get_close_matches(
            note_id, library.book.annotations, n=3, cutoff=0.5
        )
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
        click.echo(json.dumps(_plain(note, library), indent=1, ensure_ascii=False))
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
    screen.rule(style="dim")
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
        "blob": library.book.locks[upstream.name].files.get(span.path),
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


def _update_lock(library: Library, pages: list[tuple[Sources, list[Note]]]) -> None:
    from readerkit.book import lock_notes
    from readerkit.commands.library import save_lock

    for sources, notes in pages:
        name = sources.upstream.name
        lock = lock_notes(library.book.locks[name], notes, sources)
        for path in save_lock(library, name, lock):
            click.echo(f"wrote {path}")
        click.echo(f"{name}: {len(notes)} anchors locked")


def _check(
    library: Library, pages: list[tuple[Sources, list[Note]]], *, whole: bool
) -> None:
    """Hold everything against the locks, mirrors and schemas included."""
    from readerkit.book import MINIS, check_mirrors, lock_differences, lock_notes
    from readerkit.errors import ContentError, LockError

    differences = []
    for sources, notes in pages:
        upstream = sources.upstream
        locked = library.book.locks[upstream.name]
        now = lock_notes(locked, notes, sources)
        differences += [
            f"{upstream.name}.lock: {line}"
            for line in lock_differences(locked, now, upstream.commit)
        ]
    if MINIS in library.book.upstreams and whole:
        faults = check_mirrors(library.book, library.sources(library.upstream(MINIS)))
        if faults:
            raise ContentError(faults)
    if differences:
        rows = "\n".join(differences)
        raise LockError(
            f"{rows}\nanchors and lock differ in {len(differences)} places: look at "
            "each, then readerkit annotate --update-lock"
        )
    for sources, notes in pages:
        open_reviews = [
            note.annotation.id for note in notes if note.state != "reviewed"
        ]
        click.echo(
            f"{sources.upstream.name}: {len(notes)} anchors are where the lock says"
        )
        if open_reviews:
            click.echo(f"  not reviewed against this code: {', '.join(open_reviews)}")
