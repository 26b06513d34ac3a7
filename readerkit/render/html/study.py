"""Pages for people who learn: where to start, concepts, references, reading paths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from markupsafe import Markup

from readerkit.content.annotations import Concept, Condition
from readerkit.content.concept_order import by_need
from readerkit.content.paths_file import Failure, MechanismPair, ReadingPaths
from readerkit.content.resolved_notes import Note
from readerkit.content.translations import Translation
from readerkit.model import addresses
from readerkit.model.language import SPANISH
from readerkit.quiz.prompts import ChoicePrompt
from readerkit.quiz.variant import Variant
from readerkit.render.html.excerpt import excerpt
from readerkit.render.html.file_page import proofs_of, ran_in, rights_of, view
from readerkit.render.html.markdown import line
from readerkit.render.html.mirror_page import mirror_lines
from readerkit.render.html.notes import (
    NoteView,
    card,
    cite,
    concept_title,
    mirror_title,
    text,
)
from readerkit.render.html.proved import marked, passages
from readerkit.render.html.site_model import Context, SiteModel
from readerkit.render.html.tour_page import tour_lines
from readerkit.render.html.words import Text

WRONG = {
    "memory": "It runs out of memory",
    "stop": "It stands still",
    "numbers": "Its numbers are wrong",
    "speed": "It is slow",
}
"""What stands over the symptoms that show in the same: of a job."""


def concept_page(model: SiteModel) -> Context:
    """Return the page of all concepts, by the pressure that they answer."""
    by_pressure: dict[str, list[Context]] = {}
    for concept in model.book.concepts.values():
        shown_there = by_pressure.setdefault(concept.pressure or "", [])
        shown_there.append(_concept(model, concept))
    return {"title": "Concepts", "pressures": list(by_pressure.items())}


def _concept(model: SiteModel, concept: Concept) -> Context:
    book = model.book
    proofs = proofs_of(model, concept.id, (concept,))

    def summary(text: str) -> Markup:
        return marked(text, concept.summary, proofs, concept, concept.id)

    told = card(concept.id, book, render=summary)
    return {
        "card": told,
        "proofs": passages(proofs, concept.id, (told.summary,)),
        "layer": concept.layer or "",
        "requires": _titles(model, concept.requires),
        "recurs": _titles(model, concept.recurs),
        "cites": [cite(each, book, model.words) for each in concept.references],
        "notes": [
            view(model, name)
            for name, note in model.notes.items()
            if concept.id in note.annotation.concepts
        ],
        "mirrors": [
            (addresses.mirror_page(mirror.id), mirror_title(mirror, book))
            for mirror in book.mirrors.values()
            if concept.id in mirror.concepts
        ],
    }


def condition_page(model: SiteModel) -> Context:
    """Return the page of what notes presume, each condition with its notes."""
    shown = [_condition(model, each) for each in model.book.conditions.values()]
    return {"title": "Where notes hold", "conditions": shown}


def _condition(model: SiteModel, condition: Condition) -> Context:
    proofs = proofs_of(model, condition.id, (condition,))
    spanish = model.book.translated(condition, SPANISH).texts.get("title")

    def title(text: str) -> Markup:
        return marked(text, condition.title, proofs, condition, condition.id, line)

    told = text(condition.title, spanish, title)
    return {
        "id": condition.id,
        "always": condition.always,
        "title": told,
        "proofs": passages(proofs, condition.id, (told,)),
        "notes": [
            view(model, name)
            for name, note in model.notes.items()
            if condition.id in note.annotation.conditions
        ],
    }


def _titles(model: SiteModel, names: Iterable[str]) -> list[tuple[str, Text]]:
    return [(name, concept_title(name, model.book)) for name in names]


def reference_page(model: SiteModel) -> Context:
    """Return the page of all works, each with the notes that cite it."""
    cited_by: dict[str, list[tuple[str, NoteView]]] = {}
    for name, note in model.notes.items():
        for citation in note.annotation.references:
            section = citation.section, view(model, name)
            cited_by.setdefault(citation.key, []).append(section)
    works = model.book.references.values()
    return {
        "title": "References",
        "works": [(work, cited_by.get(work.key, ())) for work in works],
    }


def path_page(model: SiteModel, paths: ReadingPaths) -> Context:
    """Return the page of the reading paths."""
    return {
        "title": "Reading paths",
        "tours": tour_lines(model),
        "prerequisite": list(_prerequisites(model)),
        "failure": [
            (heading, [_failure(model, paths, failure) for failure in those])
            for heading, those in _grouped(paths.failures)
        ],
        "symptoms": symptoms(paths),
        "synthesis": [_pairing(model, paths, pair) for pair in paths.pairs],
    }


def symptoms(paths: ReadingPaths) -> list[tuple[str, list[tuple[str, Text]]]]:
    """Return the id of each failure and what shows of it, by what is wrong."""
    return [
        (heading, [(each.id, _symptom(paths, each)) for each in those])
        for heading, those in _grouped(paths.failures)
    ]


def _grouped(failures: Iterable[Failure]) -> Iterator[tuple[str, list[Failure]]]:
    """Yield failures of which the same is wrong, those that do not say it last."""
    found: dict[str, list[Failure]] = {}
    for each in failures:
        found.setdefault(WRONG.get(each.shows or "", ""), []).append(each)
    unsaid = found.pop("", [])
    yield from found.items()
    if unsaid:
        yield "", unsaid


def _symptom(paths: ReadingPaths, failure: Failure) -> Text:
    texts = paths.spanish.get(failure.id, Translation()).texts
    return text(failure.symptom, texts.get("symptom"))


def _failure(model: SiteModel, paths: ReadingPaths, failure: Failure) -> Context:
    return (
        {"check": ""}
        | _told(model, paths, failure)
        | {
            "title": _symptom(paths, failure),
            "notes": _views(model, failure.notes),
            "run": failure.run,
        }
    )


def _pairing(model: SiteModel, paths: ReadingPaths, pair: MechanismPair) -> Context:
    return _told(model, paths, pair) | {
        "both": _titles(model, (pair.memory, pair.coordination)),
        "notes": _views(model, pair.notes),
    }


def _told(
    model: SiteModel, paths: ReadingPaths, entry: Failure | MechanismPair
) -> Context:
    """Return the texts of an entry with their marks, and what proves them."""
    spanish = paths.spanish.get(entry.id, Translation())
    proofs = proofs_of(model, entry.id)

    def told(name: str, english: str) -> Text:
        how = partial(marked, english=english, proofs=proofs, part=None, place=entry.id)
        return text(english, spanish.texts.get(name), how)

    # A heading has no marks.
    texts = {n: told(n, each) for n, each in entry.texts.items() if n != "symptom"}
    return texts | {
        "id": entry.id,
        "proofs": passages(proofs, entry.id, texts.values()),
        "is_translated": entry.texts.keys() <= spanish.texts.keys(),
        "is_outdated": spanish.is_outdated(entry.stamp),
    }


def _prerequisites(model: SiteModel) -> Iterator[Context]:
    """Yield the concepts that have notes, each after what it requires."""
    annotations = [note.annotation for note in model.notes.values()]
    for name, notes in by_need(model.book.concepts, annotations):
        title = concept_title(name, model.book)
        yield {"id": name, "title": title, "notes": _views(model, notes)}


def _views(model: SiteModel, notes: Iterable[str]) -> list[NoteView]:
    return [view(model, name) for name in notes]


def start_page(
    model: SiteModel,
    first_stop: str,
    lists: Mapping[str, Sequence[tuple[str, object]]],
    title: str,
) -> Context:
    """Return the start page, with one stop on it to begin with; ``lists`` lead on."""
    stop = model.notes.get(first_stop)
    pinned = [u for u in model.book.upstreams.values() if model.book.notes_on(u.name)]
    records = len(model.evidence)
    lines = sum(sheet.drawn.count for sheet in model.sheets.values())
    return {
        # A book of one's own is called by what it is on.
        "title": title or ", ".join(each.title for each in pinned),
        "stop": _stop(model, stop) if stop else None,
        "mirrors": mirror_lines(model),
        "upstreams": [(u, list(_files(model, u.name))) for u in pinned],
        "counts": (
            ("note", "notes", len(model.notes)),
            ("file", "files", len(model.sheets)),
            ("line", "lines", lines),
            *([("record", "records", records)] if records else []),
        ),
        "rights": rights_of(model, (u.name for u in pinned)),
        **lists,
    }


def first_question(variant: Variant, page: str) -> Context:
    """Return a choice that opens without a script: what is said to each option."""
    asked = variant.prompt
    assert isinstance(asked, ChoicePrompt)
    grades = [(each, variant.grade(each.label)) for each in asked.options]
    return {
        "asked": asked.prompt,
        "options": [
            (each.text, grade.is_right, grade.remarks) for each, grade in grades
        ],
        "explanation": variant.told.explanation,
        "page": page,
    }


def _stop(model: SiteModel, note: Note) -> Context:
    annotation, span = note.annotation, note.span
    upstream = model.book.upstreams[annotation.upstream]
    mirrors = [mirror for mirror, _, _ in model.sections_with(annotation.id)]
    return {
        "note": view(model, annotation.id),
        "lines": excerpt(model, upstream.name, span, addresses.START),
        "upstream": upstream,
        "ran_in": ran_in(
            model, (upstream.name, span.path), range(span.first, span.last + 1)
        ),
        "mirror": addresses.mirror_page(mirrors[-1]) if mirrors else "",
    }


def _files(model: SiteModel, upstream: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the annotated files of an upstream: page, path and notes of each."""
    for file in sorted(file for file in model.sheets if file[0] == upstream):
        if notes := [note.annotation.id for note in model.notes_in(file)]:
            yield addresses.source_page(*file), file[1], notes
