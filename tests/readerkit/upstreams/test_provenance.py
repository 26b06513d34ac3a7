from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from readerkit.upstreams import BlobStore, Upstream
from readerkit.upstreams.provenance import (
    Provenance,
    licence_text,
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


def test_what_was_noted_is_read_back(store):
    write_provenance(UPSTREAM, store, NOTED, b"Do as you like.\n")
    assert read_provenance(UPSTREAM, store) == NOTED
    assert licence_text(UPSTREAM, store) == "Do as you like.\n"


def test_each_pin_has_its_own_note(store):
    moved = structs.replace(UPSTREAM, commit="b" * 40)
    write_provenance(UPSTREAM, store, NOTED, b"old")
    assert read_provenance(moved, store) is None
    assert licence_text(moved, store) == ""


def test_source_without_a_licence_keeps_the_one_there_is(store):
    write_provenance(UPSTREAM, store, NOTED, b"Do as you like.\n")
    write_provenance(UPSTREAM, store, replace(NOTED, source="package"), None)
    assert read_provenance(UPSTREAM, store).source == "package"
    assert licence_text(UPSTREAM, store) == "Do as you like.\n"


def test_licence_that_is_not_utf8_is_shown_as_far_as_it_goes(store):
    write_provenance(UPSTREAM, store, NOTED, b"Do as \xff like.\n")
    assert licence_text(UPSTREAM, store) == "Do as \N{REPLACEMENT CHARACTER} like.\n"


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


@pytest.mark.parametrize(
    ("origin", "public"),
    [
        ("installed torch 2.13.0+cpu in /home/me/venv", "installed torch 2.13.0+cpu"),
        ("installed torch 2 in /a in /b", "installed torch 2"),
        ("folder /home/me/torch", "a local folder"),
        (
            "the files checked out in /home/me, a repository of another user",
            "a local folder",
        ),
        ("git file:///home/me/torch at abcdef", "a local git repository at abcdef"),
        ("git https://example.org/x at abcdef", "git https://example.org/x at abcdef"),
        ("package torch 2.13.0 (wheel)", "package torch 2.13.0 (wheel)"),
    ],
)
def test_what_others_read_names_no_path_of_this_machine(origin, public):
    assert replace(NOTED, origin=origin).public == public
