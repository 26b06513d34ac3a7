"""What a reader may set of the review, and the statistics of questions."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from readerkit.app.quiz_banks import open_history
from readerkit.quiz.history_rows import timestamp
from readerkit.quiz.spaced_repetition import due_questions
from tests.helpers import run, run_process, run_typed

# The fixtures of the quiz's own tests.
from tests.readerkit.commands.test_quiz import book, template  # noqa: F401

LATER = datetime.now(UTC) - timedelta(days=40)
WRONG = {"pick": "z", "gap": "x", "bytes": "1", "steps": "4 3 2 1"}


@pytest.fixture
def missed(book):  # noqa: F811
    """Give a book of which four questions were answered wrong long ago."""
    only = [word for name in WRONG for word in ("--only", name)]
    where = ("--book", str(book))
    run_typed("quiz", "7", *where, "--tries", "1", *only, stdin="-\n" * 4)
    with open_history().writing() as connection:
        connection.execute("UPDATE answer SET answered = ?", (timestamp(LATER),))
    return where


@pytest.mark.parametrize(
    ("daily", "counts"), [("", (4, 4)), ("3", (4, 3)), ("9", (4, 4))]
)
def test_review_tells_what_is_due_and_what_waits(missed, monkeypatch, daily, counts):
    monkeypatch.setenv("READERKIT_DAILY", daily)
    due, asked = counts
    done = run_typed("quiz", "review", *missed, stdin="q\n")
    assert f"{due} due today; {due - asked} wait." in done.out
    done = run_process("quiz", "review", *missed, "--json")
    begun = json.loads(done.out.splitlines()[0])
    assert (begun["due"], begun["questions"]) == counts


def test_day_that_had_its_reviews_has_no_more(missed, monkeypatch, capsys):
    monkeypatch.setenv("READERKIT_DAILY", "1")
    run_typed("quiz", "review", *missed, stdin="-\n")
    done = run(capsys, "quiz", "review", *missed)
    assert done.code == 1 and "3 due, and all wait for tomorrow" in done.err


@pytest.mark.parametrize(
    ("name", "given"),
    [("RETENTION", "1.5"), ("RETENTION", "most"), ("DAILY", "-1"), ("DAILY", "nan")],
)
def test_setting_that_is_none_is_told(missed, monkeypatch, capsys, name, given):
    monkeypatch.setenv(f"READERKIT_{name}", given)
    done = run(capsys, "quiz", "review", *missed)
    assert done.code == 2 and f"READERKIT_{name}: got '{given}'" in done.err


def test_higher_retention_brings_questions_back_sooner(missed, monkeypatch, capsys):
    run_typed("quiz", "7", *missed, "--only", "gap", stdin="no_sync\n\n")
    answers = open_history().answers()
    [often], [seldom] = (
        [
            each.moment
            for each in due_questions(answers, datetime.now(UTC), retention=share)
            if each.question == "gap"
        ]
        for share in (0.97, 0.7)
    )
    assert often < seldom
    monkeypatch.setenv("READERKIT_RETENTION", "0.97")
    listed = json.loads(run(capsys, "quiz", "list", "7", *missed, "--json").out)
    [due] = [each["due"] for each in listed if each["id"] == "gap"]
    assert datetime.fromisoformat(due) == often.replace(microsecond=0)


def test_stats_of_questions_are_filtered_and_say_nothing_of_few(missed, capsys):
    done = run(capsys, "quiz", "stats", "--items", "--phase", "7", *missed)
    assert "gap" in done.out and "100%" not in done.out
    kinds = (*missed, "--phase", "7", "--kind", "fill", "--json")
    [item] = json.loads(run(capsys, "quiz", "stats", "--items", *kinds).out)
    assert (item["id"], item["answers"], item["right"]) == ("gap", 1, None)
    assert run(capsys, "quiz", "stats", "--kind", "fill").code == 2
