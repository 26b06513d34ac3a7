"""``quiz list``, and what is asked by the same filters."""

from __future__ import annotations

import json

import pytest

from readerkit.app.quiz_banks import open_history
from readerkit.quiz.messages import encode
from readerkit.quiz.report import exported
from tests.helpers import run
from tests.readerkit.commands.test_quiz import book, driven, template, typed

pytestmark = pytest.mark.sampled

__all__ = ["book", "template"]


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        (("--objective", "one", "--difficulty", "2"), ["grid", "several"]),
        (("--objective", "two", "--difficulty", "3"), []),
        (("--kind", "fill", "--kind", "loc"), ["gap", "line"]),
        (("--topic", "all", "--kind", "short"), ["essay"]),
        (("--due",), []),
    ],
    ids=str,
)
def test_questions_are_listed_and_asked_by_the_same_filters(
    book, capsys, filters, names
):
    where = ("7", *filters, "--book", str(book), "--json")
    done = run(capsys, "quiz", "list", *where)
    assert done.code == 0, done.err
    assert sorted(each["id"] for each in json.loads(done.out)) == names
    assert "answer" not in done.out and "112" not in done.out, "no key"
    if not names:
        asked = run(capsys, "quiz", *where)
        assert asked.code == 1
        return
    with driven(*where[:-1], "--count", "99") as driver:
        assert driver.read()["questions"] == len(names)


def test_list_is_a_line_for_each_and_says_when_it_is_due(book, capsys):
    typed(book, "--only", "gap", answers="no_sync\n")
    done = run(capsys, "quiz", "list", "7", "--book", str(book))
    *rows, last = done.out.splitlines()
    assert [row.split()[0] for row in rows if "due 20" in row] == ["gap"]
    assert len(rows) == 10 and max(map(len, rows)) <= 80
    assert last.startswith("10 questions. To be asked one: readerkit quiz 7 --only ID")


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        (("--objective", "three"), "unknown objective: got 'three'"),
        (("--kind", "essay"), "unknown kind: got 'essay'"),
    ],
)
def test_filter_that_names_nothing_is_told(book, capsys, filters, said):
    done = run(capsys, "quiz", "list", "7", *filters, "--book", str(book))
    assert (done.code, said in done.err) == (2, True)


def test_stats_names_the_latest_quizzes_and_counts_the_rest(book, capsys):
    from readerkit.app.quiz_banks import open_history
    from tests.readerkit.quiz.test_history import ANSWER, SESSION, replace

    history = open_history()
    for number in range(25):
        name = f"s{number:02}"
        history.start(replace(SESSION, id=name))
        history.record(replace(ANSWER, session=name))
    shown = run(capsys, "quiz", "stats").out
    assert shown.startswith("5 quizzes before, all in --json\n")
    assert shown.count("phase 7") == 20
    whole = json.loads(run(capsys, "quiz", "stats", "--json").out)
    assert len(whole["quizzes"]) == 25


def test_export_is_imported_elsewhere_once_and_its_exams_do_not_count(
    book, capsys, tmp_path, monkeypatch
):
    typed(book, "--exam", answers="-\n-\n-\n")
    typed(book, "--only", "gap", "--only", "row", answers="no_sync\nq\n")
    file = tmp_path / "answers.json"
    assert run(capsys, "quiz", "export", str(file)).code == 0
    here = json.loads(file.read_text())
    monkeypatch.setenv("READERKIT_DATA", str(tmp_path / "elsewhere"))
    for added in (
        "added 2 quizzes and 4 answers",
        "added 0 quizzes and 0 answers; 6 rows there already",
    ):
        assert (
            run(capsys, "quiz", "import", str(file), "--book", str(book)).out
            == f"{added}\n"
        )
    there = json.loads(run(capsys, "quiz", "export").out)
    assert there["answers"] == here["answers"]
    assert {each["official"] for each in here["sessions"]} == {True, False}
    assert {each["official"] for each in there["sessions"]} == {False}
    again = typed(book, "--resume", answers="F0 F1 B0\n")
    assert "Score 100% of 2 questions" in again.out


