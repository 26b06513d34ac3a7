"""Flags and suspensions; and the JSON form of whatever a command of quiz refuses."""

from __future__ import annotations

import json

import pytest

from tests.helpers import run, run_process
from tests.readerkit.commands.test_quiz import book, driven, template, typed
from tests.terminals import READERKIT, Terminal

pytestmark = pytest.mark.sampled

__all__ = ["book", "template"]


def listed(capsys, book, *options: str) -> dict[str, dict]:
    where = ("7", *options, "--book", str(book), "--json")
    told = json.loads(run(capsys, "quiz", "list", *where).out)
    return {each["id"]: each for each in told}


def test_flag_is_typed_at_a_question_listed_and_exported(book, capsys, tmp_path):
    answers = "flag two names are right\nno_sync\n"
    done = typed(book, "--only", "gap", "--seed", "3", answers=answers)
    assert "Flagged, and kept.\n    readerkit quiz list 7 --flagged" in done.out
    assert "Score 100% of 1 question" in done.out, "no try was lost"
    where = ("--book", str(book))
    run(capsys, "quiz", "flag", "bytes", "an", "odd", "unit", *where)
    found = listed(capsys, book, "--flagged")
    assert {name: each["flags"] for name, each in found.items()} == {
        "gap": ["two names are right"],
        "bytes": ["an odd unit"],
    }
    shown = run(capsys, "quiz", "list", "7", "--flagged", *where).out
    assert "    flagged: two names are right\n" in shown
    told = json.loads(run(capsys, "quiz", "export").out)
    assert [(each["question"], each["seed"]) for each in told["flags"]] == [
        ("gap", 3),
        ("bytes", None),
    ]
    for told in ("took back 1 flag of gap\n", "gap had no flag\n"):
        assert run(capsys, "quiz", "flag", "gap", "--undo", *where).out == told
    assert set(listed(capsys, book, "--flagged")) == {"bytes"}


NO_WORDS = [((), "flag what?"), ((" ",), "flag what?"), (("\udcff bad",), "UTF-8")]


@pytest.mark.parametrize(("words", "said"), NO_WORDS)
def test_flag_of_no_words_that_can_be_kept_is_refused(book, capsys, words, said):
    done = run(capsys, "quiz", "flag", "gap", *words, "--book", str(book))
    assert (done.code, done.out) == (2, "")
    assert said in done.err and "Traceback" not in done.err
    assert listed(capsys, book, "--flagged") == {}


@pytest.mark.parametrize(
    ("lang", "says"), [("en", "flag what? flag WORDS"), ("es", "¿flag de qué?")]
)
def test_flag_without_words_at_a_question_is_no_answer(book, lang, says):
    asked = ("--only", "gap", "--only", "row", "--lang", lang)
    done = typed(book, *asked, answers="flag\nno_sync\nflag \nF0 F1 B0\n")
    assert done.out.count(says) == 2
    assert "100%" in done.out, "no try was lost"


def test_flag_is_typed_after_the_result(book, capsys):
    command = (*READERKIT, "quiz", "7", "--only", "gap", "--book", str(book))
    with Terminal(*command) as terminal:
        terminal.read_until("> ")
        terminal.type("no_sync\r")
        terminal.read_until("Enter: go on")
        terminal.type("flag\r")
        terminal.read_until("flag what? flag WORDS")
        terminal.type("flag the word is given away\r")
        terminal.read_until("Flagged, and kept")
        terminal.type("\r")
        terminal.read_until("Score 100%")
    assert listed(capsys, book, "--flagged")["gap"]["flags"] == [
        "the word is given away"
    ]


