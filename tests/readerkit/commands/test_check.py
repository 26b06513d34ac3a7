"""``annotate --check``: green only where nothing in the book is wrong."""

import json
import shutil
from pathlib import Path

import pytest

from tests.helpers import (
    SampleBook,
    made_once,
    make_book,
    run,
    run_process,
    write_files,
)
from tests.readerkit.quiz.sample import BANK

pytestmark = pytest.mark.sampled

OURS = "class Bucket:\n    def wait(self):\n        return self.sum\n"
FOLDER = {"name": "ours", "title": "Ours", "folder": "ours", "include": ["ours/*.py"]}
OUR_NOTE = """\
- id: our-wait
  at: {file: ours/bucket.py, symbol: Bucket.wait}
  kind: note
  title: Waiting
  text: The sum is there.
  concepts: [all-reduce]
"""
MIRROR = """\
id: closing
title: Closing a layer
idea: Sum what the ranks hold.
sections:
  - title: the sum
    relation: same
    upstream: [close]
    mini: [{file: ours/bucket.py, symbol: Bucket.wait}]
"""
CHAPTER = """\
# Why

Half the bytes: $2n$.

```note close
```

```diagram flow
```

```let
all = 2 * 3
```
"""
FLOW = 'flowchart TB\n  a["in"] --> b["forward"]\n'
CLAIMS = """\
title: The flow
alternative: One box after another.
claims:
  - {node: b, upstream: sample, holds: [all_reduce],
     at: {file: lib/linear.py, symbol: Linear.forward}}
"""
PATHS = """\
failures:
  - {id: stuck, symptom: It hangs., cause: One rank waits., notes: [close]}
pairs:
  - {id: sums, memory: all-reduce, coordination: collectives, wire: Bytes.,
     notes: [our-wait]}
"""
QUESTIONS = """\
- id: pick
  type: single
  objective: one
  concepts: [all-reduce]
  difficulty: 1
  prompt: Which of these sums?
  options:
    - text: a reduction
      right: true
      claims:
        - says: a reduction
          stands: {file: lib/linear.py, symbol: Linear.forward}
    - {text: a copy, why: Nothing is summed., note: close}
    - text: a wait
      why: It sends nothing.
      at: {upstream: sample, file: lib/linear.py, symbol: step}
  explanation: By its name.
  notes: [close]
"""
FLOATS = "on a folder, which has no lock to be reviewed against"
ONE_OBJECTIVE = BANK.replace("  - {id: two, title: The second, source: Nowhere}\n", "")
MORE = {
    "ours/bucket.yaml": OUR_NOTE,
    "mirrors/closing.yaml": MIRROR,
    "../ours/bucket.py": OURS,
    "../site/pages/chapters/01-why.md": CHAPTER,
    "../site/pages/diagrams/flow.mmd": FLOW,
    "../site/pages/diagrams/flow.yaml": CLAIMS,
    "../site/pages/paths.yaml": PATHS,
    "../site/pages/labs/01.md": "# A lab\n\n```note close\n```\n",
    "../quizzes/7/bank.yaml": ONE_OBJECTIVE,
    "../quizzes/7/all.yaml": QUESTIONS,
}


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """A book with a part of every kind, locked, in which nothing is wrong."""

    def make(folder):
        book = make_book(folder, more=MORE)
        pins = book.path("upstreams.yaml")
        pins.write_text(json.dumps([*json.loads(pins.read_text()), FOLDER]))
        at = ("--book", str(book.root))
        own = {name: str(folder / name) for name in ("READERKIT_CACHE", "HOME")}
        own["READERKIT_SCHEMES"] = "file"
        for command in (
            ["annotate", "--update-lock"],
            ["quiz", "lint", "--update-lock"],
        ):
            done = run_process(*command, *at, environment=own)
            assert done.code == 0, done.err

    return made_once(tmp_path_factory, "whole-book", make)


@pytest.fixture
def whole(template, tmp_path):
    """A copy of it, fetched."""
    shutil.copytree(template / "READERKIT_CACHE", tmp_path / "cache")
    root = Path(shutil.copytree(template / "book", tmp_path / "book"))
    return SampleBook(root, template / "served" / "sample", "")


