"""The quiz on the served page: the same engine and history, and nobody else's forms."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from html import unescape
from urllib.parse import urlencode

import pytest

from readerkit.app.folders import data_folder
from readerkit.app.quiz_banks import open_history
from readerkit.quiz.history_rows import timestamp
from tests.readerkit.commands.test_site import ask, build
from tests.readerkit.quiz.sample import QUESTIONS
from tests.served_quiz import make_quiz_book, serving_quiz, typed_key

HOSTILE = "</script><script>alert(1)</script>\u202e`<img src=x onerror=alert(1)>`"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving_quiz(tmp_path_factory.mktemp("quiz")) as server:
        yield server


@pytest.fixture
def book(server):
    return server.book


@pytest.fixture
def served(server):
    with server.afresh() as port:
        yield port


def send(port, headers=(), phase="7", **fields):
    own = {"Origin": f"http://127.0.0.1:{port}", **dict(headers)}
    body = urlencode(fields, doseq=True)
    status, text, _ = ask(port, f"/-/quiz/{phase}", "POST", body, **own)
    return status, unescape(text)


def hidden(text, name):
    return re.search(rf'name="{name}" value="([^"]*)"', text)[1]


def right_answer(variant):
    if variant.prompt.kind == "short":
        return {"answer": "Both.", "mark": ["1", "2"], "looked": "1"}
    return {"answer": variant.typed_key.split()}


def test_quiz_is_asked_marked_and_kept_form_by_form(book, served):
    status, text = send(served, do="open")
    assert (status, "Begin" in text) == (200, True)
    _, text = send(served, do="begin", count="10")
    for position in range(1, 11):
        assert f"{position} / 10" in text
        variant = typed_key(book)
        fields = right_answer(variant)
        session, at = hidden(text, "session"), hidden(text, "at")
        _, text = send(served, do="answer", session=session, at=at, answer=" ")
        assert 'role="alert"' in text, "nothing is no answer, and is kept nowhere"
        _, text = send(served, do="answer", session=session, at=at, **fields)
        assert "Right." in text, (variant.prompt.id, text)
        _, text = send(served, do="next", session=session)
    assert "100%" in text and "passed" in text
    kept = open_history().answers()
    assert [answer.credit for answer in kept] == [1] * 10
    assert all(answer.seconds > 0 for answer in kept)
    assert "So far" in send(served, do="open")[1]


def test_form_sent_twice_answers_nothing_else(book, served):
    _, text = send(served, do="begin", count="3")
    session, at = hidden(text, "session"), hidden(text, "at")
    send(served, do="skip", session=session, at=at)
    _, text = send(served, do="skip", session=session, at=at)
    assert "answered before" in text
    assert len(open_history().answers()) == 1
    assert f'value="{session}"' in send(served, do="open")[1]


def test_a_wrong_answer_is_there_to_be_mended(book, served):
    _, text = send(served, do="begin", count="10")
    while 'type="checkbox" name="answer"' not in text:
        session, at = hidden(text, "session"), hidden(text, "at")
        send(served, do="skip", session=session, at=at)
        _, text = send(served, do="next", session=session)
    wrong = ["a", "b", "c"]
    session, at = hidden(text, "session"), hidden(text, "at")
    _, text = send(served, do="answer", session=session, at=at, answer=wrong)
    assert "Not yet." in text
    assert re.findall(r'value="(\w)" checked', text) == wrong
    session, at = hidden(text, "session"), hidden(text, "at")
    _, text = send(served, do="answer", session=session, at=at, answer="<?>")
    assert re.search('role="alert".*lang=es>se leyó «<\\?>»; se esperaba', text)


@pytest.mark.parametrize(("chosen", "counts"), [({}, True), ({"topic": "all"}, False)])
def test_page_says_the_rules_of_an_exam_and_whether_it_counts(served, chosen, counts):
    _, text = send(served, do="begin", exam="1", **chosen)
    rules = "Exam: 3 questions in 10 minutes, one try at each"
    assert text.index(rules) < text.index("<form")
    assert "10 <span" in text
    assert ("For practice: it does not count" in text) is not counts
    session = hidden(text, "session")
    for at in ("1.1", "2.1", "3.1"):
        _, text = send(served, do="skip", session=session, at=at)
    assert "not passed" in text and "Nothing right of" in text
    assert ("For practice: it does not count" in text) is not counts


def test_question_whose_lines_the_site_lacks_is_left_out(book, served):
    lock = book.root / "quizzes/7/keys.lock"
    whole = lock.read_text()
    try:
        lock.write_text(
            re.sub(r'("line/.*"blob": ")[0-9a-f]{40}', rf"\g<1>{'0' * 40}", whole)
        )
        _, text = send(served, do="begin", count="10")
        said = ""
        while 'class="question"' in text:
            said += text
            session, at = hidden(text, "session"), hidden(text, "at")
            send(served, do="skip", session=session, at=at)
            _, text = send(served, do="next", session=session)
    finally:
        lock.write_text(whole)
    assert "not on this site: line" in said + text
    assert len(open_history().answers()) == 9


def test_only_what_is_due_and_a_limit_of_minutes(book, served):
    _, text = send(served, do="begin", due="1")
    assert "nothing is due" in text
    _, text = send(served, do="begin", count="3", minutes="7")
    assert re.search(r"\b7 <span[^>]*>minutes left", text)


@pytest.mark.parametrize(
    ("begun", "verdict"),
    [
        ({"count": "3", "minutes": "7"}, r'class="dim">1 / 3 '),
        ({"exam": "1"}, r'class="wrong">.*not passed'),
    ],
    ids=["practice", "exam"],
)
@pytest.mark.parametrize("do", ["next", "skip"])
def test_time_that_is_over_ends_a_quiz_and_a_part_has_no_verdict(
    begun, verdict, do, book, served
):
    _, text = send(served, do="begin", **begun)
    session, at = hidden(text, "session"), hidden(text, "at")
    send(served, do="answer", session=session, at=at, **right_answer(typed_key(book)))
    before = timestamp(datetime.now(UTC) - timedelta(seconds=1))
    with closing(sqlite3.connect(data_folder() / "quiz.sqlite3")) as history:
        history.execute("UPDATE session SET deadline = ?", [before])
        history.commit()
    _, text = send(served, do=do, session=session, at="2.1")
    head = re.search(r"<h2 tabindex.*?</h2>", text)[0]
    assert re.search(verdict, head), head
    assert ("passed" in head) == ("exam" in begun)
    assert open_history().unfinished(7, "2026") is None
    assert "Go on" not in send(served, do="open")[1]


def test_a_quiz_that_was_left_is_offered_with_what_is_kept(book, served):
    _, text = send(served, do="begin", count="3")
    session, at = hidden(text, "session"), hidden(text, "at")
    send(served, do="skip", session=session, at=at)
    _, text = send(served, do="open")
    assert f'value="{session}"' in text and "0 / 3" in text
    _, text = send(served, do="next", session=session)
    assert "2 / 3" in text


NONSENSE = [
    {},
    {"do": "nothing"},
    {"do": "begin", "topic": "nobody"},
    {"do": "begin", "count": "-1"},
    {"do": "begin", "count": "9" * 5000},
    {"do": "begin", "minutes": "0"},
    {"do": "begin", "minutes": "nan"},
    {"do": "answer", "session": "nobody", "at": "1.1"},
]


def test_form_that_asks_for_nonsense_is_told_so(served):
    for fields in NONSENSE:
        status, text = send(served, **fields)
        assert status == 200
        assert re.search(r'role="alert">.*(expected|begin a new)', text), fields
    assert open_history().sessions() == []


def test_another_sites_page_cannot_answer(book, served):
    for origin in ("http://evil.example", "null", ""):
        assert send(served, {"Origin": origin}, do="begin")[0] == 403
    assert ask(served, "/-/quiz/7", "POST", "do=begin")[0] == 403
    assert send(served, phase="8", do="open")[0] == 200
    assert send(served, phase="9" * 9, do="open")[0] == 404
    assert ask(served, "/-/site.css")[0] == 404
    assert open_history().sessions() == []


def test_hostile_questions_are_only_shown(capsys, tmp_path):
    said = QUESTIONS.replace("prompt: Match them.", f"prompt: {HOSTILE!r}")
    said = said.replace("right: all-reduce}", f"right: {HOSTILE!r}}}")
    said = said.replace("explanation: By their names.", f"explanation: {HOSTILE!r}")
    book = make_quiz_book(tmp_path, said.replace("\\u202e", "\u202e"))
    out, result = build(capsys, tmp_path, book)
    assert result.code == 0, result.err
    html = (out / "quiz/7/all.html").read_text()
    assert html.count("&lt;/script&gt;") >= 3
    assert "<script>" not in html and "<img src=x" not in html
    assert "\u202e" not in html
    assert not (out / "theme/quiz.js").exists()
