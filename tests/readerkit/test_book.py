"""Notes get their lines, and the lock tells what has become of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from readerkit.anchors import Anchor, Span
from readerkit.content.annotations import ANNOTATIONS
from readerkit.content.book import Book
from readerkit.content.mirrors import MIRROR as MIRROR_FILE
from readerkit.content.resolved_notes import (
    Note,
    Sources,
    check_mirrors,
    lock_differences,
    lock_notes,
    resolve_notes,
)
from readerkit.content.validation import read_document
from readerkit.errors import AnchorError, ContentError
from readerkit.upstreams import Lock, Upstream
from readerkit.upstreams.store import blob_id

COMMIT, OTHER = "a" * 40, "b" * 40
UPSTREAM = Upstream("sample", "Sample", ("lib/*.py",), commit=COMMIT)
SOURCE = """\
import os


def first(x):
    # doubled
    y = double(x)
    return y


def second(x):
    y = triple(x)
    return y
"""
NOTES = """\
- {id: b-second, kind: note, title: T, text: T, concepts: [c],
   at: {file: lib/b.py, symbol: second}}
- {id: triple, kind: note, title: T, text: T, concepts: [c],
   at: {file: lib/a.py, code: "y = triple(x)"}}
- {id: double, kind: note, title: T, text: T, concepts: [c],
   at: {file: lib/a.py, symbol: first, code: "y = double(...)"}}
- {id: a-first, kind: note, title: T, text: T, concepts: [c],
   at: {file: lib/a.py, symbol: first}}
- {id: module, kind: note, title: T, text: T, concepts: [c],
   at: {file: lib/a.py, code: import os}}
