"""What to type next, as every command prints it: it leads back to the same book."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import click
import pytest

from readerkit.cli import cli
from readerkit.wording.next_command import LAB_OF_BOOK, SHIPPED
from tests.helpers import ROOT, make_book, run, run_process, run_typed, write_files
from tests.readerkit.quiz.sample import BANK
from tests.served_quiz import make_quiz_book

pytestmark = pytest.mark.sampled

HINT = re.compile(r"(?<!Usage: )readerkit ([a-z]+)\b(?! --help)(.*)")
BANK35 = BANK.replace("phase: 7", "phase: 35")
COMPARISON = """\
- name: ring_sample
  title: A ring
  mini: collectives
  upstream: sample
"""


def commands(
    command: click.Command, path: tuple[str, ...], context: click.Context
) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from commands(below, (*path, name), context)


COMMANDS = dict(commands(cli, (), click.Context(cli)))


def takes_book(name: str) -> bool:
    return any(each.name == "book" for each in COMMANDS[name].params)


def test_hints_know_which_commands_take_no_book():
    without = {name for name in COMMANDS if not takes_book(name)}
    whole = {each for name in SHIPPED for each in (name, name.split()[0])}
    assert {n for n in without if {n, n.split()[0]}.isdisjoint(SHIPPED)} == set()
    for name in COMMANDS:  # lab takes one, with the options that look at it
        if takes_book(name) and name != "lab":
            assert name not in whole or name.split()[0] not in SHIPPED, name


def test_no_hint_is_written_by_hand():
    names = {name.split()[0] for name in COMMANDS}
    by_hand = re.compile(rf"\breaderkit ({'|'.join(sorted(names))})\b")
    found = []
    for package in ("readerkit", "mini_impls"):
        for path in sorted((ROOT / package).rglob("*.py")):
            tree = ast.parse(path.read_text())
            told = {  # docstrings, which are the help of commands too
                id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
            }
            found += [
                f"{path.relative_to(ROOT)}:{node.lineno}: {node.value!r}"
                for node in ast.walk(tree)
                if isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in told
                and by_hand.search(node.value)
            ]
    assert found == []


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """A book with notes, a quiz and a comparison, its anchors not locked."""
    book = make_quiz_book(tmp_path_factory.mktemp("hints"))
    write_files(book.root, {"annotations/comparisons.yaml": COMPARISON})
    return book


@pytest.mark.parametrize(
    "arguments",
    [
        "annotate",
        "annotate close",
        "annotate nothing",
        "annotate --check",
        "cache",
        "compare",
        "compare ddp",
        "fetch",
        "lab 01 --check",
        "lab 03 --check",
        "lab 01 --solution",
        "note lib/linear.py:20",
        "note nothing.py:1",
        "path",
        "path prerequisite",
        "path prerequisite 1",
        "progress 8",
        "progress 35",
        "quiz 7 --count 1",
        "quiz 8",
        "quiz reduction",
        "quiz review",
        "quiz lint",
        "review",
        "review close",
        "site build --output {out}",
        "start",
    ],
)
def test_a_hint_carries_the_book_that_was_named(arguments, book, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [*arguments.format(out=tmp_path / "site").split(), "--book", str(book.root)]
    starts_ranks = words[0] == "compare"  # which print past this process's streams
    done = (run_process if starts_ranks else run_typed)(*words, stdin="\n")
    assert "Traceback" not in done.err
    for name, rest in HINT.findall(done.out + done.err):
        line = f"readerkit {name}{rest}"
        of_book = name not in SHIPPED or any(each in rest for each in LAB_OF_BOOK)
        assert (f"--book {book.root}" in rest) == of_book, line


@pytest.mark.parametrize("arguments", ["break", "run schedules", "lab", "lab 01 --run"])
def test_what_ships_takes_no_book(arguments, book):
    done = run_process(*arguments.split(), "--book", str(book.root))
    assert (done.code, done.out) == (2, "")
    assert "--book" in done.err


def test_a_bank_without_the_goals_is_not_done(tmp_path, capsys):
    book = make_book(tmp_path, more={"../quizzes/35/bank.yaml": BANK35})
    done = run(capsys, "progress", "35", "--book", str(book.root))
    assert (done.code, done.out) == (1, "")
    assert "got no objective rung-01-memory, rung-02" in done.err


def test_a_quiz_of_the_book_is_found_by_its_topic(book, capsys):
    done = run(capsys, "quiz", "all", "--book", str(book.root))
    assert done.code == 2
    assert f"readerkit quiz 7 --topic all --book {book.root}" in done.err
