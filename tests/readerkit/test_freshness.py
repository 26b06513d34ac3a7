"""One freshness: whatever is derived says which part of it is another today."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest
from msgspec import structs

from mini_impls.demos.lab import environment
from readerkit.app.interface_translation import say_in
from readerkit.app.library import open_library
from readerkit.app.records import find_stale, read_records
from readerkit.content.resolved_notes import lock_differences
from readerkit.labs.measured import check_origin
from readerkit.labs.results import FsdpResult, read_result
from readerkit.model.freshness import Change, changes, digest_all, outdated, tell
from readerkit.quiz.lockfile import LockedFact, QuizLock, differences
from readerkit.site.inputs import STATE, find_inputs, read_built
from tests.helpers import ROOT, make_book, run_process

OLD = "0" * 40


def test_parts_change_come_and_go_in_their_order():
    was, now = {"b": OLD, "a": "1", "gone": "x"}, {"a": "2", "b": OLD, "new": "y"}
    assert changes(was, now) == [
        Change("a", "1", "2"),
        Change("gone", "x", ""),
        Change("new", "", "y"),
    ]
    assert [each.part for each in outdated(was, now)] == ["a", "gone"]
    assert changes(was, was) == []
    assert digest_all(was) == digest_all(dict(reversed(was.items()))) != digest_all(now)


def test_only_the_first_changes_are_told_and_digests_are_cut():
    five = changes({}, {f"part{n}": OLD for n in range(5)})
    assert tell(five).count(f"is new: {OLD[:12]}") == 3
    assert tell(five).endswith("; + 2")
    assert tell(five[:1], say_in("es")) == f"part0 es nuevo: {OLD[:12]}"


# --- each of the six, with one part of it changed ---


def record(tmp_path):
    library = open_library(ROOT)
    known = next(r for r in read_records(library) if r.comparison == "ddp_torch")
    path = "mini_impls/ddp.py"
    minis = {**known.blobs["minis"], path: OLD}
    other = structs.replace(known, blobs={**known.blobs, "minis": minis})
    assert find_stale(library, known) == []
    return find_stale(library, other), f"minis: {path}"


def anchor(tmp_path):
    library = open_library(ROOT)
    lock, upstream = library.book.locks["pytorch"], library.upstream("pytorch")
    name, known = next(iter(lock.anchors.items()))
    marks = replace(known.fingerprint, before=OLD)
    other = {**lock.anchors, name: replace(known, fingerprint=marks)}
    assert lock_differences(lock, lock, upstream) == {}
    found = lock_differences(lock.with_anchors(other), lock, upstream)
    return [found[name]], "the code before it"


def quiz_key(tmp_path):
    lock = QuizLock({}, {"count": LockedFact(8, {"tp.json": OLD})}, {})
    assert differences(lock, lock) == []
    now = QuizLock({}, {"count": LockedFact(9, {"tp.json": OLD})}, {})
    return differences(lock, now), "count"


def translation(tmp_path):
    book = open_library(ROOT).book
    name, said = next(iter(book.translations["es"].items()))
    stamp = book.annotations[name].stamp
    assert said.changes(stamp) == []
    first, *rest = stamp.split()
    part = first.partition("-")[0]
    return said.changes(" ".join([f"{part}-00000000", *rest])), part


def lab_result(tmp_path):
    path = tmp_path / "result.json"
    mini = {"mini_impls/fsdp.py": OLD}
    plain = {"lab": "04", "made": "now", "command": "lab", "world_size": 2}
    more = {"rounds": 3, "steps": [], "environment": environment("gloo")}
    path.write_text(json.dumps({**plain, **more, "made_from": mini}))
    result = read_result(FsdpResult, "04", path)
    assert check_origin(result, mini).state == "met"
    found = check_origin(result, {"mini_impls/fsdp.py": "1" * 40})
    assert str(outdated(mini, {"mini_impls/fsdp.py": "1" * 40})[0]) in found.evidence
    return outdated(result.made_from, {}), "mini_impls/fsdp.py"


def site(tmp_path):
    book = make_book(tmp_path)
    was, note = find_inputs(book.root).made_from(), book.path("sample/linear.yaml")
    note.write_text(note.read_text() + "# changed\n")
    return changes(was, find_inputs(book.root).made_from()), str(note)


@pytest.mark.parametrize(
    "derived", [record, anchor, quiz_key, translation, lab_result, site]
)
def test_whatever_is_derived_names_the_part_that_changed(derived, tmp_path):
    [change], part = derived(tmp_path)
    assert change.part == part
    assert str(change).startswith(f"{part} has changed: was " if change.now else part)


# --- as a user sees it ---


@pytest.mark.further
@pytest.mark.parametrize(
    ("old", "new", "codes"),
    [
        ('wrong: "# the factor is left out"', 'wrong: "pass"', ["sum-for-mean"]),
        pytest.param(
            "title: the gradients are added up",
            "title: They are added up",
            [],
            marks=pytest.mark.slow,
        ),
    ],
    ids=["what it does", "what is said of it"],
)
def test_a_changed_fault_makes_its_quiz_key_stale(
    old, new, codes, tmp_path, real_cache
):
    for package in ("readerkit", "mini_impls"):
        # With what is compiled of it, which holds for a copy of the same time.
        shutil.copytree(ROOT / package, tmp_path / package)
    known = tmp_path / "mini_impls" / "faults" / "faults.yaml"
    assert old in known.read_text()
    known.write_text(known.read_text().replace(old, new, 1))
    path = {"PYTHONPATH": str(tmp_path)}
    book = ("--book", str(ROOT))
    done = run_process("quiz", "lint", "35", *book, environment=path, cwd=tmp_path)
    assert done.code == (1 if codes else 0), done.err
    for name in codes:
        assert "data_parallel.yaml" in done.err and "ddp-fault-sum" in done.err
        assert f"the fault ddp/{name} has changed: was " in done.err
        assert "ddp-fault-microbatch" not in done.err


def test_a_build_says_what_it_is_made_anew_for(tmp_path):
    book = make_book(tmp_path)
    where = ("site", "build", "--book", str(book.root), "--output", str(tmp_path / "s"))
    assert "has changed" not in run_process(*where).out
    note = book.path("sample/linear.yaml")
    note.write_text(note.read_text() + "# changed\n")
    assert f"{note} has changed: was " in run_process(*where).out
    assert "nothing changed" in run_process(*where).out


@pytest.mark.parametrize("state", ["[]", '{"made_from": {"a": 1}, "files": {}}', "{"])
def test_a_state_of_a_site_that_is_none_is_built_over(state, tmp_path):
    (tmp_path / STATE).write_text(state)
    assert read_built(tmp_path) is None
