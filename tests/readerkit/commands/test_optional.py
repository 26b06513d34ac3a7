"""An upstream that a book can go without, and notes that show lines of several."""

from __future__ import annotations

import json
import shutil

import pytest

from readerkit.upstreams import Lock
from readerkit.upstreams.store import blob_id
from tests.helpers import git, make_book, make_repository, write_files
from tests.readerkit.commands.conftest import Desk
from tests.readerkit.quiz.sample import BANK
from tests.readerkit.upstreams.servers import git_server

pytestmark = pytest.mark.sampled

TRAINER = "def main(args):\n    args.sequence_parallel = True\n    return args\n"
NOTES = """\
- id: turned-on
  at: {file: train/main.py, symbol: main, code: args.sequence_parallel = True}
  kind: note
  title: The trainer turns it on
  text: It is on in a stock run.
  starts: [trainer]
  concepts: [all-reduce]
"""
BOTH = """
- id: both
  at: {file: lib/linear.py, symbol: Linear.forward}
  kind: note
  title: Off here
  text: Off, where nobody turns it on.
  starts: [core, layers]
  also:
    - says: The trainer turns it on
      at: {file: train/main.py, symbol: main}
    - says: One step
      at: {file: lib/linear.py, symbol: step}
  concepts: [collectives]
"""
SPANISH = """\
both:
  title: Apagado aquí
  text: Apagado.
  also: [El entrenador lo enciende, Un paso]
"""
QUESTIONS = """\
- id: pick
  type: single
  objective: one
  concepts: [all-reduce]
  difficulty: 1
  prompt: Which of these is so?
  options:
    - text: the trainer decides
      right: true
      claims:
        - says: the trainer decides
          stands: {file: train/main.py, symbol: main}
    - text: it stays off
      why: A line turns it on.
      at: {upstream: trainer, file: train/main.py, symbol: main}
    - {text: nobody knows, why: A note says so., note: turned-on}
  explanation: By its lines.
  notes: [both]
"""
DIAGRAM = """\
title: It is turned on
alternative: The trainer turns it on.
claims:
  - {node: a, upstream: trainer, at: {file: train/main.py, symbol: main}, holds: [main]}
"""
MISSING = "Trainer was not fetched, and no package carries it: readerkit fetch trainer"


@pytest.fixture
def desk(tmp_path, capsys) -> Desk:
    """A book on two repositories; nobody serves the second, which is optional."""
    made = make_book(tmp_path)
    repository = tmp_path / "served" / "trainer"
    commit = make_repository(repository, {"train/main.py": TRAINER, "LICENSE": "MIT"})
    path = made.path("upstreams.yaml")
    trainer = {
        "name": "trainer",
        "title": "Trainer",
        "url": f"file://{tmp_path}/nowhere",
        "commit": commit,
        "include": ["train/*.py"],
        "licence": {"spdx": "MIT", "path": "LICENSE", "holder": "Somebody"},
        "optional": True,
    }
    path.write_text(json.dumps([*json.loads(path.read_text()), trainer]))
    blobs = {"train/main.py": blob_id(TRAINER.encode())}
    notes = made.path("sample/linear.yaml")
    write_files(
        made.path("."),
        {
            "trainer.lock": Lock(commit, blobs).to_text(),
            "trainer/main.yaml": NOTES,
            "sample/linear.yaml": notes.read_text() + BOTH,
            "sample/linear.es.yaml": SPANISH,
            "../site/pages/diagrams/d.mmd": 'flowchart LR\n  a["main"] --> b["on"]\n',
            "../site/pages/diagrams/d.yaml": DIAGRAM,
        },
    )
    return Desk(made, capsys)


@pytest.fixture
def fetched(desk, tmp_path) -> Desk:
    """The same, both upstreams fetched once, and every anchor locked."""
    own = str(tmp_path / "served" / "trainer")
    assert desk.run("fetch", "trainer", "--source", own).code == 0
    assert desk.run("annotate", "--update-lock").code == 0
    return desk


@pytest.fixture
def without(fetched) -> Desk:
    """The same, on a machine where only the first can be had."""
    assert fetched.run("cache", "trainer", "--remove", "--yes").code == 0
    return fetched


# --- one that cannot be had ---


def test_all_that_can_be_fetched_is_and_one_line_tells_of_the_rest(desk):
    done = desk.run("fetch")
    assert (done.code, done.err) == (0, "")
    assert "sample: its one file is that of v1" in done.out
    [line] = [row for row in done.out.splitlines() if "Trainer" in row]
    assert line.startswith(MISSING)