"""


def book(notes: str = NOTES, lock: Lock | None = None, mirrors: str = "") -> Book:
    parsed = read_document(notes.encode(), "notes.yaml", ANNOTATIONS)
    assert parsed.faults == []
    annotations = [
        structs.replace(note, upstream="sample") for note in parsed.entries.values()
    ]
    mirror = read_document(mirrors.encode(), "mirror.yaml", MIRROR_FILE)
    return Book(
        {"sample": UPSTREAM},
        {"sample": lock} if lock else {},
        {annotation.id: annotation for annotation in annotations},
        {"m": mirror.value} if mirrors else {},
        {},
        {},
    )


def sources(a: str = SOURCE, b: str = SOURCE) -> Sources:
    files = {"lib/a.py": a.encode(), "lib/b.py": b.encode()}
    return Sources(UPSTREAM, files, files.__getitem__)


def locked(a: str = SOURCE, *, reviewed: bool = True) -> Lock:
    """Return the lock of the sample notes on this source."""
    files = {"lib/a.py": blob_id(a.encode()), "lib/b.py": blob_id(SOURCE.encode())}
    lock = Lock(COMMIT, files)
    lock = lock_notes(lock, resolve_notes(book(), sources(a)), sources(a))
    if not reviewed:
        return lock
    return lock.with_anchors(
        {
            name: replace(anchor, reviewed=anchor.fingerprint.code)
            for name, anchor in lock.anchors.items()
        }
    )


def states(lock: Lock, a: str = SOURCE) -> dict[str, str]:
    notes = resolve_notes(book(lock=lock), sources(a))
    return {note.annotation.id: note.state for note in notes}


# --- resolving ---


def test_notes_come_in_reading_order_with_their_symbols():
    notes = resolve_notes(book(), sources())
    assert [(note.annotation.id, str(note.span), note.symbol) for note in notes] == [
        ("module", "lib/a.py:1", ""),
        ("a-first", "lib/a.py:4-7", "first"),
        ("double", "lib/a.py:6", "first"),
        ("triple", "lib/a.py:11", "second"),
        ("b-second", "lib/b.py:10-12", "second"),
    ]


def test_only_the_chosen_notes_are_resolved():
    whole = book()
    [note] = resolve_notes(
        whole, sources(b="def broken("), [whole.annotations["triple"]]
    )
    assert note.annotation.id == "triple"


def test_no_file_is_read_twice_nor_without_need():
    files = {"lib/a.py": SOURCE.encode(), "lib/b.py": SOURCE.encode()}
    read = []

    def read_file(path: str) -> bytes:
        read.append(path)
        return files[path]

    once = Sources(UPSTREAM, [*files, "lib/unused.py"], read_file)
    resolve_notes(book(), once)
    resolve_notes(book(), once)
    assert sorted(read) == ["lib/a.py", "lib/b.py"]


def test_every_anchor_without_a_place_is_told_where_it_is_written():
    with pytest.raises(ContentError) as caught:
        resolve_notes(book(), sources(a=SOURCE.replace("first", "frist")))
    first, second = map(str, caught.value.faults)
    assert first == (
        "notes.yaml:5:3: double: lib/a.py: no symbol 'first'\n"
        "    did you mean frist? (line 4)"
    )
    assert second.startswith("notes.yaml:7:3: a-first: lib/a.py: no symbol 'first'")


MISSING = {
    "misspelt": ("lib/aa.py", ["did you mean lib/a.py?"]),
    "another folder": ("lab/a.py", ["did you mean lib/a.py?"]),
    "nothing like it": ("setup.cfg", []),
}


@pytest.mark.parametrize(("path", "candidates"), MISSING.values(), ids=MISSING)
def test_file_outside_the_upstream_is_refused_with_the_nearest(path, candidates):
    with pytest.raises(AnchorError) as caught:
        sources().resolve(Anchor(path, symbol="first"))
    assert caught.value.reason == f"sample at {COMMIT[:12]} includes no file '{path}'"
    assert list(caught.value.candidates)[:1] == candidates


def test_file_too_large_is_a_fault_of_its_note():
    with pytest.raises(
        ContentError, match=r"notes\.yaml:1:3: b-second: lib/b\.py: skip"
    ):
        resolve_notes(book(), sources(b="#" * 2_000_001))


# --- states ---


def test_note_that_was_never_locked_is_unlocked():
    assert set(states(Lock(COMMIT)).values()) == {"unlocked"}


def test_locked_note_is_unreviewed_until_a_person_read_it():
    assert set(states(locked(reviewed=False)).values()) == {"unreviewed"}
    assert set(states(locked()).values()) == {"reviewed"}


EDITED = SOURCE.replace("double(x)", "double(x, x)")
MOVED = SOURCE.replace("import os\n", "import os\nimport re\n")
COMMENTED = SOURCE.replace("# doubled", "# twice as much")


def after_moving_the_pin(lock: Lock, a: str) -> Lock:
    """Return the lock that ``fetch --update-lock`` leaves: new files, old anchors."""
    return lock.with_files(OTHER, {**lock.files, "lib/a.py": blob_id(a.encode())})


STATES = {
    "edited": (EDITED, {"double": "changed", "a-first": "changed"}),
    "comments alone": (COMMENTED, {}),
    "moved": (
        MOVED,
        {"double": "unlocked", "a-first": "unlocked", "triple": "unlocked"},
    ),
}


@pytest.mark.parametrize(("a", "other"), STATES.values(), ids=STATES)
def test_state_is_of_the_code_that_is_read_not_of_the_old_lock(a, other):
    reviewed = dict.fromkeys(book().annotations, "reviewed")
    assert states(after_moving_the_pin(locked(), a), a) == {**reviewed, **other}


@pytest.mark.parametrize(
    ("a", "changed"),
    [(EDITED, {"double", "a-first"}), (COMMENTED, set()), (MOVED, set())],
    ids=["edited", "comments alone", "moved"],
)
def test_locking_again_keeps_reviews_and_marks_edited_code(a, changed):
    moved = after_moving_the_pin(locked(), a)
    again = lock_notes(moved, resolve_notes(book(lock=moved), sources(a)), sources(a))
    now = states(again, a)
    assert {name for name, state in now.items() if state == "changed"} == changed
    assert set(now.values()) <= {"changed", "reviewed"}


def test_edited_code_put_back_is_reviewed_again():
    edited = after_moving_the_pin(locked(), EDITED)
    notes = resolve_notes(book(lock=edited), sources(EDITED))
    edited = lock_notes(edited, notes, sources(EDITED))
    back = after_moving_the_pin(edited, SOURCE)
    assert set(states(back).values()) == {"reviewed"}


# --- the lock ---


def test_lock_with_anchors_is_read_back_as_it_was_written():
    lock = locked()
    assert Lock.parse(lock.to_text(), "sample.lock") == lock
    bare = locked(reviewed=False)
    assert Lock.parse(bare.to_text(), "sample.lock") == bare != lock


def test_lock_from_before_anchors_had_blobs_is_still_read():
    lock = locked()
    text = lock.to_text()
    for blob in lock.files.values():
        text = text.replace(f'"blob": "{blob}", ', "")
    old = Lock.parse(text, "sample.lock")
    assert '"blob"' not in text and old != lock
    assert set(states(old).values()) == {"reviewed"}
    assert states(old, EDITED)["double"] == "changed"


def test_lock_of_some_notes_keeps_the_rest_of_the_lock():
    lock = locked()
    [note] = [
        n for n in resolve_notes(book(), sources()) if n.annotation.id == "double"
    ]
    only = lock_notes(lock, [note], sources())
    assert list(only.anchors) == ["double"]
    assert (only.files, only.commit) == (lock.files, lock.commit)
    assert only.anchors["double"] == lock.anchors["double"]


def relock(a: str, notes: str = NOTES) -> Lock:
    found = resolve_notes(book(notes), sources(a))
    return lock_notes(locked(), found, sources(a))


FEWER = NOTES[NOTES.index("- {id: triple") :]
MORE = NOTES + FEWER[: FEWER.index("- {id: double")].replace("triple,", "new,")
DIFFERENCES = {
    "nothing": (SOURCE, NOTES, COMMIT, {}),
    "moved lines": (
        MOVED,
        NOTES,
        COMMIT,
        {
            "a-first": "its place has changed: was lib/a.py:4-7, is lib/a.py:5-8",
            "double": "its place has changed: was lib/a.py:6, is lib/a.py:7",
            "module": "the code after it",
            "triple": "its place has changed: was lib/a.py:11, is lib/a.py:12",
        },
    ),
    "edited code": (
        EDITED,
        NOTES,
        COMMIT,
        {
            "a-first": "its code",
            "double": "its code",
            "module": "the code after it",
            "triple": "the code before it",
        },
    ),
    "edited elsewhere in the function": (
        SOURCE.replace("triple(x)\n    return y", "triple(x)\n    return x"),
        NOTES,
        COMMIT,
        {"a-first": "the code after it", "triple": "the code after it"},
    ),
    "a comment": (COMMENTED, NOTES, COMMIT, {}),
    "another pin": (
        SOURCE,
        NOTES,
        OTHER,
        {"": f"sample has changed: was {COMMIT[:12]}, is {OTHER[:12]}"},
    ),
    "a note less": (
        SOURCE,
        FEWER,
        COMMIT,
        {"b-second": "its place is gone: was lib/b.py:10-12"},
    ),
    "a note more": (SOURCE, MORE, COMMIT, {"new": "its place is new: lib/a.py:11"}),
}


@pytest.mark.parametrize(
    ("a", "notes", "commit", "expected"), DIFFERENCES.values(), ids=DIFFERENCES
)
def test_every_difference_from_the_lock_names_its_part(a, notes, commit, expected):
    pinned = Upstream("sample", "Sample", ("lib/*.py",), commit=commit)
    found = lock_differences(locked(), relock(a, notes), pinned)
    assert found.keys() == expected.keys()
    assert all(str(found[name]).startswith(expected[name]) for name in expected)


def test_review_alone_is_no_difference():
    assert lock_differences(locked(), locked(reviewed=False), UPSTREAM) == {}


# --- mirrors ---

MIRROR = """\
id: m
title: T
idea: I
sections:
- title: S
  relation: same
  upstream: [double, triple]
  mini:
  - {file: lib/a.py, symbol: first}
  - {file: lib/b.py, code: triple(x)}
- {title: R, relation: upstream-only, upstream: [module], why: W}
"""


def test_mini_beside_a_note_is_named_once():
    notes = resolve_notes(book(mirrors=MIRROR), sources())
    minis = {note.annotation.id: note.minis for note in notes}
    assert minis["double"] == minis["triple"] == ("a", "b")
    assert minis["module"] == minis["a-first"] == ()


def test_mini_anchors_that_resolve_have_no_faults():
    assert check_mirrors(book(mirrors=MIRROR), {"minis": sources()}) == []


def test_every_mini_anchor_without_a_place_is_told_where_it_is_written():
    text = MIRROR.replace("symbol: first", "symbol: fist").replace("lib/b", "lib/c")
    first, second = map(str, check_mirrors(book(mirrors=text), {"minis": sources()}))
    assert first.startswith("mirror.yaml:9:5: m: lib/a.py: no symbol 'fist'\n")
    assert second.startswith("mirror.yaml:10:5: m: sample at aaaaaaaaaaaa includes no")


def test_note_without_a_lock_at_all_is_unlocked():
    [note] = resolve_notes(book(), sources(), [book().annotations["module"]])
    assert note == Note(
        book().annotations["module"], Span("lib/a.py", 1, 1), "", "unlocked"
    )
