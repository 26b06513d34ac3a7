"""The exam: which one counts, what is said before and after it, how it goes on."""

from __future__ import annotations

import json
import re
from contextlib import closing
from datetime import timedelta

import pytest

from readerkit.app.quiz_banks import open_history
from tests.helpers import run
from tests.readerkit.commands.test_quiz import (
    at_terminal,
    bank,
    book,
    driven,
    template,
    typed,
)

pytestmark = pytest.mark.sampled

__all__ = ["book", "template"]


def take(book, *arguments: str, right: int = 99) -> tuple[dict, dict]:
    """Take an exam, so many of its answers right; return its first and last message."""
    with driven("7", "--book", str(book), *arguments) as driver:
        session = driver.read()
        with closing(open_history()) as history:
            seed = history.session(session["id"]).seed
        message = driver.read()
        while message["type"] == "question":
            if message["position"] <= right:
                name = message["id"]
                driver.say(answer=bank(book).variant(name, seed).typed_key)
            else:
                driver.say(skip=True)
            message = driver.read()
        driver.leave()
    return session, message


def test_exam_that_the_bank_chose_counts_and_tells_its_seed_at_the_end(book):
    begun, score = take(book, "--exam")
    assert (begun["official"], begun["seed"], begun["pass_mark"]) == (True, None, 0.7)
    assert (score["official"], score["passed"]) == (True, True)
    assert len({each["question"] for each in score["marked"]}) == 3
    assert isinstance(score["seed"], int)


CHOSEN = [
    ("--only", "gap"),
    ("--topic", "all"),
    ("--objective", "one"),
    ("--kind", "fill"),
    ("--difficulty", "1"),
    ("--count", "2"),
    ("--seed", "7"),
    ("--minutes", "11"),
]


@pytest.mark.further
@pytest.mark.parametrize("chosen", CHOSEN, ids=lambda each: each[0])
def test_exam_of_which_the_reader_chose_a_part_is_practice(book, chosen, capsys):
    begun, score = take(book, "--exam", *chosen)
    assert (begun["official"], score["official"]) == (False, False)
    assert score["passed"] is True
    assert "practice exam" in run(capsys, "quiz", "stats").out
    shown = " ".join(typed(book, "--exam", *chosen, answers="q\n").out.split())
    if chosen[0] == "--minutes":
        assert "in 11 minutes, one try" in shown
    assert "For practice: it does not count in progress." in shown


def test_an_exam_has_one_try_and_says_so_where_more_are_asked_for(book):
    done = typed(book, "--exam", "--tries", "3", answers="")
    assert (done.code, "one try at each question" in done.err) == (2, True)
    assert typed(book, "--exam", "--tries", "1", answers="q\n").code == 130


def test_resumed_exam_says_its_whole_time_and_what_is_left(book, monkeypatch):
    from readerkit.app import begin_quiz

    typed(book, "--exam", answers="-\nq\n")
    later = begin_quiz.now() + timedelta(minutes=2, seconds=50)
    monkeypatch.setattr(begin_quiz, "now", lambda: later)
    shown = " ".join(typed(book, "--exam", "--resume", answers="q\n").out.split())
    assert "Exam: 3 questions in 10 minutes, one try" in shown
    assert "8 min left" in shown


@pytest.mark.parametrize(
    ("minutes", "whole", "left"),
    [("1.25", "75 seconds", "75 s left"), ("2.4", "3 minutes", "3 min left")],
)
def test_time_of_an_exam_and_its_clock_are_rounded_alike(book, minutes, whole, left):
    done = typed(book, "--exam", "--minutes", minutes, answers="q\n")
    shown = " ".join(done.out.split())
    assert f"in {whole}, one try" in shown and left in shown


def test_short_exam_says_its_seconds(book):
    left = typed(book, "--exam", "--minutes", "0.5", "--lang", "es", answers="q\n")
    assert "en 30 segundos, un intento en cada una" in " ".join(left.out.split())


def test_question_named_twice_is_asked_once(book):
    begun, _ = take(book, "--exam", *["--only", "gap"] * 30)
    assert begun["questions"] == 1


def test_exam_does_not_count_once_its_variants_were_seen_elsewhere(book):
    with driven("7", "--book", str(book), "--exam") as exam:
        begun, question = exam.read(), exam.read()
        assert begun["official"]
        with closing(open_history()) as history:
            seed = history.session(begun["id"]).seed
        one = ("--only", question["id"], "--seed", str(seed))
        typed(book, *one, answers="-\n")
        for _ in range(3):
            exam.say(skip=True)
            score = exam.read()
        assert (score["type"], score["official"]) == ("score", False)


def test_exam_never_draws_a_seed_that_was_seen(book, monkeypatch, capsys):
    from readerkit.app import begin_quiz

    monkeypatch.setattr(begin_quiz, "MAX_SEED", 3)
    where = ("quiz", "7", "--book", str(book), "--json")
    run(capsys, *where, "--seed", "2")
    run(capsys, *where, "--exam")
    assert sorted(open_history().seeds()) == [1, 2]


