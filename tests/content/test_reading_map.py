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