def test_a_whole_book_is_green_and_says_what_was_held(whole, capsys):
    at = ("--book", str(whole.root))
    done = run(capsys, "annotate", "--check", *at)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "sample: 2 anchors, all as the lock says",
        "  not reviewed against this code yet: close, whole-step",
        "ours: 1 anchor of notes, 1 anchor of mirrors, each found; a folder has no "
        "lock, so that nothing tells when its code changes",
        "held too: 1 mirror, 1 chapter, 1 lab, 1 diagram, 2 paths, 1 question",
        "claims: 1 sentence held",
    ]
    report = json.loads(run(capsys, "annotate", "--check", "--json", *at).out)
    assert (report["ok"], report["faults"]) == (True, [])
    [sample, ours] = report["upstreams"]
    assert sample["not_reviewed"] == ["close", "whole-step"]
    assert (ours["locked"], ours["anchors"], ours["mirrored"]) == (False, 1, 1)
    assert report["concepts"] == {"concepts": 2, "translations_to_check": []}
    assert report["mirrors"] == {"mirrors": 1, "translations_to_check": []}


# What is wrong: the file, what it says and ought not to, and what is told of it.
BROKEN = {
    "an anchor": (
        "annotations/sample/linear.yaml",
        ("symbol: step", "symbol: stop"),
        "annotations/sample/linear.yaml:12: whole-step: lib/linear.py: no symbol",
    ),
    "a file": (
        "annotations/sample/linear.yaml",
        ("lib/linear.py, symbol: step", "lib/lines.py, symbol: step"),
        "annotations/sample/linear.yaml:12: whole-step: sample at",
    ),
    "an anchor in a folder": (
        "annotations/ours/bucket.yaml",
        ("Bucket.wait", "Bucket.NOSUCH"),
        "annotations/ours/bucket.yaml:1: our-wait: ours/bucket.py: no symbol "
        "'Bucket.NOSUCH'",
    ),
    "the code of a folder": (
        "ours/bucket.py",
        ("def wait", "def await_sum"),
        "annotations/ours/bucket.yaml:1: our-wait: ours/bucket.py: no symbol",
    ),
    "a mirror into a folder of any name": (
        "annotations/mirrors/closing.yaml",
        ("Bucket.wait", "Bucket.weight"),
        "annotations/mirrors/closing.yaml:8: closing: ours/bucket.py: no symbol "
        "'Bucket.weight'",
    ),
    "a mirror into no folder": (
        "annotations/mirrors/closing.yaml",
        ("ours/bucket.py", "minis/bucket.py"),
        "annotations/mirrors/closing.yaml:8: a mini that no folder of upstreams.yaml "
        "includes: got 'minis/bucket.py', expected a file of ours",
    ),
    "a mirror's note": (
        "annotations/mirrors/closing.yaml",
        ("[close]", "[clothe]"),
        "annotations/mirrors/closing.yaml:7: unknown annotation: got 'clothe'",
    ),
    "a mirror's event": (
        "annotations/mirrors/closing.yaml",
        (
            "relation: same",
            "relation: same\n    events: [{phase: forward, op: "
            "all_reduce, comparisons: [tiny]}]",
        ),
        "annotations/mirrors/closing.yaml:7: unknown comparison: got 'tiny'",
    ),
    "a reference": (
        "annotations/sample/linear.yaml",
        ("key: paper", "key: papers"),
        "annotations/sample/linear.yaml:10: unknown reference: got 'papers'",
    ),
    "a section": (
        "annotations/sample/linear.yaml",
        ('section: "3"', 'section: "9"'),
        "annotations/sample/linear.yaml:10: unknown section: got '9' of paper",
    ),
    "a note's concept": (
        "annotations/ours/bucket.yaml",
        ("[all-reduce]", "[all-reuse]"),
        "annotations/ours/bucket.yaml:6: unknown concept: got 'all-reuse'",
    ),
    "a concept": (
        "annotations/concepts.yaml",
        ("requires: [collectives]", "requires: [collective]"),
        "annotations/concepts.yaml:4: unknown concept: got 'collective'",
    ),
    "a formula": (
        "annotations/ours/bucket.yaml",
        ("The sum is there.", "The sum $\\frac{1}$ is there."),
        "annotations/ours/bucket.yaml:1: our-wait:",
    ),
    "a lock of no upstream": (
        "annotations/sample.lock",
        None,
        "annotations/samples.lock:1: a lock of no upstream: got 'samples'",
    ),
    "what a lock says": (
        "annotations/sample.lock",
        ('"close": {', '"clone": {'),
        "annotations/sample/linear.yaml:1: close: its place is new",
    ),
    "the note of a path": (
        "site/pages/paths.yaml",
        ("notes: [our-wait]", "notes: [our-weight]"),
        "site/pages/paths.yaml:5: unknown id: got 'our-weight'",
    ),
    "the concept of a path": (
        "site/pages/paths.yaml",
        ("memory: all-reduce", "memory: memory"),
        "site/pages/paths.yaml:4: unknown id: got 'memory'",
    ),
    "the note of a chapter": (
        "site/pages/chapters/01-why.md",
        ("```note close", "```note closed"),
        "site/pages/chapters/01-why.md:5: unknown note: got closed",
    ),
    "the diagram of a chapter": (
        "site/pages/chapters/01-why.md",
        ("```diagram flow", "```diagram flaw"),
        "site/pages/chapters/01-why.md:8: unknown diagram: got flaw",
    ),
    "the sum of a chapter": (
        "site/pages/chapters/01-why.md",
        ("all = 2 * 3", "all = 2 * three"),
        "site/pages/chapters/01-why.md:12: unknown name 'three'",
    ),
    "the formula of a chapter": (
        "site/pages/chapters/01-why.md",
        ("$2n$", "$\\frac{2}$"),
        "site/pages/chapters/01-why.md:3:",
    ),
    "the note of a lab": (
        "site/pages/labs/01.md",
        ("```note close", "```note closed"),
        "site/pages/labs/01.md:3: unknown note: got closed",
    ),
    "the claim of a diagram": (
        "site/pages/diagrams/flow.yaml",
        ("[all_reduce]", "[all_gather]"),
        "site/pages/diagrams/flow.yaml:4:",
    ),
    "the place of a diagram": (
        "site/pages/diagrams/flow.yaml",
        ("Linear.forward", "Linear.backward"),
        "site/pages/diagrams/flow.yaml:5: anchor: lib/linear.py: no symbol",
    ),
    "a drawing": (
        "site/pages/diagrams/flow.mmd",
        ('a["in"] -->', 'a["in" -->'),
        "site/pages/diagrams/flow.mmd:",
    ),
    "a question's anchor": (
        "quizzes/7/all.yaml",
        ("symbol: step", "symbol: stop"),
        "quizzes/7/all.yaml:1: pick: lib/linear.py: no symbol 'stop'",
    ),
    "a question's note": (
        "quizzes/7/all.yaml",
        ("notes: [close]", "notes: [closed]"),
        "quizzes/7/all.yaml:1: pick: no annotation 'closed'",
    ),
    "a quiz's lock": (
        "quizzes/7/keys.lock",
        ("lib/linear.py", "lib/other.py"),
        "quizzes/7/keys.lock:1: phase 7: ",
    ),
    "a record": (
        "annotations/records/tiny.json",
        ("", "{}"),
        "tiny.json:1:",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_check_is_red_where_anything_is_wrong(kind, whole, capsys):
    name, change, told = BROKEN[kind]
    path = whole.root / name
    if change is None:
        path.rename(path.with_name("samples.lock"))
    else:
        before = path.read_text() if path.exists() else ""
        assert change[0] in before
        write_files(whole.root, {name: before.replace(*change, 1) or change[1]})
    at = ("--book", str(whole.root))
    done = run(capsys, "annotate", "--check", "--json", *at)
    report = json.loads(done.out)
    assert (done.code, report["ok"]) == (1, False)
    assert done.err.startswith("readerkit: ") and "Traceback" not in done.err
    rows = [f"{f['file']}:{f['line']}: {f['message']}" for f in report["faults"]]
    assert any(row.startswith(told) or f"/{told}" in row for row in rows), rows


def test_all_that_is_wrong_is_told_at_once(whole, capsys):
    for kind in ("an anchor in a folder", "the note of a path", "a quiz's lock"):
        name, change, _ = BROKEN[kind]
        path = whole.root / name
        path.write_text(path.read_text().replace(*change))
    lock = whole.path("sample.lock")
    lock.write_text(lock.read_text().replace('"close": {', '"clone": {'))
    done = run(capsys, "annotate", "--check", "--json", "--book", str(whole.root))
    files = [fault["file"] for fault in json.loads(done.out)["faults"]]
    assert files == [
        "annotations/ours/bucket.yaml",
        "quizzes/7/keys.lock",
        "site/pages/paths.yaml",
        "annotations/sample.lock",
        "annotations/sample/linear.yaml",
    ]
    assert "book and locks differ in 2 places" in done.err
    plain = run(capsys, "annotate", "--check", "--book", str(whole.root))
    assert (plain.code, plain.out, plain.err) == (1, "", done.err)


def test_what_does_not_resolve_is_no_second_fault_of_the_lock(whole, capsys):
    name, change, _ = BROKEN["an anchor"]
    path = whole.root / name
    path.write_text(path.read_text().replace(*change))
    done = run(capsys, "annotate", "--check", "--json", "--book", str(whole.root))
    report = json.loads(done.out)
    assert [fault["line"] for fault in report["faults"]] == [12]
    assert report["upstreams"][0]["differences"] == []


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(lambda book: book.path("upstreams.yaml").unlink(), id="no-book"),
        pytest.param(lambda book: book.path("sample.lock").unlink(), id="no-lock"),
        pytest.param(
            lambda book: book.path("concepts.yaml").write_text("- ["), id="no-yaml"
        ),
        pytest.param(
            lambda book: (book.repository / "HEAD").parent.rename(
                book.repository.with_name("gone")
            ),
            id="no-source",
        ),
    ],
)
def test_json_is_printed_whatever_fails(harm, tmp_path, capsys):
    book = make_book(tmp_path)
    harm(book)
    done = run(capsys, "annotate", "--check", "--json", "--book", str(book.root))
    assert done.code == 1
    report = json.loads(done.out)
    assert not report["ok"]
    assert all(fault["message"] for fault in report["faults"])
    assert done.err.startswith("readerkit: ")


