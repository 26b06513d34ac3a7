"""A quiz where something is missing or broken: the cause in a line, nothing lost."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from readerkit.app.folders import data_folder
from readerkit.app.quiz_banks import open_history
from readerkit.quiz.history import History
from tests.helpers import ROOT, WAIT_S, run, run_process
from tests.readerkit.commands.test_quiz import (
    book,
    driven,
    template,
    typed,
)
from tests.readerkit.upstreams.full_disk import on_full_disk

__all__ = ["book", "template"]
HISTORY = "quiz.sqlite3"


# --- without source and network ---


@pytest.fixture
def no_source(book, monkeypatch, tmp_path) -> Path:
    """The book with an empty cache, and an upstream that nobody serves."""
    monkeypatch.setenv("READERKIT_CACHE", str(tmp_path / "nothing"))
    monkeypatch.setenv("READERKIT_SCHEMES", "file")
    return book


TWO = ("--only", "line", "--only", "gap", "--seed", "1")


@pytest.mark.further
def test_question_whose_lines_are_missing_is_left_out_and_named(no_source):
    done = typed(no_source, *TWO, answers="no_sync\n")
    assert done.code == 0, done.err
    left_out = " ".join(done.out.split())
    assert "Left out: line. megatron" in left_out
    assert "could serve them; readerkit fetch megatron --book" in left_out
    assert "1/1  all" in done.out
    assert "Score 100% of 1 question" in done.out


@pytest.mark.further
def test_program_is_told_what_is_left_out(no_source):
    with driven("7", "--book", str(no_source), *TWO) as driver:
        assert driver.read()["questions"] == 2
        left_out = driver.read()
        assert (left_out["type"], left_out["id"]) == ("left_out", "line")
        assert "megatron" in left_out["text"]
        assert (driver.read()["id"], driver.say(answer="no_sync")["right"]) == (
            "gap",
            True,
        )
        score = driver.read()
        assert (score["complete"], score["questions"], score["of"]) == (True, 1, 1)
        assert driver.leave() == 0


@pytest.mark.further
def test_exam_that_leaves_something_out_does_not_count(no_source, monkeypatch, capsys):
    where = ("quiz", "7", "--book", str(no_source), "--exam", "--json")
    for _ in range(30):
        done = run_process(*where, stdin='{"skip": true}\n' * 3)
        messages = [json.loads(line) for line in done.out.splitlines()]
        if any(each["type"] == "left_out" for each in messages):
            break
    assert messages[0]["official"]
    assert (messages[-1]["official"], messages[-1]["of"]) == (False, 2)


def test_quiz_of_missing_lines_alone_ends_with_its_cause(no_source):
    done = run_process(
        "quiz", "7", "--book", str(no_source), "--only", "line", "--json", stdin=""
    )
    assert done.code == 1
    error = json.loads(done.out.splitlines()[-1])
    assert (error["type"], error["final"]) == ("error", True)
    assert "nothing is left to ask: megatron" in error["text"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("8",), 2, "no quiz of phase 8"),
        (("7", "--topic", "la"), 2, "unknown topic: got 'la'"),
        (("7", "--resume"), 1, "no quiz was left unfinished"),
        (("7", "--due"), 1, "nothing is due"),
        (("7", "--minutes", "nan"), 2, "got 'nan', expected a finite number"),
        (("7", "--count", "x"), 2, "got 'x', expected a whole number: 1<=x<=500"),
    ],
)
def test_every_failure_is_told_to_programs_too(book, capsys, arguments, code, said):
    done = run(capsys, "quiz", *arguments, "--book", str(book), "--json")
    [line] = done.out.splitlines()
    error = json.loads(line)
    assert (done.code, error["type"], error["final"]) == (code, "error", True)
    assert said in error["text"] and said in done.err


def test_letters_that_are_not_utf8_are_one_wrong_answer(book):
    only = ("--only", "gap", "--tries", "1")
    command = [sys.executable, "-m", "readerkit", "quiz", "7", *only]
    done = subprocess.run(
        [*command, "--book", str(book)], input=b"no\xff\n", capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Score 0% of 1 question" in done.stdout


# --- a history in trouble ---


def change(statement: str) -> None:
    with closing(sqlite3.connect(data_folder() / HISTORY)) as connection:
        connection.execute(statement)
        connection.commit()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE answer SET answered = 'soon' WHERE question = 'gap'",
        "UPDATE answer SET credit = 7 WHERE question = 'gap'",
        "UPDATE session SET questions = '[' WHERE mode = 'practice'",
        "UPDATE session SET deadline = 'never' WHERE mode = 'practice'",
    ],
)
def test_one_damaged_row_stops_nothing_and_is_exported(book, capsys, statement):
    two = ("--only", "gap", "--only", "row", "--only", "bytes")
    typed(book, *two, answers="no_sync\nF0 F1 B0\nq\n")
    change(statement)
    for command in (("stats",), ("stats", "--json"), ("export",)):
        done = run(capsys, "quiz", *command)
        assert done.code == 0, done.err
        assert "1 row left out, as unreadable; first: " in done.err
        assert done.err.count("\n") == 1
    told = json.loads(done.out)
    [damaged] = told["damaged"]
    assert damaged["table"] in statement
    assert len(told["answers"]) + len(told["sessions"]) == 2
    again = typed(book, "--only", "bytes", answers="112\n")
    assert (again.code, "100%" in again.out) == (0, True)
    if "UPDATE answer" in statement:
        resumed = typed(book, "--resume", answers="-\n")
        assert (resumed.code, "3/3" in resumed.out) == (0, True)


@pytest.mark.further
def test_export_has_what_a_damaged_file_still_gives(book, capsys, tmp_path):
    for _ in range(30):
        typed(book, "--only", "gap", "--seed", "1", "--new", answers="no_sync\n")
    path = data_folder() / HISTORY
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM INTO ?", (str(tmp_path / "whole"),))
    for each in path.parent.glob(f"{HISTORY}*"):
        each.unlink()
    whole = (tmp_path / "whole").read_bytes()
    path.write_bytes(whole[: 3 * len(whole) // 4])
    for command in (("stats",), ("undo",)):
        done = run(capsys, "quiz", *command)
        assert (done.code, done.err.count("\n")) == (1, 1)
        assert "it is damaged: readerkit quiz export answers.json writes" in done.err
    done = run(capsys, "quiz", "export", str(tmp_path / "kept.json"))
    assert (done.code, done.err.count("\n")) == (0, 1), done.err
    told = json.loads((tmp_path / "kept.json").read_text())
    count = len(told["answers"])
    assert 0 < count <= 30 and f"damaged: {count} answers could still" in done.err
    path.unlink()
    again = run(capsys, "quiz", "import", str(tmp_path / "kept.json"))
    assert again.code == 0, again.err


AS_SOMEBODY_ELSE = """\
import os, shlex, sys  # what is imported later, somebody else may not read
from pathlib import Path
from readerkit.errors import ReaderkitError
from readerkit.quiz.history import History
os.setuid(65534)
try:
    History.reading(Path(sys.argv[1]))