@pytest.mark.parametrize(
    ("table", "row", "said"),
    [
        ("hints", {"session": "nobody"}, "hints[0]: got session 'nobody'"),
        ("hints", {"position": 7}, "hints[0]: position: got 7, expected 0 to 0"),
        ("flags", {"flagged": "soon"}, "flags[0]: Invalid isoformat string"),
        ("suspended", {"since": "soon"}, "suspended[0]: Invalid isoformat string"),
    ],
)
def test_no_other_row_is_imported_that_nobody_wrote(
    book, capsys, tmp_path, table, row, said
):
    typed(book, "--only", "gap", answers="no_sync\n")
    told = json.loads(run(capsys, "quiz", "export").out)
    moment = told["sessions"][0]["started"]
    whole = {
        "hints": {
            "session": told["sessions"][0]["id"],
            "position": 0,
            "number": 1,
            "cost": 0.1,
            "taken": moment,
        },
        "flags": {"question": "gap", "words": "", "seed": None, "flagged": moment},
        "suspended": {"question": "gap", "since": moment},
    }
    told[table] = [whole[table] | row]
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(told))
    done = run(capsys, "quiz", "import", str(file), "--book", str(book))
    assert (done.code, f"{file}: {said}" in done.err) == (2, True), done.err
    assert not json.loads(run(capsys, "quiz", "export").out)[table]


def test_exam_to_which_answers_are_imported_counts_no_more(book, capsys, tmp_path):
    typed(book, "--exam", answers="-\nq\n")
    # All of it, as someone has it who reads the file: no export tells a running exam.
    told = json.loads(encode(exported(open_history(), "9")))
    [session], [answer] = told["sessions"], told["answers"]
    assert session["official"]
    told["answers"] += [
        answer | {"position": at, "question": name, "answer": "known", "credit": 1}
        for at, name in enumerate(session["questions"])
    ]
    file = tmp_path / "forged.json"
    file.write_text(json.dumps(told))
    done = run(capsys, "quiz", "import", str(file), "--book", str(book))
    assert "added 0 quizzes and 2 answers; 3 rows there already" in done.out, done.err
    assert done.err.count("credit: got 1, expected 0: marked anew") == 3
    [kept] = open_history().sessions()
    assert not kept.official


