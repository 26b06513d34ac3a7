"""Each item that the source documents ask for has places, and they are there."""

from __future__ import annotations

import re
from functools import cache

import pytest
import yaml

from readerkit.app.mini_names import SAYS
from readerkit.app.quiz_banks import QuizBanks
from readerkit.app.read_chapters import CHAPTERS, read_chapters
from readerkit.content.chapters import parts_of
from readerkit.labs.lab import LABS
from readerkit.render.html.mechanism_list import MECHANISMS
from tests.content.test_annotations import library
from tests.content.test_translated_paths import routes
from tests.helpers import ROOT, run_process

COVERED = yaml.safe_load((ROOT / "docs" / "coverage.yaml").read_text("utf-8"))
ITEMS = [(part, item) for part, items in COVERED.items() for item in items]
TWELVE = {
    *("01-why-distributed", "02-the-memory-wall", "03-collectives"),
    *("04-data-parallelism", "05-sharding-the-state"),
    *("06-tensor-and-sequence-parallelism", "07-pipelines", "08-experts"),
    *("09-long-contexts", "10-layouts", "11-precision-and-recompute"),
    "12-a-run-of-weeks",
}
WRITTEN = {path.stem for path in (ROOT / CHAPTERS).glob("*.md")}
# What chapters say without the concept's name: the chapter, and words of it.
IN_OTHER_WORDS = {
    "comm-compute-ratio": ("data-parallelism", "of visible communication"),
    "coordination-cost": ("why-distributed", "memory pressure and coordination pull"),
    "flat-parameter": ("sharding-the-state", "fsdp1 the unit laid flat"),
    "rng-streams": ("precision-and-recompute", "the random numbers must be replayed"),
    "scaling-efficiency": ("data-parallelism", "with an efficiency above"),
    "tied-embeddings": ("pipelines", "a tied embedding lives on the first"),
    "training-compute": ("why-distributed", "about six floating point operations"),
    "training-cost": ("why-distributed", "say what it will cost"),
    "vocab-parallel": ("tensor-and-sequence-parallelism", "along the vocabulary"),
}


@cache
def questions():
    return {each.id: each for each in QuizBanks.at(ROOT).questions()}


@cache
def places() -> dict[str, set[str]]:
    book, pages = library().book, ROOT / "site" / "pages"
    estimates = run_process("estimate", "--help").out.partition("Commands:")[2]
    return {
        "chapter": WRITTEN,
        "note": {*book.annotations},
        "concept": {*book.concepts},
        "mirror": {*book.mirrors},
        "tour": {*book.tours},
        "mini": {*SAYS},
        "lab": {*LABS, *(path.stem for path in (pages / "labs").glob("??.md"))},
        "question": {*questions()},
        "estimate": {row.split()[0] for row in estimates.splitlines() if row.strip()},
        "diagram": {path.stem for path in (pages / "diagrams").glob("*.mmd")},
        "mechanism": {*MECHANISMS},
        "path": {each.id for each in routes().failures},
    }


def test_the_table_has_as_many_items_as_the_documents_count():
    counts = {part.split(",")[0]: len(items) for part, items in COVERED.items()}
    assert counts["nine pressures that come back"] == 9
    assert counts["five typical configurations"] == 5
    assert counts["five anti-patterns"] == 5
    rungs = COVERED["eleven rungs, each with what one can do then"]
    numbers = [int(item.split()[0]) for item in rungs if item[0].isdigit()]
    assert numbers == list(range(1, 12))


@pytest.mark.parametrize(("part", "item"), ITEMS)
def test_an_item_has_places_that_are_there(part, item):
    assert COVERED[part][item]
    for place in COVERED[part][item]:
        kind, _, name = place.partition(":")
        assert name in places()[kind], f"{part}: {item}: no {place}"


def test_every_chapter_is_the_place_of_something():
    rows = (each for items in COVERED.values() for each in items.values())
    named = {place for row in rows for place in row}
    assert not {f"chapter:{name}" for name in TWELVE} - named


def test_every_concept_has_a_note_and_a_question():
    book = library().book
    noted = {name for note in book.annotations.values() for name in note.concepts}
    asked = {name for each in questions().values() for name in each.concepts}
    assert not {*book.concepts} - noted
    assert not {*book.concepts} - asked


def test_every_concept_has_a_place_in_a_chapter():
    texts = {script.name: _plain(script.text) for script in read_chapters(ROOT)}
    for name, (chapter, words) in IN_OTHER_WORDS.items():
        assert words in texts[chapter], name
    known = in_chapters() | {*IN_OTHER_WORDS}
    assert not {*library().book.concepts} - known


def in_chapters() -> set[str]:
    """Return the concepts that a chapter names, or shows a note or question of."""
    found, book = set[str](), library().book
    for script in read_chapters(ROOT):
        text = _plain(script.text)
        for name, concept in book.concepts.items():
            if any(f" {_plain(word)}" in text for word in (name, concept.title)):
                found.add(name)
        for part in parts_of(script.text, script.file):
            if part.kind == "note":
                found |= {*book.annotations[part.name].concepts}
            if part.kind in ("question", "predict"):
                found |= {*questions()[part.name].concepts}
    return found


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[^\w\s]", " ", text.casefold()).split())