def test_strict_also_refuses_what_nobody_reviewed(whole, capsys):
    at = ("--book", str(whole.root))
    done = run(capsys, "annotate", "--check", "--strict", "--json", *at)
    report = json.loads(done.out)
    assert (done.code, report["ok"]) == (1, False)
    rows = [(f["file"], f["line"], f["message"]) for f in report["faults"]]
    assert rows == [
        (
            "annotations/sample/linear.yaml",
            line,
            f"{name}: not reviewed against this code: readerkit review {name} --book "
            f"{whole.root}",
        )
        for name, line in (("close", 1), ("whole-step", 12))
    ] + [("annotations/ours/bucket.yaml", 1, f"our-wait: {FLOATS}")]
    assert run(capsys, "review", "close", "whole-step", *at).code == 0
    done = run(capsys, "annotate", "--check", "--strict", *at)
    said = f"readerkit: annotations/ours/bucket.yaml:1:3: our-wait: {FLOATS}\n"
    assert (done.code, done.err) == (1, said)
    whole.path("ours/bucket.yaml").write_text("")
    paths = whole.root / "site" / "pages" / "paths.yaml"
    paths.write_text(paths.read_text().replace("our-wait", "close"))
    assert run(capsys, "annotate", "--check", "--strict", *at).code == 0
    source = whole.path("sample/linear.yaml")
    assert run(capsys, "annotate", "sample", "--check", "--strict", *at).code == 0
    source.write_text(source.read_text().replace("symbol: step", "symbol: Linear"))
    assert run(capsys, "annotate", "--update-lock", *at).code == 0
    assert run(capsys, "annotate", "--check", *at).code == 0
    done = run(capsys, "annotate", "--check", "--strict", *at)
    assert done.code == 1
    assert "whole-step: not reviewed" in done.err and "close:" not in done.err