def test_whoever_asks_for_it_by_name_is_told_why_it_cannot_be_had(desk):
    done = desk.run("fetch", "trainer")
    assert done.code == 1
    assert "git: " in done.err and "--source PATH" in done.err


@pytest.mark.parametrize("how", ["git", "folder", "checkout"])
def test_it_is_brought_once_and_stays(how, without, tmp_path, monkeypatch):
    repository = tmp_path / "served" / "trainer"
    source = str(repository)
    if how == "folder":
        shutil.rmtree(repository / ".git")
    if how == "git":
        path = without.book.path("upstreams.yaml")
        with git_server(tmp_path / "served") as server:
            nowhere = f"file://{tmp_path}/nowhere"
            text = path.read_text().replace(nowhere, server.url("trainer"))
            path.write_text(text)
            assert without.run("fetch", "trainer").code == 0
    else:
        assert without.run("fetch", "trainer", "--source", source).code == 0
    done = without.run("annotate", "--check")
    assert (done.code, "not held" in done.out) == (0, False)
    assert MISSING not in without.run("annotate", "trainer").out


def test_a_checkout_of_another_commit_is_refused(without, tmp_path):
    repository = tmp_path / "served" / "trainer"
    write_files(repository, {"train/main.py": TRAINER + "\n"})
    git(repository, "commit", "--all", "--quiet", "--message", "another")
    shutil.rmtree(repository / ".git")
    done = without.run("fetch", "trainer", "--source", str(repository))
    assert done.code == 1
    assert "1 of 1 file" in done.err and "differ" in done.err


def test_nothing_fails_without_it_and_each_says_what_is_missing(without, tmp_path):
    for arguments in (["annotate", "trainer"], ["annotate", "turned-on"]):
        done = without.run(*arguments)
        assert (done.code, done.err) == (0, "")
        assert "train/main.py:2" in done.out
        assert MISSING in done.out
    checked = without.run("annotate", "--check")
    assert checked.code == 0, checked.err
    assert f"trainer: 2 anchors not held. {MISSING}" in checked.out
    plain = json.loads(without.run("annotate", "--check", "--json").out)
    assert plain["ok"] and plain["upstreams"][1]["absent"].startswith(MISSING)
    kept = json.loads(without.run("annotate", "trainer", "--json").out)
    assert [(n["state"], n["lit"]) for n in kept] == [("absent", [])]
    before = without.book.path("trainer.lock").read_bytes()
    assert MISSING in without.run("annotate", "--update-lock").out
    assert without.book.path("trainer.lock").read_bytes() == before


def test_a_quiz_goes_on_without_it(fetched):
    bank = BANK.replace("  - {id: two, title: The second, source: Nowhere}\n", "")
    write_files(
        fetched.book.root / "quizzes/7", {"b.yaml": QUESTIONS, "bank.yaml": bank}
    )
    linted = fetched.run("quiz", "lint", "--update-lock")
    assert linted.code == 0, linted.err
    lock = (fetched.book.root / "quizzes/7/keys.lock").read_bytes()
    fetched.run("cache", "trainer", "--remove", "--yes")
    linted = fetched.run("quiz", "lint", "--update-lock")
    assert linted.code == 0, linted.err
    assert (fetched.book.root / "quizzes/7/keys.lock").read_bytes() == lock
    checked = fetched.run("annotate", "--check")
    assert (checked.code, "1 question" in checked.out) == (0, True), checked.err


@pytest.mark.further
def test_who_needs_its_lines_is_told_how_to_get_them(without):
    for arguments in (["review", "turned-on"], ["note", "train/main.py:2"]):
        done = without.run(*arguments)
        assert done.code == 1
        assert MISSING in done.err


def test_a_note_that_the_lock_lacks_is_a_fault(without):
    path = without.book.path("trainer.lock")
    path.write_text(Lock.parse(path.read_text(), "").with_anchors({}).to_text())
    done = without.run("annotate", "--check")
    assert done.code == 1
    assert "turned-on: its lock does not hold it. Trainer was not fetched" in done.err


# --- starts, and lines of another upstream ---