def test_terminal_says_the_rules_the_clock_and_no_seed(book):
    done = typed(book, "--exam", answers="-\n-\n-\n")
    shown = " ".join(done.out.split())
    rules = (
        "Exam: 3 questions in 10 minutes, one try at each, no hints, no word "
        "until the end; 70% passes."
    )
    assert shown.index(rules) < shown.index("1/3")
    assert len(re.findall(r"\d/3 .*10 min left", done.out)) == 3
    assert "For practice" not in shown
    assert "0%" in shown and ": not passed; 70% passes" in shown
    assert "seed" not in shown.replace("questions, seed and time", "")


def test_exam_is_resumed_as_it_was_begun(book):
    typed(book, "--only", "gap", "--only", "row", answers="no_sync\nq\n")
    none = typed(book, "--exam", "--resume", answers="")
    assert (none.code, "no exam was left unfinished" in none.err) == (1, True)
    left = typed(book, "--exam", answers="-\nq\n")
    assert left.code == 130
    assert "To go on: readerkit quiz 7 --exam --resume" in " ".join(left.out.split())
    begun, score = take(book, "--exam", "--resume")
    assert (begun["answered"], begun["mode"], begun["official"]) == (0, "exam", True)
    assert (score["complete"], score["of"]) == (True, 3)
    assert len(open_history().sessions()) == 2
    both = typed(book, "--resume", "--topic", "all", answers="")
    assert both.code == 2


def test_exam_that_was_left_is_offered_when_the_next_begins(book):
    typed(book, "--exam", answers="-\nq\n")
    with at_terminal("7", "--book", str(book), "--exam", lines=200) as reader:
        reader.read_until("Go on with the exam of")
        reader.type("\n")
        assert "2/3" in reader.read_until("> ")
        reader.type("q\n")
        assert reader.close() == 130


def test_objective_that_is_wholly_wrong_is_named_in_a_passed_exam(book):
    grid = ("--only", "gap", "--only", "row", "--only", "pick", "--only", "bytes")
    _, score = take(book, "--exam", *grid, right=3)
    assert (score["passed"], score["missed"]) == (True, ["two"])
    again = score["objectives"]["two"]["command"]
    assert again.startswith("readerkit quiz 7 --objective two")
    answers = [bank(book).variant(name, 3).typed_key for name in ("gap", "row", "pick")]
    typed_in = "\n".join([*answers, "-"]) + "\n"
    done = typed(book, "--exam", "--seed", "3", *grid, answers=typed_in)
    assert "Nothing right of 1 question: The second" in done.out
    assert "    readerkit quiz 7 --objective two" in done.out
    assert ": passed; 70% passes" in " ".join(done.out.split())


def test_export_has_what_counts(book, capsys):
    take(book, "--exam")
    take(book, "--exam", "--seed", "9")
    told = json.loads(run(capsys, "quiz", "export").out)
    assert [each["official"] for each in told["sessions"]] == [True, False]


def test_exams_that_go_on_are_left_out_in_their_number(book, capsys):
    for _ in range(2):
        typed(book, "--exam", answers="q\n")
    two = "2 exams left out until they have ended: their seeds would tell their"
    assert two in run(capsys, "quiz", "export", "-").err


def test_exam_that_was_left_at_its_first_question_goes_on(book, capsys):
    left = typed(book, "--exam", answers="q\n")
    assert left.code == 130
    shown = " ".join(left.out.split())
    assert "0 of 3 answered, and kept. To go on: readerkit quiz 7 --exam" in shown
    gift = ("quiz", "export", "--gift", "-", "--book", str(book))
    assert "with readerkit quiz 7 --exam --resume" in run(capsys, *gift).err
    typed(book, "--exam", "--resume", answers="-\n-\n-\n")
    assert len(open_history().sessions()) == 1
    assert run(capsys, *gift).code == 0


def test_keys_of_an_exam_that_goes_on_are_shown_nowhere(book, capsys, tmp_path):
    where = ("--book", str(book))
    done = typed(book, "--exam", answers="-\nq\n")
    assert "1 of 3" in done.out or "0 of 3" in done.out
    with closing(open_history()) as history:
        [row] = history.sessions()
    left = run(capsys, "quiz", "export", "-")
    kept = json.loads(left.out)
    assert (left.code, kept["sessions"], kept["answers"]) == (0, [], [])
    one = "1 exam left out until it has ended: its seed would tell its questions"
    assert one in left.err
    refused = [
        ("quiz", "export", "--gift", "-", "--seed", str(row.seed), *where),
        ("annotate", row.questions[0], "--claims", *where),
    ]
    for command in refused:
        said = run(capsys, *command)
        assert (said.code, said.out) == (1, ""), command
        assert "end it first, with readerkit quiz 7 --exam --resume" in said.err
        assert re.search(r"goes on until \d{4}-\d\d-\d\d \d\d:\d\d UTC:", said.err)
    typed(book, "--exam", "--resume", answers="-\n-\n")
    assert len(json.loads(run(capsys, "quiz", "export", "-").out)["sessions"]) == 1
    assert run(capsys, *refused[0]).code == 0
