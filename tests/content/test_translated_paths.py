"""The Spanish reading paths: of what exists, in its order, and with its numbers."""

from __future__ import annotations

import pytest

from readerkit.content.paths_file import (
    PATHS,
    Failure,
    MechanismPair,
    ReadingPaths,
    join_paths,
)
from readerkit.content.translations import PATH_TRANSLATION
from readerkit.content.validation import read_document
from tests.content.test_annotations import library
from tests.content.test_translations import PAGES, changed

TEXTS = ("symptom", "cause", "check", "wire")


def routes() -> ReadingPaths:
    english, spanish = (
        (PAGES / name).read_bytes() for name in ("paths.yaml", "paths.es.yaml")
    )
    book = library().book
    paths = read_document(english, "paths.yaml", PATHS)
    sidecar = read_document(spanish, "paths.es.yaml", PATH_TRANSLATION)
    return join_paths(paths, {*book.annotations}, {*book.concepts}, sidecar)


def entries() -> list[Failure | MechanismPair]:
    return [*routes().failures, *routes().pairs]


def test_sidecar_has_the_paths_in_their_order():
    assert list(routes().spanish) == [entry.id for entry in entries()]


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.id)
def test_spanish_path_is_whole_and_keeps_what_the_english_of_today_says(entry):
    spanish = routes().spanish[entry.id]
    assert spanish.of == entry.stamp, f"once it says the same: {entry.stamp}"
    assert list(spanish.texts) == [name for name in TEXTS if hasattr(entry, name)]
    for name, text in spanish.texts.items():
        assert changed(getattr(entry, name), text) == []
