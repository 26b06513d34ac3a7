"""One note in the terminal: its lines, the mini beside them, what ran, its proof."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace

import click

from readerkit.app.interface_translation import say_in
from readerkit.app.library import Library
from readerkit.app.records import lit_in, read_records
from readerkit.content.mirrors import Mirror
from readerkit.content.resolved_notes import Note, Sources, resolve_mini
from readerkit.evidence.executed_lines import lit_section, say_lit, say_section
from readerkit.evidence.relevance import (
    Evidence,
    expected_to_run,
    of_the_idea,
    ran_lines,
    worth_saying,
)
from readerkit.model.anchor import Span
from readerkit.model.language import SPANISH, Say, english, said
from readerkit.render.note_view import (
    Beside,
    console,
    note_lines,
    note_view,
    on_page,
    proof,
)
from readerkit.render.terminal_code import Shown
from readerkit.terminal.note_list import asides_of
from readerkit.terminal.proof_report import with_proved
from readerkit.upstreams.store import blob_id


def show_note(library: Library, note: Note, sources: Sources) -> None:
    """Print one note with its lines, what is beside it, and its proof."""
    click.echo(note_page(library, note, sources), nl=False)


def note_page(
    library: Library,
    note: Note,
    sources: Sources,
    *,
    below: bool = False,
    language: str = "en",
) -> str:
    """Return one note with its lines, what is beside it, and its proof.

    For a terminal it is folded and coloured; in a pipe every line of code is one line.
    With ``below`` the note's own lines are left out.
    """
    evidence = {each.comparison: Evidence(each) for each in read_records(library)}
    upstream, screen = sources.upstream, console()
    asides = asides_of(library, note)
    shown = dict.fromkeys(each.annotation.upstream for each in asides)
    others = [library.book.upstreams[n] for n in shown if n != upstream.name]
    came_from, width, say = library.came_from(upstream), screen.width, say_in(language)
    marked = replace(note, annotation=with_proved(library, note.annotation))
    view = note_view(
        marked,
        _shown(sources, note.span, say),
        library.book.references,
        width=width,
        conditions=library.book.conditions_of(note.annotation, language),
        beside=[
            *_also(library, asides, evidence, say),
            *_beside(library, note, evidence, say),
        ],
        ran=_ran(library, note, sources, evidence, say),
        folds=screen.is_terminal,
        below=below,
        say=say,
    )
    lock = library.book.locks.get(upstream.name)
    blob = lock.files[note.span.path] if lock and sources.is_absent else ""
    blob = blob or blob_id(sources.read(note.span.path))
    origin = came_from.origin if came_from else "the cache"
    rows = proof(note, upstream, blob=blob, came_from=origin, others=others, say=say)
    return on_page(screen, view, rows)


def note_above(note: Note, sources: Sources, say: Say = english) -> str:
    """Return a note's place and lines, without a word of its text."""
    screen = console()
    width = screen.width if screen.is_terminal else None
    shown = _shown(sources, note.span, say)
    return on_page(screen, note_lines(note, shown, width=width, say=say))


def _shown(sources: Sources, span: Span, say: Say) -> Shown:
    """Return the file of some lines, or why it cannot be read."""
    if sources.is_absent:
        return said(sources.upstream.not_fetched, say)
    return sources.file(span.path)


def _ran(
    library: Library,
    note: Note,
    sources: Sources,
    evidence: Mapping[str, Evidence],
    say: Say,
) -> list[str]:
    """Return the sentences of records about a note's lines."""
    file = ran_lines(evidence.values()).get((sources.upstream.name, note.span.path), {})
    mirrors = library.book.mirrors.values()
    meant = expected_to_run(note.annotation, file, mirrors, evidence)
    return _say(sources, note.span, evidence, meant, say)


def _say(
    sources: Sources,
    span: Span,
    evidence: Mapping[str, Evidence],
    expected: Set[str],
    say: Say,
) -> list[str]:
    """Return the evidence about some lines, and which records are stale."""
    found = lit_in(sources, span, (each.record for each in evidence.values()))
    fresh = [each for each in found if not each.stale]
    stale = [each for each in found if each.stale]
    told = worth_saying(fresh, expected)
    if fresh and not told:
        return [say("no record runs this code"), *say_lit(stale, say)]
    return say_lit([*told, *stale], say)


def _also(
    library: Library,
    asides: Iterable[Note],
    evidence: Mapping[str, Evidence],
    say: Say,
) -> Iterator[Beside]:
    """Yield the other lines that a note shows, and what ran of them, if anything."""
    records = [each.record for each in evidence.values()]
    for aside in asides:
        upstream = library.book.upstreams[aside.annotation.upstream]
        sources = library.sources(upstream)
        ran = [each for each in lit_in(sources, aside.span, records) if each.ran]
        yield Beside(
            f"{say('Also')}: {upstream.title}",
            aside.annotation.title,
            _shown(sources, aside.span, say),
            aside.span,
            say_lit(ran, say),
        )


def _beside(
    library: Library, note: Note, evidence: Mapping[str, Evidence], say: Say
) -> list[Beside]:
    """Return the mini lines that mirrors put beside a note, and what ran of them."""
    sections = [
        (mirror, index, section)
        for mirror, index, section in library.book.sections_with(note.annotation.id)
        if section.mini
    ]
    if not sections:
        return []
    folders = library.folders()
    records = [each.record for each in evidence.values()]
    found = []
    for mirror, index, section in sections:
        title = _title(library, mirror, index, say)
        heading = f"{say('the mini')} ({say(section.relation)}): {title}"
        for anchor, place in zip(section.mini, section.places, strict=True):
            minis = folders[library.book.home_of(anchor.file)]
            span = resolve_mini(minis, mirror, anchor, place)
            idea = of_the_idea(mirror, evidence)
            ran = _say(minis, span, evidence, idea, say)
            found.append(Beside(heading, "", minis.file(anchor.file), span, ran))
        ran.extend(say_section(lit_section(records, section), say))
    return found


def _title(library: Library, mirror: Mirror, index: int, say: Say) -> str:
    """Return the title of a section; marked where it is not in the reader's words."""
    own = mirror.sections[index].title
    if say is english:
        return own
    other = library.book.mirror_in(mirror.id, SPANISH).sections[index].title
    return other if other != own else f"[en] {own}"
