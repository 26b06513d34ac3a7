"""``quiz export`` of a bank: Anki opens it; files are whole or not there."""

from __future__ import annotations

import json
import time
import zipfile
from pathlib import Path

import pytest

from tests.gift_reader import read_gift
from tests.helpers import run, run_process
from tests.readerkit.commands.test_quiz import book, template

pytestmark = pytest.mark.sampled

__all__ = ["book", "template"]


@pytest.fixture
def anki():
    """Anki's own library, and the one that writes its files."""
    pytest.importorskip("genanki", reason="pip install -e '.[test]'")
    return pytest.importorskip("anki.collection", reason="pip install -e '.[test]'")


def exported(capsys, book: Path, form: str, file: Path, *more: str) -> Path:
    where = ("--phase", "7", "--book", str(book))
    done = run(capsys, "quiz", "export", f"--{form}", str(file), *where, *more)
    assert done.code == 0, done.err
    assert done.out == f"wrote {file}\n"
    return file


def imported(anki, collection, file: Path):
    options = anki.ImportAnkiPackageOptions()
    request = anki.ImportAnkiPackageRequest(package_path=str(file), options=options)
    return collection.import_anki_package(request).log


@pytest.mark.further
def test_deck_opens_in_anki_and_is_brought_up_to_date(anki, book, capsys, tmp_path):
    file = exported(capsys, book, "anki", tmp_path / "deck.apkg")
    collection = anki.Collection(str(tmp_path / "collection.anki2"))
    log = imported(anki, collection, file)
    assert (len(log.new), len(log.updated), len(log.conflicting)) == (10, 0, 0)

    [found] = collection.find_notes("tag:kind::single tag:difficulty::1 tag:topic::all")
    note = collection.get_note(found)
    fields = dict(note.items())
    assert fields["Id"] == "pick" and "a copy" in fields["Question"]
    assert "a reduction over" in fields["Answer"]
    assert "<b>a copy</b>: Nothing is summed." in fields["Wrong"]
    assert "https://" in fields["Wrong"], "lines that refute it have their address"
    assert "Because of" in fields["Explanation"]
    [card] = note.cards()
    assert "Because of" not in card.question() and "Because of" in card.answer()
    assert ".nightMode" in card.question()
    line = collection.get_note(collection.find_notes("Id:line")[0])
    assert "<pre>" in line["Question"] and "output_" in line["Question"]
    grid = collection.get_note(collection.find_notes("Id:grid")[0])
    assert "<table>" in grid["Question"] and "<th>shape</th>" in grid["Question"]

    questions = book / "quizzes" / "7" / "all.yaml"
    text = questions.read_text()
    questions.write_text(text.replace("Nothing is summed.", "No sum is made."))
    first = time.time()
    while int(time.time()) == int(first):  # Anki keeps the second of a change
        time.sleep(0.05)
    again = exported(capsys, book, "anki", file)
    log = imported(anki, collection, again)
    assert (len(log.new), len(log.updated)) == (0, 10)
    assert "No sum is made." in collection.get_note(found)["Wrong"]
    spanish = exported(capsys, book, "anki", tmp_path / "es.apkg", "--lang", "es")
    log = imported(anki, collection, spanish)
    assert (len(log.new), len(log.updated)) == (10, 0)
    assert collection.note_count() == 20
    collection.close()


def test_deck_is_refused_in_a_line_without_genanki(book, tmp_path):
    (tmp_path / "genanki.py").write_text("raise ImportError('not installed')\n")
    where = ("--phase", "7", "--book", str(book), "--anki", str(tmp_path / "a.apkg"))
    done = run_process(
        "quiz", "export", *where, environment={"PYTHONPATH": str(tmp_path)}
    )
    assert done.code == 1
    [line] = done.err.splitlines()
    assert "pip install 'readerkit-distributed[anki]'" in line
    assert not (tmp_path / "a.apkg").exists()


def test_moodle_gets_a_category_for_each_topic(book, capsys, tmp_path):
    file = exported(capsys, book, "gift", tmp_path / "a.gift", "--seed", "3")
    read = {each.name: each for each in read_gift(file.read_text())}
    assert {each.category for each in read.values()} == {"readerkit 7/all"}
    assert {name: each.kind for name, each in read.items()} == {
        "pick": "multichoice",
        "several": "multichoice",
        "bytes": "numerical",
        "steps": "match",
        "pairs": "match",
        "gap": "shortanswer",
        "line": "numerical",
        "row": "shortanswer",
        "grid": "match",
        "essay": "essay",
    }
    screen = run_process(
        *("quiz", "export", "--gift", "-", "--phase", "7", "--seed", "3"),
        *("--book", str(book)),
    )
    assert screen.out == file.read_text()
    assert "for a person to mark: essay" in screen.err


def test_package_is_a_zip_and_filters_choose(book, capsys, tmp_path):
    more = ("--kind", "fill", "--kind", "locate")
    file = exported(capsys, book, "qti", tmp_path / "a.zip", *more)
    with zipfile.ZipFile(file) as archive:
        names = set(archive.namelist())
    assert names == {"imsmanifest.xml", "test.xml", "items/gap.xml", "items/line.xml"}


def test_question_without_its_lines_is_left_out_and_named(
    book, capsys, tmp_path, monkeypatch
):
    monkeypatch.setenv("READERKIT_CACHE", str(tmp_path / "nothing"))
    monkeypatch.setenv("READERKIT_SCHEMES", "file")
    where = ("--phase", "7", "--book", str(book))
    done = run(capsys, "quiz", "export", "--gift", str(tmp_path / "a"), *where)
    assert (done.code, done.err.count("left out")) == (0, 1), done.err
    assert len(read_gift((tmp_path / "a").read_text())) == 9


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("a.json", "--gift", "b"), 2, "several files"),
        (("--gift", "a", "--qti", "b"), 2, "several files"),
        (("--topic", "all"), 2, "beside filters"),
        (("--seed", "3"), 2, "beside filters"),
        (("--gift", "a", "--phase", "8"), 2, "no quiz of phase 8"),
        (("--gift", "a", "--phase", "7", "--kind", "what"), 2, "unknown kind"),
        (("--gift", "here/a", "--phase", "7"), 2, "got no folder"),
        (("no/such/a.json",), 2, "got no folder"),
    ],
    ids=str,
)
def test_what_cannot_be_exported_leaves_no_file(book, tmp_path, arguments, code, said):
    (tmp_path / "here").write_text("a file")
    before = sorted(tmp_path.iterdir())
    where = ("--book", str(book), "--json")
    done = run_process("quiz", "export", *arguments, *where, cwd=tmp_path)
    told = json.loads(done.out)
    assert (done.code, told["type"], said in told["text"]) == (code, "error", True)
    assert sorted(tmp_path.iterdir()) == before


def test_a_file_that_was_named_is_sent_to_no_other_folder(book, capsys):
    done = run(capsys, "quiz", "export", "/proc/answers.json")
    assert done.code == 1 and "cannot write /proc/answers.json" in done.err
    assert "READERKIT_DATA" not in done.err