# --- a folder, which has no lock ---


def test_notes_on_a_folder_are_listed_as_what_they_are(whole, capsys):
    at = ("--book", str(whole.root))
    listed = run(capsys, "annotate", "ours", *at)
    assert (listed.code, listed.err) == (0, "")
    assert "our-wait" in listed.out and "update-lock" not in listed.out
    assert listed.out.splitlines()[0].endswith("\tfloating")
    shown = run(capsys, "annotate", "our-wait", *at).out
    assert "read where it stands: a folder has no lock" in shown
    assert "verified" not in shown and "pinned" not in shown
    held = run(capsys, "annotate", "ours", "--check", *at)
    assert (held.code, held.err) == (0, "")
    assert held.out.startswith("ours: 1 anchor of notes, 1 anchor of mirrors, each")


def test_the_notes_of_a_folder_are_held_where_locks_are_written(whole, capsys):
    at = ("--book", str(whole.root))
    whole.path("mirrors/closing.yaml").unlink()
    whole.path("sample/linear.yaml").write_text("")
    whole.path("../quizzes/7/all.yaml").unlink()
    done = run(capsys, "annotate", "--update-lock", *at)
    assert (done.code, done.out) == (1, "")
    assert "site/pages/paths.yaml:2:69: unknown id: got 'close'" in done.err
    whole.path("../site/pages/paths.yaml").unlink()
    done = run(capsys, "annotate", "--update-lock", *at)
    assert done.code == 0, done.err
    # The lock of the other notes lets go of them, and a folder has none.
    assert done.out.splitlines()[1:] == [
        "sample: 0 anchors locked",
        "ours: 1 anchor found; a folder has no lock",
    ]
    note = whole.path("ours/bucket.yaml")
    note.write_text(note.read_text().replace("Bucket.wait", "Bucket.weight"))
    done = run(capsys, "annotate", "--update-lock", *at)
    assert (done.code, done.out) == (1, "")
    assert "annotations/ours/bucket.yaml:1:3: our-wait: ours/bucket.py: no " in done.err
    note.write_text("")
    done = run(capsys, "annotate", "--update-lock", *at)
    assert (done.code, done.out.count("\n")) == (0, 1)
    assert "has no notes" in done.out