def test_other_lines_are_locked_where_they_stand(fetched):
    sample, trainer = (
        Lock.parse(fetched.book.path(f"{name}.lock").read_text(), "").anchors
        for name in ("sample", "trainer")
    )
    assert {*sample} == {"close", "whole-step", "both", "both+2"}
    assert {*trainer} == {"turned-on", "both+1"}
    path = fetched.book.path("sample/linear.yaml")
    text = path.read_text().replace("symbol: main}", "symbol: main, code: return ...}")
    path.write_text(text)
    done = fetched.run("annotate", "--check")
    assert done.code == 1
    assert "both+1: its place has changed: was train/main.py:1-3, is" in done.err


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("file: train/other.py", "includes no file 'train/other.py'"),
        ("file: elsewhere.py", "lines of a file that no upstream includes"),
        ("file: train/main.py, code: nothing()", "no match for 'nothing()' in main"),
    ],
)
@pytest.mark.further
def test_lines_that_are_not_there_are_a_fault_at_their_place(written, said, fetched):
    path = fetched.book.path("sample/linear.yaml")
    text = path.read_text().replace("file: train/main.py", written)
    path.write_text(text)
    line = 1 + text.splitlines().index("    - says: The trainer turns it on")
    done = fetched.run("annotate", "--check")
    assert done.code == 1
    assert f"sample/linear.yaml:{line}:" in done.err
    assert said in done.err


@pytest.mark.further
def test_a_note_shows_its_other_lines_and_what_it_speaks_of(fetched):
    shown = fetched.run("annotate", "both").out
    assert "Holds for  core alone, the default layers" in shown
    for row in ("Also: Trainer", "The trainer turns it on", *TRAINER.splitlines()):
        assert row in shown
    assert "Also: Sample" in shown and "© Somebody, MIT" in shown
    spanish = fetched.run("annotate", "both", "--lang", "es").out
    assert "Vale para  el núcleo solo, las capas por defecto" in spanish
    assert "También: Trainer" in spanish and "El entrenador lo enciende" in spanish
    [plain] = [json.loads(fetched.run("annotate", "both", "--json").out)]
    assert plain["starts"] == ["core", "layers"]
    assert [(a["upstream"], a["path"], a["state"]) for a in plain["also"]] == [
        ("trainer", "train/main.py", "unreviewed"),
        ("sample", "lib/linear.py", "unreviewed"),
    ]


def test_reviewing_a_note_reviews_its_other_lines(fetched):
    said = fetched.run("review", "both").out
    assert [row.partition(":")[0] for row in said.splitlines()] == [
        "both",
        "both+2",
        "both+1",
    ]
    [plain] = [json.loads(fetched.run("annotate", "both", "--json").out)]
    assert {plain["state"], *(each["state"] for each in plain["also"])} == {"reviewed"}


def test_notes_are_found_by_what_they_speak_of_and_by_what_they_say(fetched):
    def ids(*arguments: str) -> list[str]:
        rows = fetched.run("annotate", *arguments).out.splitlines()
        return [row.partition("\t")[0] for row in rows if "\t" in row]

    assert ids("--start", "trainer") == ["turned-on"]
    assert ids("--start", "layers") == ["both"]
    assert ids("--grep", "trainer turns") == ["both", "turned-on"]
    assert fetched.run("annotate", "--start", "nobody").code == 2


def test_the_translation_of_what_other_lines_say_goes_out_of_date(fetched):
    [note] = [
        each
        for each in json.loads(fetched.run("annotate", "--check", "--json").out)[
            "upstreams"
        ][0]["translations_to_check"]
    ]
    path = fetched.book.path("sample/linear.es.yaml")
    stamped = f"both:\n  of: {note['now']}\n"
    path.write_text(path.read_text().replace("both:\n", stamped))
    assert "once it says" not in fetched.run("annotate", "--check").out
    path = fetched.book.path("sample/linear.yaml")
    path.write_text(path.read_text().replace("says: One step", "says: A step"))
    done = fetched.run("annotate", "--check")
    assert "both (es): also" in done.out


@pytest.mark.further
def test_the_site_shows_both_and_goes_without_one(fetched, tmp_path):
    site = tmp_path / "site"
    page = site / "read" / "sample" / "lib" / "linear.py.html"
    trainer = site / "read" / "trainer" / "train" / "main.py.html"
    assert fetched.run("site", "build", "--output", str(site)).code == 0
    text = page.read_text()
    assert "The trainer turns it on" in text and "El entrenador lo enciende" in text
    assert 'href="../../../read/trainer/train/main.py.html#L2"' in text
    assert "Somebody" in text  # whose lines they are
    assert "core alone" in text and "el núcleo solo" in text
    fetched.run("cache", "trainer", "--remove", "--yes")
    assert fetched.run("site", "build", "--output", str(site)).code == 0
    assert "Trainer was not fetched" in page.read_text()
    assert "sequence_parallel = " not in trainer.read_text()
    assert 'id="turned-on"' in trainer.read_text()
    assert "Trainer no se trajo" in trainer.read_text()
