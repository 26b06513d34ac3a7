"""``quiz init``: any folder becomes a book with a quiz of its own."""

from __future__ import annotations

import json

import pytest

from tests.helpers import make_book, run, run_process, run_typed


def test_bank_of_its_own_is_linted_asked_and_followed(tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    where = ("--book", str(tmp_path / "mine"))
    done = run(capsys, "quiz", "init", "36", *where)
    assert done.code == 0, done.err
    assert f"readerkit quiz 36 --book {tmp_path / 'mine'}" in done.out
    lint = run(capsys, "quiz", "lint", "36", *where)
    assert (lint.code, "4 questions" in lint.out) == (0, True), lint.err
    told = json.loads(run(capsys, "quiz", "list", *where, "--json").out)
    assert len({each["kind"] for each in told}) == 4
    with_key = ("quiz", "36", *where, "--only", "example-gap", "--tries", "1")
    assert run_typed(*with_key, stdin="forward\n-\n").code == 0
    open_ = run(capsys, "progress", "36", *where)
    assert open_.code == 1
    assert "Phase 36: 0 of 3 lines met" in open_.out and "rungs" not in open_.out
    assert f"readerkit quiz 36 --exam {' '.join(where)}" in " ".join(open_.out.split())
    run(capsys, "progress", "36", *where, "--waive", "quiz", "--reason", "mine")
    waived = json.loads(run(capsys, "progress", "36", *where, "--json").out)
    assert (waived["phase"], waived["lines"][0]["state"]) == (36, "waived")


def test_spanish_titles_of_a_bank_are_linted_too(tmp_path, capsys):
    where = ("--book", str(tmp_path))
    assert run(capsys, "quiz", "init", "36", *where).code == 0
    sidecar = tmp_path / "quizzes" / "36" / "bank.es.yaml"
    sidecar.write_text("bank: {of: title-00000000, title: Lo mío}\n")
    stale = run(capsys, "quiz", "lint", "36", *where)
    assert stale.code == 0
    assert "bank is of another English: translate it anew, of: title-" in stale.err
    asked = run_typed("quiz", "36", *where, "--lang", "es", stdin="q\n")
    assert asked.out.startswith("[en] ")
    stamp = stale.err.rpartition("of: ")[2].strip()
    sidecar.write_text(
        f"bank: {{of: {stamp}, title: Lo mío}}\nobjectives: {{x: {{}}}}\n"
    )
    wrong = run(capsys, "quiz", "lint", "36", *where)
    assert wrong.code == 1
    assert "no objective: got 'x', expected one of" in wrong.err
    sidecar.write_text(f"bank: {{of: {stamp}, title: Lo mío}}\n")
    assert run(capsys, "quiz", "lint", "36", *where).err == ""
    asked = run_typed("quiz", "36", *where, "--lang", "es", stdin="q\n")
    assert asked.out.startswith("Lo mío")


def test_folder_of_the_book_alone_is_made_where_it_is_not_there(tmp_path, capsys):
    where = ("--book", str(tmp_path / "mine"))
    done = run(capsys, "quiz", "init", "36", *where)
    assert done.code == 0, done.err
    assert run(capsys, "quiz", "lint", "36", *where).code == 0
    (tmp_path / "file").write_text("")
    for wrong in ("file", "no/such"):
        refused = run(capsys, "quiz", "init", "36", "--book", str(tmp_path / wrong))
        assert (refused.code, refused.out) == (2, "")
    assert not (tmp_path / "no").exists()


@pytest.mark.slow
def test_site_shows_a_bank_of_its_own(tmp_path):
    (tmp_path / "mine").mkdir()
    where = ("--book", str(tmp_path / "mine"))
    assert run_process("quiz", "init", "36", *where).code == 0
    out = tmp_path / "site"
    done = run_process("site", "build", "--output", str(out), *where)
    assert done.code == 0, done.err
    pages = "".join(page.read_text() for page in out.glob("quiz/**/*.html"))
    assert "optimizer.____() clears" in pages


def test_book_with_notes_gets_a_choice_too(tmp_path, capsys):
    where = ("--book", str(make_book(tmp_path).root))
    assert run(capsys, "annotate", "--update-lock", *where).code == 0
    assert run(capsys, "quiz", "init", "9", *where).code == 0
    told = json.loads(run(capsys, "quiz", "list", "9", *where, "--json").out)
    assert {"single", "order"} <= {each["kind"] for each in told}
    assert run(capsys, "quiz", "lint", *where).code == 0


def test_nothing_is_overwritten_and_nothing_half_written(tmp_path, capsys):
    root = tmp_path / "mine"
    root.mkdir()
    where = ("--book", str(root))
    run(capsys, "quiz", "init", "36", *where)
    bank = root / "quizzes" / "36" / "bank.yaml"
    bank.write_text(bank.read_text().replace("Phase 36", "My own"))
    again = run_process("quiz", "init", "36", "--json", *where)
    assert (again.code, json.loads(again.out)["type"]) == (2, "error")
    assert "My own" in bank.read_text()
    concepts = root / "annotations" / "concepts.yaml"
    concepts.write_text("- id: nothing\n")
    broken = run(capsys, "quiz", "init", "37", *where)
    assert (broken.code, "concepts.yaml:1" in broken.err) == (1, True)
    assert not (root / "quizzes" / "37").exists()
    assert concepts.read_text() == "- id: nothing\n"
