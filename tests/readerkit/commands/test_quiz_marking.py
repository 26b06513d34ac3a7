"""What people and programs type is taken, or asked again at no cost, on every way."""

from __future__ import annotations

import re

import pytest

from readerkit.app.quiz_banks import open_history
from tests.readerkit.commands.test_quiz import (
    at_terminal,
    bank,
    book,
    driven,
    template,
)
from tests.readerkit.commands.test_quiz_served import hidden, send
from tests.served_quiz import serving_quiz

pytestmark = pytest.mark.sampled

__all__ = ["book", "template"]


@pytest.fixture
def grid(book):
    with driven("7", "--book", str(book), "--only", "grid") as driver:
        driver.read(), driver.read()
        yield driver


@pytest.mark.parametrize(
    "mended",
    ["down: row 8x16", {"down": "row 8x16"}, {"down": ["row", [8, 16]]}],
    ids=str,
)
def test_program_corrects_one_row(grid, mended):
    assert grid.say(answer=["column 16x8", "row 1x1"])["credit"] == 0.6667
    again = grid.read()
    assert (again["attempt"], again["given"]) == (2, ["column 16x8", "row 1x1"])
    assert grid.say(answer=mended)["right"]
    assert grid.leave() == 0
    told = [each.answer for each in open_history().answers()]
    assert told[0] == "column 16x8\nrow 1x1"
    assert told[1] in (
        "up: column 16x8\ndown: row 8x16",
        "up: column 16x8\ndown: row 8,16",
    )


def test_program_may_say_a_line_as_any_number(book):
    with driven("7", "--book", str(book), "--only", "line") as driver:
        driver.read(), driver.read()
        first = bank(book).lock.places["line/key"].first
        assert driver.say(answer=float(first))["right"]


@pytest.mark.parametrize(
    ("name", "unread", "said"),
    [
        ("bytes", "112 s", "read as 112 s, which measures time"),
        ("grid", [["pillar", [16, 8]], ["row", [8, 16]]], "up, cut: got 'pillar'"),
        ("row", "F0 back B0", "got 'back'"),
    ],
)
def test_what_is_not_understood_costs_no_try(book, name, unread, said):
    with driven("7", "--book", str(book), "--only", name) as driver:
        driver.read(), driver.read()
        error = driver.say(answer=unread)
        assert (error["type"], said in error["text"]) == ("error", True)
        assert driver.say(answer=bank(book).variant(name, 0).typed_key)["points"] == 1


def test_reader_corrects_one_row(book):
    with at_terminal("7", "--book", str(book), "--only", "grid") as reader:
        for row in ("up", "down"):
            reader.read_until(f"{row} > ")
            reader.type("column 16x8\n")
        reader.read_until("Enter keeps a row as it stands in brackets.")
        reader.read_until("up [column 16x8] > ")
        reader.type("\n")
        reader.read_until("down [column 16x8] > ")
        reader.type("row tall\n")
        reader.read_until("down, shape: got 'tall', expected sizes such as 1024x4096")
        reader.read_until("up [column 16x8] > ")
        reader.type("\n")
        reader.read_until("down [row tall] > ")
        reader.type("row 8x16\n")
        reader.read_until("Right. 0.5 points.")
        reader.type("\n")
        assert reader.close() == 0


@pytest.mark.further
def test_row_of_a_quiz_that_was_left_is_corrected_by_itself(book):
    where = ("7", "--book", str(book))
    with driven(*where, "--only", "grid") as driver:
        driver.read(), driver.read()
        driver.say(answer="column 16x8; row 1x1")
    with at_terminal(*where, "--resume") as reader:
        reader.read_until("up [column 16x8] > ")
        reader.type("\n")
        reader.read_until("down [row 1x1] > ")
        reader.type("row 8x16\n")
        reader.read_until("Right. 0.67 points.")
        reader.type("\n")
        assert reader.close() == 0


@pytest.mark.further
def test_page_keeps_the_rows_and_asks_again_for_what_it_cannot_read(tmp_path):
    with serving_quiz(tmp_path) as server, server.afresh() as port:
        _, text = send(port, do="begin", count="10")
        while 'class="question"' in text and 'aria-label="up, ' not in text:
            session, at = hidden(text, "session"), hidden(text, "at")
            send(port, do="skip", session=session, at=at)
            _, text = send(port, do="next", session=session)
        session, at = hidden(text, "session"), hidden(text, "at")
        one = {"do": "answer", "session": session, "at": at}
        _, text = send(port, **one, answer=["column", "[16, 8]", "row", "tall"])
        assert re.search(r'role="alert">.*down, shape', text)
        assert hidden(text, "at") == at, "no try is lost"
        assert 'value="[16, 8]"' in text and 'value="tall"' in text
        _, text = send(port, **one, answer=["column", "[16, 8]", "row", "8 × 16"])
        assert "Right." in text
