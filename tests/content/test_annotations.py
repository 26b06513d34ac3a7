"""The book that ships: loads, resolves, equals its locks, and says only what is so."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import pytest

from readerkit.app.library import open_library
from readerkit.content.annotations import TEXT_FIELDS
from readerkit.content.resolved_notes import (
    check_mirrors,
    lock_differences,
    lock_notes,
    resolve_notes,
)
from tests.conftest import REAL_CACHE

pytestmark = pytest.mark.sampled

UPSTREAMS = (
    "megatron",
    "megatron-training",
    "transformer-engine",
    "pytorch",
    "deepspeed",
)
MAX_WORDS = 120
MAX_WORDS_ALONE = 180
"""Of a text that is all its note says."""

# A name in a note's text: `group`, `Layer.forward`, `step()`; not a formula.
NAME = re.compile(r"\.?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(\))?")
WORD = re.compile(rb"[A-Za-z_]\w*")
# Names that papers give and no source spells, and counters of torch's C++ allocator.
FROM_ELSEWHERE = {"P_os", "num_alloc_retries", "memory_stats"}


@cache
def library():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("READERKIT_CACHE", str(REAL_CACHE))
        patch.setenv("READERKIT_DATA", "/nowhere")
        patch.delenv("READERKIT_BOOK", raising=False)
        return open_library()


@cache
def sources(upstream: str):
    return library().sources(library().upstream(upstream))


def at_hand(upstream: str):
    """Return the sources of an upstream; whoever needs one that is absent is skipped.

    ``.ci/run`` brings it from the repository beside the clone.
    """
    if sources(upstream).is_absent:
        pytest.skip(library().upstream(upstream).not_fetched)
    return sources(upstream)


@cache
def words(upstream: str) -> frozenset[str]:
    """Return every name that the included files of an upstream spell."""
    found = {
        word
        for blob in library().lock(library().upstream(upstream)).files.values()
        for word in WORD.findall(library().store.read(blob) or b"")
    }
    return frozenset(word.decode() for word in found)


def annotations():
    """Return the notes whose source is at hand."""
    notes = library().book.annotations.values()
    return [note for note in notes if not sources(note.upstream).is_absent]


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_every_anchor_resolves_to_what_its_lock_says(upstream):
    lock = library().lock(library().upstream(upstream))
    anchored = library().book.anchored_in(upstream)
    notes = resolve_notes(library().book, at_hand(upstream), anchored)
    now = lock_notes(lock, notes, sources(upstream))
    pinned = library().upstream(upstream)
    assert lock_differences(lock, now, pinned) == {}
    assert len(notes) == len(anchored) > 0


def test_every_annotation_is_of_an_upstream_that_is_held_against_a_lock():
    assert {note.upstream for note in annotations()} <= {
        upstream.name for upstream in library().pinned()
    }


def test_every_mini_anchor_of_every_mirror_resolves():
    assert check_mirrors(library().book, {"minis": sources("minis")}) == []


@pytest.mark.parametrize(
    ("upstream", "path"),
    [
        ("megatron", "megatron/core/"),
        ("pytorch", "torch/distributed/fsdp/"),
    ],
)
def test_there_are_notes_and_citations_enough(upstream, path):
    notes = [
        note
        for note in library().book.notes_on(upstream)
        if note.anchor.file.startswith(path)
    ]
    assert len(notes) >= 15
    cited = [
        note
        for note in notes
        if note.kind == "citation" and any(ref.section for ref in note.references)
    ]
    assert len(cited) >= 10


def test_both_generations_of_fsdp_are_read():
    files = [note.anchor.file for note in library().book.notes_on("pytorch")]
    second = [file for file in files if "/fsdp/_fully_shard/" in file]
    first = [file for file in files if "/fsdp/_" in file and file not in second]
    assert len(first) >= 5
    assert len(second) >= 5


def test_citation_says_what_was_decided_instead_of_what_at_what_cost():
    said = ("decision", "alternative", "why", "cost")
    missing = [
        (note.id, field)
        for note in annotations()
        for field in (said if note.kind == "citation" else ("text",))
        if not getattr(note, field)
    ]
    assert missing == []


def test_texts_are_short_enough_to_be_read():
    limits = dict.fromkeys(TEXT_FIELDS, MAX_WORDS) | {"text": MAX_WORDS_ALONE}
    long = [
        (note.id, field)
        for note in annotations()
        for field, limit in limits.items()
        if len(getattr(note, field).split()) > limit
    ]
    assert long + [note.id for note in annotations() if len(note.title) > 80] == []


def named_in(note):
    """Yield the names that the texts of a note give as code, taken apart."""
    for field in TEXT_FIELDS:
        for code in re.findall(r"`([^`\n]+)`", getattr(note, field)):
            match = NAME.fullmatch(code)
            if match and len(match[1]) > 3:
                yield match[1].split(".")


def test_names_in_a_text_are_names_in_the_source():
    known = FROM_ELSEWHERE.union(*(words(at_hand(n).upstream.name) for n in UPSTREAMS))
    unknown = [
        (note.id, word)
        for note in annotations()
        for parts in named_in(note)
        for word in parts
        if len(word) > 3 and word not in known
    ]
    assert unknown == []


def test_most_names_in_the_texts_stand_in_the_annotated_files():
    here = elsewhere = 0
    for note in annotations():
        files = {each.anchor.file for each in (note, *note.also)}
        data = b"\n".join(
            at_hand(name).file(file).data
            for name in UPSTREAMS
            for file in files.intersection(
                library().lock(library().upstream(name)).files
            )
        )
        own = {word.decode() for word in WORD.findall(data)}
        for parts in named_in(note):
            is_here = set(parts) <= own
            here, elsewhere = here + is_here, elsewhere + (not is_here)
    assert here > 5 * elsewhere


def test_anchor_is_narrow_and_holds_no_quotation():
    wide = []
    for note in annotations():
        span = sources(note.upstream).resolve(note.anchor)
        patterns = (note.anchor.code, note.anchor.start, note.anchor.stop)
        if span.last - span.first >= 60 or any(len(p or "") > 160 for p in patterns):
            wide.append(note.id)
    assert wide == []


def test_no_two_notes_stand_on_the_same_lines():
    spans = Counter(
        (note.upstream, sources(note.upstream).resolve(note.anchor))
        for note in annotations()
    )
    assert [span for span, count in spans.items() if count > 1] == []


def test_every_section_that_is_cited_has_its_heading():
    works = library().book.references
    for note in annotations():
        for ref in note.references:
            assert not ref.section or works[ref.key].sections[ref.section], ref


def test_every_upstream_text_stays_out_of_the_book():
    for note in annotations():
        data = sources(note.upstream).file(note.anchor.file).data.decode()
        lines = {line.strip() for line in data.split("\n") if len(line.strip()) > 60}
        for field in TEXT_FIELDS:
            for line in getattr(note, field).split("\n"):
                assert line.strip() not in lines