@pytest.mark.parametrize(
    ("change", "earned", "said"),
    [
        ({"answer": "no_grad"}, [0], "gap: credit: got 1, expected 0: marked anew"),
        ({"answer": ""}, [0], "gap: credit: got 1, expected 0: marked anew"),
        ({"credit": 0}, [1], "gap: credit: got 0, expected 1: marked anew"),
        ({"bank_version": 9}, [], "bank version 9, expected 1: left out"),
        ({"topic": "other", "difficulty": 3}, [1], ""),
    ],
)
def test_a_file_gives_no_points(
    book, capsys, tmp_path, monkeypatch, change, earned, said
):
    typed(book, "--only", "gap", answers="no_sync\n")
    told = json.loads(run(capsys, "quiz", "export").out)
    whole = told["answers"][0]
    told["answers"][0] = whole | change
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(told))
    monkeypatch.setenv("READERKIT_DATA", str(tmp_path / "elsewhere"))
    done = run(capsys, "quiz", "import", str(file), "--book", str(book))
    assert (done.code, said in done.err) == (0, True), done.err
    kept = json.loads(run(capsys, "quiz", "export").out)["answers"]
    assert [row["credit"] for row in kept] == earned
    assert all(row["topic"] == whole["topic"] for row in kept)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "expected what readerkit quiz export wrote"),
        ("{}", "expected what readerkit quiz export wrote"),
        (
            '{"version": 99, "sessions": [], "answers": []}',
            "version 99, expected at most",
        ),
    ],
)
def test_what_is_no_export_is_refused_and_adds_nothing(
    book, capsys, tmp_path, text, said
):
    file = tmp_path / "other.json"
    file.write_text(text)
    done = run(capsys, "quiz", "import", str(file), "--book", str(book))
    assert (done.code, said in done.err) == (2, True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"answered": "9999-12-31T23:59:59.999+00:00"}, "moment: got 9999"),
        ({"answered": "2026-11-22T21:47:59"}, "expected an offset"),
        ({"seed": 10**30}, "seed: got 1000000000000000000000000000000, expected 64"),
        ({"credit": 7}, "credit: got 7.0, expected 0 to 1"),
        ({"position": -1}, "position: got -1, expected 0 or more"),
        ({"position": 4}, "position: got 4, expected 0 to 0: its quiz has 1"),
        ({"position": "first"}, "Expected `int`, got `str` - at `$.position`"),
        ({"attempt": 0}, "attempt: got 0, expected 1 or more"),
        ({"seconds": -0.5}, "seconds: got -0.5, expected 0 or more"),
        ({"choices": 0}, "choices: got 0, expected 1 or more"),
        ({"question": "row"}, "question: got 'row', expected 'gap'"),
        ({"session": "nobody"}, "got session 'nobody', expected one of a quiz"),
    ],
)
def test_answer_that_no_quiz_kept_is_not_imported(
    book, capsys, tmp_path, monkeypatch, change, said
):
    typed(book, "--only", "gap", answers="no_sync\n")
    told = json.loads(run(capsys, "quiz", "export").out)
    told["answers"].append(told["answers"][0] | change)
    said = f"changed.json: answers[1]: {said}" if "got" in said else said
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(told))
    monkeypatch.setenv("READERKIT_DATA", str(tmp_path / "elsewhere"))
    done = run(capsys, "quiz", "import", str(file), "--book", str(book))
    assert (done.code, said in done.err) == (2, True), done.err
    assert json.loads(run(capsys, "quiz", "export").out)["sessions"] == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mode": "guess"}, "sessions[0]: mode: got 'guess', expected practice or"),
        ({"tries": 0}, "sessions[0]: tries: got 0, expected 1 or more"),
        ({"started": "soon"}, "sessions[0]: Invalid isoformat string: 'soon'"),
    ],
)
def test_quiz_that_nobody_took_is_not_imported(
    book, capsys, tmp_path, monkeypatch, change, said
):
    typed(book, "--only", "gap", answers="no_sync\n")
    told = json.loads(run(capsys, "quiz", "export").out)
    told["sessions"][0] |= change
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(told))
    monkeypatch.setenv("READERKIT_DATA", str(tmp_path / "elsewhere"))
    done = run(capsys, "quiz", "import", str(file), "--book", str(book))
    assert (done.code, f"{file}: {said}" in done.err) == (2, True), done.err
    assert json.loads(run(capsys, "quiz", "export").out)["answers"] == []


def test_last_answer_is_taken_back_and_asked_again(book, capsys):
    where = ("--only", "gap", "--only", "bytes")
    typed(book, *where, answers="no_sync\n84\n-\n")
    for took in ("bytes: a skip", "bytes: 84"):
        done = run(capsys, "quiz", "undo")
        assert done.out.startswith(f"took back {took}\n"), done.err
        assert "To be asked again: readerkit quiz 7 --resume" in done.out
    again = typed(book, "--resume", answers="112\n")
    assert "2/2" in again.out and "Score 100% of 2 questions" in again.out


def test_no_answer_of_an_exam_is_taken_back(book, capsys):
    none = run(capsys, "quiz", "undo")
    assert (none.code, "no answer to take back" in none.err) == (1, True)
    typed(book, "--exam", answers="-\nq\n")
    done = run(capsys, "quiz", "undo")
    assert (done.code, "of an exam" in done.err) == (1, True)
    assert len(open_history().answers()) == 1