except ReaderkitError as error:
    print(error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_history_of_somebody_else_is_told_in_a_line(tmp_path):
    History(path := tmp_path / "data" / HISTORY).close()
    asked = [sys.executable, "-c", AS_SOMEBODY_ELSE, str(path)]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=WAIT_S)
    assert (done.stderr, done.stdout.count("\n")) == ("", 1)
    assert "it is not yours, or closed to you" in done.stdout


READ_ONLY = """\
mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"
"""


def read_only(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "readerkit", "quiz", *arguments)
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", READ_ONLY, str(folder), *command],
        capture_output=True,
        text=True,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
    )


def test_history_that_may_only_be_read_is_read(book):
    probe = ["unshare", "--mount", "true"]
    if subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("mounting is forbidden here")
    typed(book, "--only", "gap", answers="no_sync\n")
    before = open_history().answers()
    for left in data_folder().glob(f"{HISTORY}-*"):
        left.touch()
    done = read_only(data_folder(), "export")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(json.loads(done.stdout)["answers"]) == len(before) == 1
    done = read_only(data_folder(), "stats")
    assert (done.returncode, "100% of 1" in done.stdout) == (0, True)
    done = read_only(data_folder(), "7", "--book", str(book), "--json")
    assert done.returncode == 1
    assert "make it and its folder writable" in json.loads(done.stdout)["text"]


@pytest.mark.parametrize("command", ["stats", "export"])
def test_what_only_reads_makes_no_history(capsys, command):
    assert run(capsys, "quiz", command).code == 0
    assert not data_folder().exists()


def test_lock_that_is_held_is_said_to_be_one(book, capsys, monkeypatch):
    from readerkit.quiz import history_database

    monkeypatch.setattr(history_database, "WAIT_SECONDS", 0.1)
    typed(book, "--only", "gap", answers="no_sync\n")
    with closing(sqlite3.connect(data_folder() / HISTORY)) as other:
        other.execute("BEGIN EXCLUSIVE")
        done = run(capsys, "quiz", "7", "--book", str(book), "--json")
    assert done.code == 1
    text = json.loads(done.out)["text"]
    assert "another program has held it" in text and "move" not in text


FILL = """
import sys
from readerkit.app.quiz_banks import open_history
from readerkit.quiz.history import History
from tests.readerkit.quiz.test_history import ANSWER, SESSION, replace
history = open_history()
history.start(SESSION)
for position in range(100_000):
    history.record(replace(ANSWER, position=position, answer="a" * 500))
    print(position, flush=True)
"""


def test_full_disk_is_named_and_loses_nothing_acknowledged(tmp_path, monkeypatch):
    small = tmp_path / "small"
    small.mkdir()
    monkeypatch.setenv("READERKIT_DATA", str(small))
    script = f'{sys.executable} -c "$1"; cp -r {small}/. {tmp_path}/left'
    (tmp_path / "left").mkdir()
    done = subprocess.run(
        [*on_full_disk(small, kib=400), "sh", "-c", script, "-", FILL],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert "the disk is full: make room, and go on" in done.stderr, done.stderr
    assert "no transaction is active" not in done.stderr
    monkeypatch.setenv("READERKIT_DATA", str(tmp_path / "left"))
    kept = [each.position for each in open_history().answers()]
    acknowledged = [int(line) for line in done.stdout.split()]
    assert acknowledged and kept[: len(acknowledged)] == acknowledged
    assert len(kept) - len(acknowledged) in (0, 1)