def test_program_flags_a_question_that_was_asked(book, capsys):
    with driven("7", "--book", str(book), "--only", "gap", "--only", "row") as driver:
        driver.read()
        assert driver.read()["id"] == "gap"
        told = driver.say(flag="a doubt")
        assert told == {"type": "flagged", "id": "gap", "words": ["a doubt"]}
        assert driver.say(answer="no_sync")["right"], "the same question waits"
        assert driver.read()["id"] == "row"
        assert driver.say(flag="another", id="gap")["id"] == "gap"
        assert driver.say(flag="of which?", id="nobody")["type"] == "error"
    assert listed(capsys, book, "--flagged")["gap"]["flags"] == ["a doubt", "another"]


def test_suspended_question_is_asked_in_exams_alone(book, capsys):
    where = ("--book", str(book))
    kind = ("--kind", "fill")
    done = run(capsys, "quiz", "suspend", "gap", *where)
    assert "readerkit quiz suspend gap --undo" in done.out
    assert listed(capsys, book)["gap"]["suspended"]
    none = run(capsys, "quiz", "7", *kind, *where)
    assert (none.code, "and not suspended (1 are)" in none.err) == (1, True)
    with driven("7", *where, "--exam", *kind, "--count", "1") as driver:
        assert driver.read()["questions"] == 1
    typed(book, "--only", "gap", answers="wrong\nwrong\n")
    assert run(capsys, "quiz", "review", "--phase", "7", *where).code == 1
    for told in ("gap is asked again\n", "gap was not suspended\n"):
        assert run(capsys, "quiz", "suspend", "gap", "--undo", *where).out == told
    with driven("7", *where, *kind) as driver:
        assert driver.read()["questions"] == 1


def test_flags_and_suspensions_are_imported_elsewhere(
    book, capsys, tmp_path, monkeypatch
):
    run(capsys, "quiz", "flag", "gap", "a doubt", "--book", str(book))
    run(capsys, "quiz", "suspend", "row", "--book", str(book))
    file = tmp_path / "answers.json"
    run(capsys, "quiz", "export", str(file))
    monkeypatch.setenv("READERKIT_DATA", str(tmp_path / "elsewhere"))
    done = run(capsys, "quiz", "import", str(file))
    assert done.out == "added 0 quizzes, 0 answers, 1 flag and 1 suspended\n"
    found = listed(capsys, book)
    assert (found["gap"]["flags"], found["row"]["suspended"]) == (["a doubt"], True)
    assert run(capsys, "quiz", "delete", "--yes").code == 0
    assert listed(capsys, book, "--flagged") == {}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("7", "--only", "nobody"), 2),
        (("7", "--seed", "many"), 2),
        (("8",), 2),
        (("list", "8"), 2),
        (("list", "7", "--objective", "three"), 2),
        (("lint", "8"), 2),
        (("review", "--phase", "7"), 1),
        (("flag", "nobody", "words"), 2),
        (("suspend", "nobody"), 2),
        (("stats", "--nothing"), 2),
        (("undo",), 1),
        (("delete",), 2),
        (("import", "other.json"), 2),
        (("export", "other.json/file.json"), 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_every_failure_has_its_json_form(book, tmp_path, arguments, code):
    (tmp_path / "other.json").write_text("{}")
    takes_book = {"7", "8", "list", "lint", "review", "flag", "suspend"}
    where = ("--book", str(book)) if arguments[0] in takes_book else ()
    done = run_process("quiz", *arguments, "--json", *where, cwd=tmp_path)
    assert done.code == code, done.err
    told = json.loads(done.out)
    assert (told["type"], told["final"]) == ("error", True)
    assert told["text"].splitlines()[0].split(": ")[0] in done.err


def test_history_that_is_none_is_told_as_json(tmp_path):
    data = tmp_path / "broken"
    data.mkdir()
    (data / "quiz.sqlite3").write_bytes(b"no history" * 1000)
    environment = {"READERKIT_DATA": str(data)}
    for command in ("stats", "export", "undo"):
        done = run_process("quiz", command, "--json", environment=environment)
        told = json.loads(done.out)
        assert (done.code, told["final"]) == (1, True)
        assert "move the file away" in told["text"]
