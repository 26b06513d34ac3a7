from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from readerkit.upstreams import BlobStore, Upstream
from readerkit.upstreams.provenance import (
    Provenance,
    read_provenance,
    write_provenance,
)

UPSTREAM = Upstream("sample", "Sample", ("lib/*.py",), commit="a" * 40)
NOTED = Provenance("git", "git https://example.org at aaaa", "2026-01-01 00:00:00")


@pytest.fixture
def store(tmp_path) -> BlobStore:
    return BlobStore(tmp_path / "cache")


def note_of(store: BlobStore) -> Path:
    (note,) = (store.root / "served").glob("*.json")
    return note


def licence_of(store: BlobStore) -> bytes:
    return note_of(store).with_suffix(".licence").read_bytes()


def test_what_was_noted_is_read_back(store):
    write_provenance(UPSTREAM, store, NOTED, b"Do as you like.\n")
    assert read_provenance(UPSTREAM, store) == NOTED
    assert licence_of(store) == b"Do as you like.\n"


def test_each_pin_has_its_own_note(store):
    moved = structs.replace(UPSTREAM, commit="b" * 40)
    write_provenance(UPSTREAM, store, NOTED, b"old")
    assert read_provenance(moved, store) is None


def test_source_without_a_licence_keeps_the_one_there_is(store):
    write_provenance(UPSTREAM, store, NOTED, b"Do as you like.\n")
    write_provenance(UPSTREAM, store, replace(NOTED, source="package"), None)
    assert read_provenance(UPSTREAM, store).source == "package"
    assert licence_of(store) == b"Do as you like.\n"


def test_licence_that_is_not_utf8_is_kept_as_it_came(store):
    write_provenance(UPSTREAM, store, NOTED, b"Do as \xff like.\n")
    assert licence_of(store) == b"Do as \xff like.\n"


NOTED_AS = '{"source": %s, "origin": %s, "when": %s}'


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", '{"source": "git"}', '{"x": 1}', "\udcff"),
        *("5", "true", '"git"', "NaN", "[" * 100_000, '{"a":' * 100_000, "\0"),
        *(NOTED_AS % (odd, '"o"', '"w"') for odd in ("5", "null", "[]", "{}", "true")),
        *(NOTED_AS % ('"s"', odd, '"w"') for odd in ("5", "null", "[1]", '{"a": 1}')),
        *(NOTED_AS % ('"s"', '"o"', odd) for odd in ("5.5", "null", "[[]]", "false")),
        (NOTED_AS % ('"s"', '"o"', '"w"'))[:-1] + ', "more": "m"}',
    ],
)
def test_damaged_note_is_no_note(text, store):
    write_provenance(UPSTREAM, store, NOTED, None)
    note_of(store).write_bytes(text.encode("utf-8", "surrogateescape"))
    assert read_provenance(UPSTREAM, store) is None


def test_a_note_of_before_says_nothing_to_others(store):
    write_provenance(UPSTREAM, store, NOTED, None)
    note_of(store).write_text(NOTED_AS % ('"folder"', '"folder /home/me"', '"w"'))
    assert read_provenance(UPSTREAM, store).public == ""
