import io
import re
import sys
from functools import partial

import click
import pytest

from readerkit.app.library import warn
from readerkit.terminal.asking import confirm
from readerkit.terminal.folded import tell
from readerkit.wording.fold import fold

TEXT = """\
memory of the most loaded GPU              68,976,648,192  (68.98 B)
    = layers x hidden x (2 + 3 x ffn) + vocabulary, of which one part is sharded

- a note that is longer than any narrow terminal is wide"""


@pytest.mark.parametrize("columns", [20, 40, 79])
def test_lines_fit_and_no_word_is_broken(columns):
    shown = fold(TEXT, columns)
    assert all(len(line) <= columns for line in shown.split("\n"))
    assert shown.split() == TEXT.split()


def test_what_fits_is_left_alone():
    assert fold(TEXT, 80) == TEXT


def test_colours_cost_no_room_and_stay():
    text = click.style("bold words", bold=True) + " and a plain tail of words"
    shown = fold(text, 24)
    assert [len(line) for line in click.unstyle(shown).split("\n")] == [22, 15]
    assert shown.startswith("\x1b[1mbold words\x1b[0m")


def test_a_word_that_does_not_fit_stays_whole():
    path = "megatron/core/tensor_parallel/layers.py"
    assert path in fold(f"see {path} there", 20).split()


def test_what_follows_a_break_is_indented_below_it():
    rows = fold(TEXT, 40).split("\n")
    follows = [row for row in rows if re.match(r" {6}\S", row)]
    assert follows, "below the formula, which is indented by four"


LIST = "ok  grammars  Python, C and Go: more with the extra of languages"


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        pytest.param(
            40,
            [
                "ok  grammars  Python, C and Go: more with",
                "              the extra of languages",
            ],
            id="below its column",
        ),
        pytest.param(
            30,
            [
                "ok  grammars",
                "  Python, C and Go: more with",
                "  the extra of languages",
            ],
            id="a column without room begins a row",
        ),
    ],
)
def test_a_list_stays_one_on_a_narrow_terminal(columns, rows):
    assert fold(LIST, columns + 1).split("\n") == rows
    styled = LIST.replace("grammars", click.style("grammars", bold=True))
    assert click.unstyle(fold(styled, columns + 1)).split("\n") == rows


@pytest.mark.parametrize("say", [warn, partial(tell, err=True)])
def test_what_is_said_beside_the_output_keeps_its_words(say, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    say("0 of 2 answered, and kept. To go on: readerkit quiz 35 --resume")
    rows = capsys.readouterr().err.splitlines()
    assert 3 <= len(rows) <= 4 and max(map(len, rows)) <= 30


def test_a_question_at_the_terminal_keeps_its_words(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert confirm("Go on with the quiz of yesterday (0 of 2)?", default=True)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 30
