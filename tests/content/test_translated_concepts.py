"""Spanish concepts and conditions: of what exists, in its order, numbers kept."""

from __future__ import annotations

from readerkit.content.annotations import Concept
from tests.content.test_annotations import library
from tests.content.test_translations import changed


def concepts() -> list[Concept]:
    return list(library().book.concepts.values())


def spanish(concept: Concept) -> dict[str, str]:
    return dict(library().book.translated(concept, "es").texts)


def test_sidecar_has_the_concepts_in_their_order():
    ours = list(library().book.concept_translations["es"])
    assert ours == [concept.id for concept in concepts() if concept.id in ours]


def test_every_concept_is_translated_from_the_english_of_today():
    book = library().book
    stale = [
        concept.id
        for concept in concepts()
        if "summary" not in spanish(concept)
        or book.translated(concept, "es").of != concept.stamp
    ]
    assert stale == [], "readerkit annotate --check tells what to do"


def test_spanish_concept_keeps_numbers_code_and_links():
    assert [
        (concept.id, field, rows)
        for concept in concepts()
        for field, text in spanish(concept).items()
        if (rows := changed(getattr(concept, field), text))
    ] == []


def test_every_condition_is_presumed_by_a_note_and_translated():
    book = library().book
    presumed = {name for note in book.annotations.values() for name in note.conditions}
    named = {name for name, each in book.conditions.items() if not each.always}
    assert presumed == named
    assert [*book.conditions] == [*book.condition_translations["es"]]
    stale = [
        each.id
        for each in book.conditions.values()
        if book.translated(each, "es").of != each.stamp
    ]
    assert stale == [], "readerkit annotate --check tells what to do"
