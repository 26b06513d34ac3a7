"""``quiz list``, and what is asked by the same filters."""

from __future__ import annotations

import json

import pytest

from tests.helpers import run
from tests.readerkit.commands.test_quiz import book, driven, template, typed

__all__ = ["book", "template"]


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        (("--objective", "one", "--difficulty", "2"), {"several", "grid"}),
        (("--objective", "two", "--difficulty", "3"), set()),
        (("--kind", "fill", "--kind", "loc"), {"gap", "line"}),
        (("--topic", "all", "--kind", "short"), {"essay"}),
        (("--due",), set()),
    ],
    ids=str,
)
def test_questions_are_listed_and_asked_by_the_same_filters(
    book, capsys, filters, names
):
    where = ("7", *filters, "--book", str(book), "--json")
    done = run(capsys, "quiz", "list", *where)
    assert done.code == 0, done.err
    assert {each["id"] for each in json.loads(done.out)} == names
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
    assert (done.code, said in done.err) == (1, True)


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
