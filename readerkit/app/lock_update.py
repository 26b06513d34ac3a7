"""``annotate --update-lock`` and ``review``: what anchors resolve to now, kept."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from readerkit.app.check_claims import claimed_upstreams, hold_claims
from readerkit.app.folders import is_own
from readerkit.app.library import Library
from readerkit.content.annotations import Annotation
from readerkit.content.resolved_notes import (
    Note,
    Sources,
    lock_notes,
    resolve_each,
    resolve_notes,
)
from readerkit.errors import ContentError, ContentFault, WrongUseError
from readerkit.model.anchor import Span
from readerkit.upstreams import Lock, Upstream
from readerkit.upstreams.book_repository import author_of, head_of, top_of
from readerkit.upstreams.store import write_atomically
from readerkit.wording.numbers import counted

Page = tuple[Sources, list[Note]]


def to_lock(library: Library, name: str | None) -> list[Upstream]:
    """Return the upstream that was named, else each whose code a book is held against.

    Raises:
        ReaderkitError: it is a folder.
    """
    book = library.book
    if name:
        chosen = library.upstream(name)
        if not chosen.is_locked:
            raise WrongUseError(f"{name} is a folder of this book: it has no lock")
        return [chosen]
    locked = {
        *(
            each
            for each in claimed_upstreams(library)
            if each in book.locks or book.upstreams[each].is_living
        ),
        *filter(book.anchored_in, book.upstreams),
        # What a lock holds of notes that are gone goes with them.
        *(name for name, lock in book.locks.items() if lock.anchors),
    }
    return [each for name, each in book.upstreams.items() if name in locked]


def update_locks(
    library: Library, chosen: list[Upstream], *, say: bool
) -> list[dict[str, Any]]:
    """Write what the anchors resolve to; return what was written, and where.

    Raises:
        ContentError: every anchor that does not resolve; nothing is written then.
        ReaderkitError: no source could serve an upstream.
    """
    pages: list[Page] = []
    faults: list[ContentFault] = []
    for upstream in chosen:
        anchored = library.book.anchored_in(upstream.name)
        with library.sources_to_hold(upstream) as sources:
            notes, wrong = resolve_each(library.book, sources, anchored)
        faults += wrong
        pages.append((sources, notes))
    held = hold_claims(library, chosen[0] if len(chosen) == 1 else None)
    faults += held.faults()
    if faults:
        raise ContentError(faults)
    results = []
    for sources, notes in pages:
        name, anchors = sources.upstream.name, counted(len(notes), "anchor")
        paths = []
        said = f"{name}: {anchors} found; a folder has no lock"
        if sources.is_absent:
            said = f"{name}: {anchors} left as locked. {sources.upstream.not_fetched}"
        elif sources.upstream.is_locked:
            lock = lock_notes(library.lock(sources.upstream), notes, sources)
            lock = lock.with_claims(held.to_lock(name))
            paths = [str(path) for path in save_lock(library, name, lock)]
            claims = f" and {counted(len(lock.claims), 'claim')}" if lock.claims else ""
            said = f"{name}: {anchors}{claims} locked"
        results.append({"upstream": name, "anchors": len(notes), "wrote": paths})
        if say:
            for path in paths:
                click.echo(f"wrote {path}")
            click.echo(said)
    return results


def lock_as_read(
    library: Library, notes: Iterable[Annotation], by: str = ""
) -> dict[str, Span]:
    """Write that a person read some notes against their code; return their places.

    With a note go its other lines; what stands in a folder has no lock. Who it was is
    told by the git of the book, where nobody is named.
    """
    top = top_of(library.root)
    by, day = by or author_of(top), time.strftime("%Y-%m-%d")
    book = library.book
    found: dict[str, Span] = {}
    asked = [each for note in notes for each in (note, *book.asides_of(note))]
    for name in dict.fromkeys(each.upstream for each in asked):
        upstream = book.upstreams[name]
        if not upstream.is_locked:
            continue
        sources, lock = library.sources(upstream), library.lock(upstream)
        at = head_of(top) if upstream.is_living else ""
        chosen = [each for each in asked if each.upstream == name]
        others = {key: lock.anchors[key] for key in lock.anchors}
        for each in chosen:  # what they were read against before is over
            others.pop(each.id, None)
        notes_now = resolve_notes(book, sources, chosen)
        fresh = lock_notes(lock.with_anchors(others), notes_now, sources)
        read = {
            key: replace(anchor, reviewed=anchor.fingerprint.code, by=by, on=day, at=at)
            for key, anchor in fresh.anchors.items()
        }
        save_lock(library, name, lock.with_anchors({**lock.anchors, **read}))
        found |= {key: anchor.span for key, anchor in read.items()}
    return found


def save_lock(library: Library, upstream: str, lock: Lock) -> list[Path]:
    """Write a lock: the book's part to the book, the overlay's to the overlay."""
    file = library.mine / "annotations" / f"{upstream}.lock"
    before = Lock.parse(file.read_text("utf-8"), str(file)) if file.is_file() else None
    notes = library.book.anchored_in(upstream)
    # Of the overlay are its notes, and what it locked of those that were left out.
    mine = {*before.anchors} - {a.id for a in notes} if before else set()
    mine |= {a.id for a in notes if a.mine}
    own = {key: anchor for key, anchor in lock.anchors.items() if key in mine}
    shared = {key: anchor for key, anchor in lock.anchors.items() if key not in mine}
    paths = _write_lock(library.root, upstream, lock.with_anchors(shared))
    if own or before:
        only_mine = Lock(lock.commit).with_anchors(own)
        paths += _write_lock(library.mine, upstream, only_mine)
    return paths


def _write_lock(root: Path, upstream: str, lock: Lock) -> list[Path]:
    path = root / "annotations" / f"{upstream}.lock"
    data = lock.to_text().encode()
    if path.is_file() and path.read_bytes() == data:
        return []
    write_atomically(path, data, private=is_own(path))
    return [path]