@pytest.mark.parametrize("place", ["ours/bucket.py:2", "bucket.py:2"])
def test_a_note_is_written_on_a_folder(place, whole, capsys, tmp_path):
    at = ("--book", str(whole.root))
    entry = tmp_path / "entry.yaml"
    form = run(capsys, "note", place, "--kind", "note", "--print", *at)
    assert (form.code, form.err) == (0, "")
    text = form.out.replace("title:", "title: T").replace("text: >-", "text: T")
    entry.write_text(text.replace("concepts: []", "concepts: [all-reduce]"))
    done = run(capsys, "note", place, "--from", str(entry), *at)
    assert (done.code, done.err) == (0, ""), text
    assert run(capsys, "annotate", "ours", *at).out.count("floating") == 2
    assert not whole.path("ours.lock").exists()


def test_a_file_that_no_upstream_has_is_answered_from_this_book(whole, capsys):
    at = ("--book", str(whole.root))
    done = run(capsys, "note", "ours/buckets.py:2", *at)
    assert done.code == 2
    assert done.err == (
        "readerkit: no upstream of this book includes a file 'ours/buckets.py', "
        "expected one of sample, ours: did you mean ours/bucket.py?\n"
    )


def test_a_folder_that_mirrors_show_is_not_said_to_have_nothing(whole, capsys):
    at = ("--book", str(whole.root))
    whole.path("ours/bucket.yaml").write_text("")
    paths = whole.root / "site" / "pages" / "paths.yaml"
    paths.write_text(paths.read_text().replace("our-wait", "close"))
    assert run(capsys, "annotate", "ours", *at).out == (
        "# no notes on Ours (a folder, read where it stands), 1 file: mirrors show "
        "1 place in them\n"
    )
    mirror = whole.path("mirrors/closing.yaml")
    mirror.write_text(mirror.read_text().replace("Bucket.wait", "Bucket.weight"))
    for arguments in (["ours"], ["ours", "--check"], ["close"]):
        done = run(capsys, "annotate", *arguments, *at)
        assert done.code == 1
        assert "closing.yaml:8:12: closing: ours/bucket.py: no symbol" in done.err


def test_a_note_on_a_folder_cannot_be_reviewed_and_it_is_said(whole, capsys):
    done = run(capsys, "review", "our-wait", "--book", str(whole.root))
    assert done.code == 2
    assert done.err == (
        "readerkit: our-wait: got a note on a folder, which is read where it stands "
        "and has no lock, expected one on a pinned upstream\n"
    )
