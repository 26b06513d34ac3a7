"""Symbols whose lines are known from elsewhere: a table of facts, not of our making."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import pytest

from readerkit.anchors import Anchor, Span
from readerkit.app.library import open_library
from tests.conftest import REAL_CACHE

with Path(__file__).with_name("reading_map.csv").open(newline="") as table:
    ROWS = list(csv.DictReader(table))
with Path(__file__).with_name("reading_map_2.csv").open(newline="") as table:
    SECOND = list(csv.DictReader(table))
"""The places of the second map, each with its file and the notes that stand for it."""


@cache
def sources(upstream: str):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("READERKIT_CACHE", str(REAL_CACHE))
        patch.setenv("READERKIT_DATA", "/nowhere")
        library = open_library()
    return library.sources(library.upstream(upstream))


def test_the_table_is_whole():
    assert [row["upstream"] for row in ROWS].count("megatron") == 53
    assert [row["upstream"] for row in ROWS].count("pytorch") == 52


def span_of(row) -> Span:
    file, symbol = row["file"], row["symbol"]
    found = len(sources(row["upstream"]).file(file).symbols.get(symbol, ()))
    # Behind its overloads stands the definition.
    nth = found if found > 1 else None
    return sources(row["upstream"]).resolve(Anchor(file, symbol=symbol, nth=nth))


def test_symbols_resolve_to_the_lines_that_are_known():
    known = [Span(row["file"], int(row["first"]), int(row["last"])) for row in ROWS]
    assert [span_of(row) for row in ROWS] == known


def test_the_second_table_is_whole():
    counted = {"M": 40, "P": 40, "D": 20}
    wanted = [f"{letter}{n + 1}" for letter in counted for n in range(counted[letter])]
    assert [row["id"] for row in SECOND] == wanted


def places(note) -> set[str]:
    return {note.anchor.file, *(each.anchor.file for each in note.also)}


def test_each_place_of_the_second_map_has_a_note_on_its_file():
    notes = open_library().book.annotations
    missing = [
        row["id"]
        for row in SECOND
        if not any(row["file"] in places(notes[each]) for each in row["notes"].split())
    ]
    assert missing == []


def test_notes_of_the_second_map_are_of_its_code_bases():
    notes = open_library().book.annotations
    for row in SECOND:
        for each in row["notes"].split():
            assert notes[each].upstream == row["upstream"], (row["id"], each)
