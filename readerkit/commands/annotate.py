"""``readerkit annotate``: every anchor resolved; the notes in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from readerkit.commands.options import (
    book_option,
    chosen_notes_options,
    json_option,
    lang_option,
    pager_option,
)
from readerkit.errors import WrongUseError
from readerkit.terminal.as_json import print_json
from readerkit.terminal.completing import names
from readerkit.wording.meant_name import choose, matches
from readerkit.wording.next_command import typed

if TYPE_CHECKING:
    from readerkit.app.library import Library
    from readerkit.content.annotations import Annotation
    from readerkit.terminal.note_group import Group

KINDS = {
    "annotations": "annotations.ANNOTATIONS",
    "translation": "translations.NOTE_TRANSLATION",
    "mirror": "mirrors.MIRROR",
    "mirror-translation": "translations.MIRROR_TRANSLATION",
    "concepts": "annotations.CONCEPTS",
    "concept-translation": "translations.CONCEPT_TRANSLATION",
    "conditions": "annotations.CONDITIONS",
    "condition-translation": "translations.CONDITION_TRANSLATION",
    "references": "annotations.REFERENCES",
    "tour": "tours.TOUR",
    "tour-translation": "tours.TOUR_TRANSLATION",
    "comparisons": "annotations.COMPARISONS",
    "upstreams": "annotations.UPSTREAMS",
    "chapter": "chapters.CHAPTER",
    "diagram": "diagrams.DIAGRAM",
    "diagram-translation": "translations.DIAGRAM_TRANSLATION",
    "paths": "paths_file.PATHS",
    "route-translation": "translations.PATH_TRANSLATION",
}
"""Kinds of files that people write, and where in ``readerkit.content`` each is."""


@click.command(short_help="The notes, with every anchor resolved; one by its ID.")
@click.argument("upstream", required=False, shell_complete=names("annotate"))
@click.argument(
    "note_id", metavar="[ID]", required=False, shell_complete=names("notes")
)
@chosen_notes_options
@click.option("--mini", help="Only beside this mini.", shell_complete=names("minis"))
@click.option(
    "--start",
    type=click.Choice(["core", "trainer", "layers"]),
    help="Only what speaks of this: core alone, the stock trainer, the default layers.",
)
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
    help="Of a note, concept, mirror, tour, path, chapter, lab or question: its "
    "claims, held, and the words that none says. With --check: list unproved "
    "sentences; --strict: fail.",
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
    of_some = bool(note_id or tour or any(filters.values()))
    _refuse_mixed(check=check, strict=strict, update=update_lock, of_some=of_some)
    if form and not check:
        raise click.UsageError("--format is for --check: add it")
    if form and as_json and form != "json":
        raise click.UsageError(f"--json and --format {form} exclude each other")
    if check:
        from readerkit.terminal.check_report import check_and_print

        form = "json" if as_json else form or "text"
        check_and_print(upstream, book, strict=strict, claims=claims, form=form)
        return
    from readerkit.app.library import open_library

    shown = {"as_json": as_json, "pager": pager, "claims": claims}
    if schema:
        _print_schema(open_library(book), schema)
    elif update_lock:
        _update_lock(book, upstream, claims=claims, as_json=as_json)
    elif tour is not None:
        if upstream or any(filters.values()) or claims:
            raise click.UsageError("--tour is shown whole: leave out the rest")
        _show_tour(open_library(book), tour, lang, as_json=as_json, pager=pager)
    else:
        _show(open_library(book), upstream, note_id, lang, filters, **shown)


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


def _show_tour(
    library: Library, tour: str, lang: str | None, *, as_json: bool, pager: bool
) -> None:
    from readerkit.app.interface_translation import known_language
    from readerkit.terminal.tour import show_tour

    language = known_language(lang, library)
    show_tour(library, tour, language, as_json=as_json, pager=pager)


def _show(
    library: Library,
    upstream: str | None,
    note_id: str | None,
    lang: str | None,
    filters: dict[str, str | None],
    *,
    as_json: bool,
    pager: bool,
    claims: bool,
) -> None:
    """Show one note, what proves the sentences of an entry, or a list of notes."""
    from readerkit.app.interface_translation import known_language

    language, group = known_language(lang, library), None
    how = {"as_json": as_json, "pager": pager}
    if upstream is not None and note_id is None and claims:
        from readerkit.app.check_claims import entry_named
        from readerkit.app.quiz_banks import refuse_in_exam
        from readerkit.terminal.proof_report import show_proofs

        entry = entry_named(library, upstream)
        if entry.id not in library.book.annotations:
            refuse_in_exam(f"annotate {entry.id} --claims", entry.id)
            show_proofs(library, entry, language, **how)
            return
        upstream, note_id = None, entry.id
    elif upstream is not None and note_id is None:
        from readerkit.terminal.note_group import named

        upstream, note_id, group = named(upstream, library.book)
    if note_id is None and claims:
        raise click.UsageError("--claims is for one ID, or for --check: add it")
    if note_id is None:
        _list(library, upstream, group, filters, language=language, **how)
    elif any(filters.values()):
        raise click.UsageError("one note is shown whole: leave out the filters")
    else:
        _show_one(library, upstream, note_id, language, claims=claims, **how)


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
    book: Path | None, upstream: str | None, *, claims: bool, as_json: bool
) -> None:
    from readerkit.app.library import open_library, writing
    from readerkit.app.lock_update import to_lock, update_locks
    from readerkit.terminal.note_group import named

    if claims:
        raise click.UsageError("--claims is for one ID, or for --check: add it")
    with writing():
        library = open_library(book, whole=True)
        whole = named(upstream, library.book)[0] if upstream else None
        if upstream and whole is None:
            raise click.UsageError("--update-lock is for a whole upstream")
        chosen = to_lock(library, whole)
        results = update_locks(library, chosen, say=not as_json)
    if as_json:
        print_json(results)
    elif not chosen:
        click.echo("this book has no notes: there is nothing to lock")


def _print_schema(library: Library, kind: str) -> None:
    from importlib import import_module

    from readerkit.content.schema import json_schema

    module, name = KINDS[kind].split(".")
    of_kind = getattr(import_module(f"readerkit.content.{module}"), name)
    written = library.book
    choices = {
        "concepts": written.concepts,
        "conditions": written.conditions,
        "references": written.references,
    }
    print_json(json_schema(of_kind, **choices))


def _show_one(
    library: Library,
    upstream: str | None,
    note_id: str,
    language: str,
    *,
    as_json: bool,
    pager: bool,
    claims: bool,
) -> None:
    from readerkit.content.resolved_notes import resolve_notes
    from readerkit.model.freshness import tell
    from readerkit.terminal import folded
    from readerkit.terminal.note_list import plain_notes
    from readerkit.terminal.proof_report import plain_proofs, show_proofs

    written = annotation = _find(library, upstream, note_id)
    if language != "en":
        from readerkit.app.interface_translation import say_in

        say = say_in(language)
        translated = library.book.translated(annotation, language)
        if not translated.texts:
            none = say("no {language} text yet: this is the English one")
            folded.tell(f"({none.format(language=language)})", err=True)
        elif translated.is_outdated(annotation.stamp):
            old = say("the English changed after this {language} text")
            which = tell(translated.changes(annotation.stamp), say)
            folded.tell(f"({old.format(language=language)}: {which})", err=True)
        annotation = annotation.with_texts(translated.texts)
    sources = library.sources(library.upstream(annotation.upstream))
    [note] = resolve_notes(library.book, sources, [annotation])
    if as_json:
        [plain] = plain_notes(library, sources, [note])
        if claims:
            plain |= plain_proofs(library, written)
        print_json(plain)
    elif claims:
        show_proofs(library, written, language, as_json=False, pager=pager)
    else:
        from readerkit.terminal.note import note_page
        from readerkit.terminal.pager import show_paged

        page = note_page(library, note, sources, language=language)
        show_paged(page, pager=pager, language=language)


def _find(library: Library, upstream: str | None, note_id: str) -> Annotation:
    """Return the note that was meant, of the upstream if one is named."""
    book = library.book
    on = library.upstream(upstream).name if upstream else None
    ids = [note.id for note in book.annotations.values() if on in (None, note.upstream)]
    elsewhere = matches(note_id, book.annotations)
    if not matches(note_id, ids) and len(elsewhere) == 1:
        [meant] = elsewhere
        other = book.annotations[meant].upstream
        raise WrongUseError(
            f"{meant} is a note on {other}: {typed('annotate', other, meant)}"
        )
    return book.annotations[choose(f"note on {on}" if on else "note", note_id, ids)]
