"""``annotate --check`` and ``--update-lock``: anchors held against the locks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

from readerkit.annotations import Annotation, Concept
from readerkit.book import (
    MINIS,
    Book,
    Note,
    Sources,
    check_mirrors,
    lock_differences,
    lock_notes,
    resolve_each,
)
from readerkit.commands.evidence import read_records
from readerkit.commands.library import Library, save_lock
from readerkit.errors import ContentError, Fault, LockError, ReaderkitError
from readerkit.lit import unseen_events
from readerkit.translations import Translation
from readerkit.upstreams import Upstream
from readerkit.wording import counted

MAX_LISTED = 5

Page = tuple[Sources, list[Note]]


def resolved(library: Library, chosen: list[Upstream], *, mirrors: bool) -> list[Page]:
    """Return the notes of the chosen upstreams with their lines.

    Raises:
        ContentError: every anchor that does not resolve; with ``mirrors``, theirs too,
            and every event of theirs that no record shows.
        ReaderkitError: an upstream that has no lock.
    """
    pages: list[Page] = []
    faults: list[Fault] = []
    if mirrors and MINIS in library.book.upstreams:
        minis = library.sources(library.upstream(MINIS))
        faults += check_mirrors(library.book, minis)
        faults += unseen_events(library.book.mirrors.values(), read_records(library))
    for upstream in chosen:
        if not upstream.is_pinned:
            raise ReaderkitError(
                f"{upstream.name} is a folder of this book: it has no lock"
            )
        sources = library.sources(upstream)
        notes, wrong = resolve_each(library.book, sources)
        faults += wrong
        pages.append((sources, notes))
    if faults:
        raise ContentError(faults)
    return pages


def update_locks(
    library: Library, pages: list[Page], *, say: bool
) -> list[dict[str, Any]]:
    """Write what the anchors resolve to; return what was written, and where."""
    results = []
    for sources, notes in pages:
        name = sources.upstream.name
        lock = lock_notes(library.book.locks[name], notes, sources)
        paths = [str(path) for path in save_lock(library, name, lock)]
        results.append({"upstream": name, "anchors": len(notes), "wrote": paths})
        if say:
            for path in paths:
                click.echo(f"wrote {path}")
            click.echo(f"{name}: {counted(len(notes), 'anchor')} locked")
    return results


def check_locks(library: Library, pages: list[Page]) -> list[dict[str, Any]]:
    """Return for each upstream how its anchors differ from its lock."""
    results = []
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
                "translations_to_check": _behind(
                    library.book.notes_on(upstream.name),
                    library.book.translations,
                ),
            }
        )
    return results


def _behind(
    english: Iterable[Annotation | Concept],
    translations: Mapping[str, Mapping[str, Translation]],
) -> list[dict[str, str]]:
    """Return the translations that do not say that they are of today's English."""
    return [
        {"id": each.id, "language": language, "of": said.of, "now": each.stamp}
        for each in english
        for language, entries in sorted(translations.items())
        if (said := entries.get(each.id)) and said.of != each.stamp
    ]


def refuse_differences(results: list[dict[str, Any]]) -> None:
    """Raise LockError where something differs from a lock."""
    differences = [
        f"{result['upstream']}.lock: {line}"
        for result in results
        for line in result["differences"]
    ]
    if differences:
        rows = "\n".join(differences)
        raise LockError(
            f"{rows}\nanchors and lock differ in {counted(len(differences), 'place')}: "
            "look at each, then readerkit annotate --update-lock"
        )


def print_checked(result: dict[str, Any]) -> None:
    """Say that an upstream is as its lock says, and what nobody read yet."""
    name, unread = result["upstream"], result["not_reviewed"]
    click.echo(f"{name}: {counted(result['anchors'], 'anchor')}, all as the lock says")
    if unread:
        first = ", ".join(unread[:MAX_LISTED])
        more = len(unread) - MAX_LISTED
        rest = f" and {more} more: readerkit annotate {name}" if more > 0 else ""
        click.echo(f"  not reviewed against this code yet: {first}{rest}")
    behind = result["translations_to_check"]
    _print_behind(behind[:MAX_LISTED])
    if len(behind) > MAX_LISTED:
        others = counted(len(behind) - MAX_LISTED, "more translation")
        click.echo(f"  {others}: readerkit annotate {name} --check --json")


def check_concepts(book: Book) -> dict[str, Any]:
    """Return how many concepts there are, and of which a translation is outdated."""
    behind = _behind(book.concepts.values(), book.concept_translations)
    return {"concepts": len(book.concepts), "translations_to_check": behind}


def print_concepts_checked(result: dict[str, Any]) -> None:
    """Say of which concepts a translation is to be looked at."""
    if behind := result["translations_to_check"]:
        click.echo(f"concepts: {counted(len(behind), 'translation')} to check")
        _print_behind(behind)


def _print_behind(behind: list[dict[str, str]]) -> None:
    for each in behind:
        what = "the English changed since" if each["of"] else "of which English?"
        mend = f"once it says the same, write of: {each['now']}"
        click.echo(f"  {each['id']} ({each['language']}): {what}: {mend}")
