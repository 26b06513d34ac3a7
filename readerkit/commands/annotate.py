"""``readerkit annotate``: every anchor resolved; the notes in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from readerkit.commands.options import (
    book_option,
    json_option,
    lang_option,
    pager_option,
)
from readerkit.errors import ReaderkitError
from readerkit.terminal.as_json import print_json
from readerkit.terminal.completing import names
from readerkit.wording.meant_name import choose, matches, near_names
from readerkit.wording.next_command import typed

if TYPE_CHECKING:
    from readerkit.app.library import Library
    from readerkit.content.annotations import Annotation
    from readerkit.terminal.note_list import Group

KINDS = {
    "annotations": "annotations.ANNOTATIONS",
    "translation": "translations.NOTE_TRANSLATION",
    "mirror": "mirrors.MIRROR",
    "mirror-translation": "translations.MIRROR_TRANSLATION",
    "concepts": "annotations.CONCEPTS",
    "concept-translation": "translations.CONCEPT_TRANSLATION",
    "references": "annotations.REFERENCES",
    "tour": "tours.TOUR",
    "tour-translation": "tours.TOUR_TRANSLATION",
    "comparisons": "annotations.COMPARISONS",
    "upstreams": "annotations.UPSTREAMS",
    "chapter": "scripts.CHAPTER",
    "diagram": "diagrams.DIAGRAM",
    "diagram-translation": "translations.DIAGRAM_TRANSLATION",
    "paths": "reading_paths.PATHS",
    "route-translation": "translations.PATH_TRANSLATION",
}
"""Kinds of files that people write, and where in ``readerkit.content`` each is."""


@click.command(short_help="The notes, with every anchor resolved; one by its ID.")
@click.argument("upstream", required=False, shell_complete=names("annotate"))
@click.argument(
    "note_id", metavar="[ID]", required=False, shell_complete=names("notes")
)
@click.option(
    "--concept", metavar="ID", help="Only on it.", shell_complete=names("concepts")
)
@click.option("--topic", help="Only of this file.", shell_complete=names("note-topics"))
@click.option("--mini", help="Only beside this mini.", shell_complete=names("minis"))
@click.option(
    "--kind", type=click.Choice(["citation", "note", "pitfall"]), help="Only such."
)
@click.option(
    "--start",
    type=click.Choice(["core", "trainer", "layers"]),
    help="Only what speaks of this: core alone, the stock trainer, the default layers.",
)
@click.option("--file", metavar="PATH", help="Only in files so called, or a pattern.")
@click.option("--grep", "text", metavar="TEXT", help="Only those that say this.")
@click.option("--tour", help="One after the other.", shell_complete=names("tours"))
@click.option("--check", is_flag=True, help="Fail on anything wrong in the book.")
@click.option(
    "--strict",
    is_flag=True,
    help="With --check: on notes that nobody reviewed too. On a folder, which has no "
    "lock, none can be.",
)
@click.option(
    "--claims",
    is_flag=True,
    help="Of a note, concept, mirror, chapter or question: show what proves its "
    "sentences. With --check: list those that nothing proves; with --strict fail.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "github", "sarif", "json"]),
    help="With --check: what it found as text, as annotations of a review on GitHub, "
    "as SARIF 2.1.0, or as --json.",
)
@click.option("--update-lock", is_flag=True, help="Write what anchors resolve to now.")
@click.option(
    "--schema",
    type=click.Choice([*KINDS]),
    help="Print the JSON Schema of such a file, with this book's ids, for an editor.",
)
@lang_option
@pager_option
@json_option
@book_option
def annotate(
    upstream: str | None,
    note_id: str | None,
    check: bool,
    strict: bool,
    claims: bool,
    form: str | None,
    update_lock: bool,
    schema: str | None,
    lang: str | None,
    pager: bool,
    as_json: bool,
    book: Path | None,
    tour: str | None,
    **filters: str | None,
) -> None:
    """Resolve every anchor of UPSTREAM (or of all) and list the notes; show one by ID.

    In the place of UPSTREAM: a topic, a concept or a mini lists the notes on it. Of
    any name as much is enough as no other begins with.

    \b
    Example:
        readerkit annotate megatron
        readerkit annotate megatron tp-row-forward
        readerkit annotate fsdp2
        readerkit annotate --concept all-gather --grep "in place"
        readerkit annotate --tour fsdp2-step
        readerkit annotate --check
    """
    from contextlib import nullcontext

    from readerkit.app.interface_words import known_language
    from readerkit.app.library import open_library, writing

    is_filtered = any(filters.values())
    of_some = bool(note_id or tour or is_filtered)
    _refuse_mixed(check=check, strict=strict, update=update_lock, of_some=of_some)
    if form and not check:
        raise click.UsageError("--format is for --check: add it")
    if form and as_json and form != "json":
        raise click.UsageError(f"--json and --format {form} exclude each other")
    if check:
        form = "json" if as_json else form or "text"
        _check(upstream, book, strict=strict, claims=claims, form=form)
        return
    with writing() if update_lock else nullcontext():
        library = open_library(book, whole=update_lock)
        group = None
        if schema:
            _print_schema(library, schema)
            return
        language = known_language(lang, library)
        if tour is not None:
            from readerkit.terminal.tour import show_tour

            if upstream or is_filtered or claims:
                raise click.UsageError("--tour is shown whole: leave out the rest")
            show_tour(library, tour, language, as_json=as_json, pager=pager)
            return
        if claims and upstream is not None and note_id is None:
            from readerkit.app.check_claims import entry_named
            from readerkit.app.quiz_banks import refuse_in_exam
            from readerkit.terminal.proofs import show_proofs

            entry = entry_named(library, upstream)
            upstream, note_id = None, entry.id
            if entry.id not in library.book.annotations:
                refuse_in_exam(f"annotate {entry.id} --claims", entry.id)
                show_proofs(library, entry, language, as_json=as_json, pager=pager)
                return
        elif upstream is not None and note_id is None:
            upstream, note_id, group = _named(upstream, library)
        if claims and note_id is None:
            raise click.UsageError("--claims is for one ID, or for --check: add it")
        if update_lock:
            _update_lock(
                library, upstream, is_one=bool(note_id or group), as_json=as_json
            )
        elif note_id is not None:
            if is_filtered:
                raise click.UsageError("one note is shown whole: leave out the filters")
            how = {"as_json": as_json, "pager": pager, "claims": claims}
            _show_one(library, upstream, note_id, lang, **how)
        else:
            shown = {"as_json": as_json, "pager": pager, "language": language}
            _list(library, upstream, group, filters, **shown)


def _refuse_mixed(*, check: bool, strict: bool, update: bool, of_some: bool) -> None:
    if check and update:
        raise click.UsageError("--check and --update-lock exclude each other")
    if strict and not check:
        raise click.UsageError("--strict is for --check: add it")
    if of_some and (check or update):
        raise click.UsageError(
            "--check and --update-lock are for a whole upstream: leave out the ID "
            "and the filters"
        )


def _named(name: str, library: Library) -> tuple[str | None, str | None, Group | None]:
    """Return the upstream, the note, or the group of notes that a name stands for.

    The whole name of anything goes before the beginning of an id.
    """
    from readerkit.terminal.note_list import Group

    book = library.book
    known = [*book.upstreams, *book.annotations]
    found = matches(name, known)
    is_whole = len(found) == 1 and len(found[0]) == len(name)
    if name and not is_whole and (group := Group.of(name, book)):
        return None, None, group
    if not found:
        near = near_names(name, [*known, *book.concepts])
        hint = f": did you mean {' or '.join(near)}?" if near else ""
        raise ReaderkitError(
            f"unknown upstream or note: got '{name}', expected one of "
            f"{', '.join(book.upstreams)}, the ID of a note, a topic, a concept or a "
            f"mini{hint}"
        )
    meant = choose("upstream or note", name, known)
    return (meant, None, None) if meant in book.upstreams else (None, meant, None)


def _list(
    library: Library,
    upstream: str | None,
    group: Group | None,
    filters: dict[str, str | None],
    **shown: Any,
) -> None:
    from dataclasses import replace

    from readerkit.terminal.note_list import Wanted, list_notes

    book = library.book
    noted = [each for each in book.upstreams.values() if book.notes_on(each.name)]
    chosen = [library.upstream(upstream)] if upstream else noted
    wanted = replace(Wanted.parse(filters, book), group=group)
    list_notes(library, chosen, wanted, **shown)


def _update_lock(
    library: Library, upstream: str | None, *, is_one: bool, as_json: bool
) -> None:
    from readerkit.app.check_claims import claimed_upstreams
    from readerkit.app.write_locks import update_locks

    if is_one:
        raise click.UsageError("--update-lock is for a whole upstream")
    if upstream:
        chosen = [library.upstream(upstream)]
        if not chosen[0].is_locked:
            name = chosen[0].name
            raise ReaderkitError(f"{name} is a folder of this book: it has no lock")
    else:
        book, claimed = library.book, claimed_upstreams(library)
        locked = {
            *(n for n in claimed if n in book.locks or book.upstreams[n].is_living),
            *filter(book.anchored_in, book.upstreams),
        }
        chosen = [each for name, each in book.upstreams.items() if name in locked]
    results = update_locks(library, chosen, say=not as_json)
    if as_json:
        print_json(results)
    elif not chosen:
        click.echo("this book has no notes: there is nothing to lock")


def _check(
    upstream: str | None,
    book: Path | None,
    *,
    strict: bool,
    claims: bool,
    form: str,
) -> None:
    """Hold a book, or one upstream of it; whatever is wrong is told at once."""
    from readerkit.app.check_claims import print_unproved
    from readerkit.app.check_locks import Report, check
    from readerkit.app.folders import shipped_book
    from readerkit.app.library import open_library
    from readerkit.system.output import printing
    from readerkit.terminal.check_findings import print_findings
    from readerkit.terminal.lock_report import print_report

    report = Report()
    try:
        library = open_library(book, whole=True)
        if upstream and (upstream in library.book.annotations):
            raise click.UsageError("--check is for a whole upstream: leave out the ID")
        chosen = library.upstream(upstream) if upstream else None
        check(library, chosen, report, strict=strict, claims=claims)
    except ReaderkitError as error:  # a book that cannot be opened has faults too
        report.add(error)
    with printing():
        print_findings(report, form, book or shipped_book())
        if claims and form == "text":
            print_unproved(report.claims)
    report.refuse()
    if form == "text":
        print_report(report)


def _print_schema(library: Library, kind: str) -> None:
    from importlib import import_module

    from readerkit.content.schema import json_schema

    module, name = KINDS[kind].split(".")
    of_kind = getattr(import_module(f"readerkit.content.{module}"), name)
    written = library.book
    choices = {"concepts": written.concepts, "references": written.references}
    print_json(json_schema(of_kind, **choices))


def _show_one(
    library: Library,
    upstream: str | None,
    note_id: str,
    lang: str | None,
    *,
    as_json: bool,
    pager: bool,
    claims: bool,
) -> None:
    from readerkit.content.book import resolve_notes
    from readerkit.model.freshness import tell
    from readerkit.terminal.note_list import plain_notes
    from readerkit.terminal.proofs import plain_proofs, show_proofs

    written = annotation = _find(library, upstream, note_id)
    if lang:
        from readerkit.app.interface_words import say_in

        say, translated = say_in(lang), library.book.translated(annotation, lang)
        if not translated.texts:
            none = say("no {language} text yet: this is the English one")
            click.echo(f"({none.format(language=lang)})", err=True)
        elif translated.is_outdated(annotation.stamp):
            old = say("the English changed after this {language} text")
            which = tell(translated.changes(annotation.stamp), say)
            click.echo(f"({old.format(language=lang)}: {which})", err=True)
        annotation = annotation.with_texts(translated.texts)
    sources = library.sources(library.upstream(annotation.upstream))
    [note] = resolve_notes(library.book, sources, [annotation])
    if as_json:
        [plain] = plain_notes(library, sources, [note])
        if claims:
            plain["claims"] = plain_proofs(library, written)
        print_json(plain)
    elif claims:
        show_proofs(library, written, lang or "en", as_json=False, pager=pager)
    else:
        from readerkit.terminal.note import note_page
        from readerkit.terminal.pager import show_paged

        language = lang or "en"
        page = note_page(library, note, sources, language=language)
        show_paged(page, pager=pager, language=language)


def _find(library: Library, upstream: str | None, note_id: str) -> Annotation:
    """Return the note that was meant, of the upstream if one is named.

    Raises:
        ReaderkitError: no such note, several, or one on another upstream.
    """
    book = library.book
    on = library.upstream(upstream).name if upstream else None
    ids = [note.id for note in book.annotations.values() if on in (None, note.upstream)]
    elsewhere = matches(note_id, book.annotations)
    if not matches(note_id, ids) and len(elsewhere) == 1:
        [meant] = elsewhere
        other = book.annotations[meant].upstream
        raise ReaderkitError(
            f"{meant} is a note on {other}: {typed('annotate', other, meant)}"
        )
    return book.annotations[choose(f"note on {on}" if on else "note", note_id, ids)]
