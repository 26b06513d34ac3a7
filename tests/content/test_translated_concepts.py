"""The Spanish concepts: of what exists, in its order, and with its numbers and code."""

from __future__ import annotations

import pytest

from readerkit.content.annotations import Concept
from tests.content.test_annotations import library
from tests.content.test_translations import changed


def concepts() -> list[Concept]:
    return list(library().book.concepts.values())


def spanish(concept: Concept) -> dict[str, str]:
    return dict(library().book.translated(concept, "es").texts)


def ids(concept: Concept) -> str:
    return concept.id


def test_sidecar_has_the_concepts_in_their_order():
    ours = list(library().book.concept_translations["es"])
    assert ours == [concept.id for concept in concepts() if concept.id in ours]


@pytest.mark.parametrize("concept", concepts(), ids=ids)
def test_every_concept_is_translated_from_the_english_of_today(concept):
    assert "summary" in spanish(concept)
    said = library().book.translated(concept, "es").of
    assert said == concept.stamp, "readerkit annotate --check tells what to do"


@pytest.mark.parametrize("concept", concepts(), ids=ids)
def test_spanish_concept_keeps_numbers_code_and_links(concept):
    wrong = {
        field: rows
        for field, text in spanish(concept).items()
        if (rows := changed(getattr(concept, field), text))
    }
    assert wrong == {}
