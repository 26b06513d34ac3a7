"""A quiz on code that lives on: it follows its lines, and is red where they change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers import git, make_repository, run

CODE = '''\
"""Sums."""


def add_all(values):
    total = 0
    for value in values:
        total += value
    return total
'''
QUESTION = """\
- id: where-added
  type: locate
  objective: example-explain
  concepts: [an-idea]
  difficulty: 1
  prompt: Which line adds a value?
  at: {upstream: repo, file: sums.py, symbol: add_all, code: total += value}
  mistakes:
    - at: {upstream: repo, file: sums.py, symbol: add_all, code: total = 0}
      why: That is where it begins.
    - at: {upstream: repo, file: sums.py, symbol: add_all, code: return total}
      why: That gives it away.
  notes: [first-note]
  explanation: It is the body of the loop.
"""


class OwnQuiz:
    def __init__(self, root: Path, capsys) -> None:
        self.root, self._capsys = root, capsys

    def __call__(self, *words: str):
        return run(self._capsys, *words, "--book", str(self.root / "book"))

    def write(self, code: str) -> None:
        (self.root / "sums.py").write_text(code)

    def asked(self) -> dict:
        """The question as programs are asked it."""
        done = self("quiz", "1", "--only", "where-added", "--json")
        rows = [json.loads(row) for row in done.out.splitlines()]
        return next(row for row in rows if row.get("search"))


@pytest.fixture
def own(tmp_path, monkeypatch, capsys) -> OwnQuiz:
    monkeypatch.setenv("READERKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("READERKIT_DATA", str(tmp_path / "data"))
    root = tmp_path / "repo"
    make_repository(root, {"sums.py": CODE})
    git(root, "config", "user.name", "Jane Doe")
    assert run(capsys, "init", str(root), "--no-site").code == 0
    own = OwnQuiz(root, capsys)
    made = own("quiz", "init", "1")
    assert made.code == 0, made.err
    (root / "book/quizzes/1/sums.yaml").write_text(QUESTION)
    done = own("quiz", "lint", "1", "--update-lock")
    assert done.code == 0, done.err
    return own


def test_lines_that_only_shifted_are_no_difference(own):
    own.write('"""Sums."""\n\nimport os\n\n' + CODE)
    done = own("quiz", "lint", "1")
    assert (done.code, done.err) == (0, "")


def test_code_that_was_edited_is_a_difference(own):
    own.write(CODE.replace("for value in values", "for value in values[1:]"))
    done = own("quiz", "lint", "1")
    assert done.code == 1
    assert "where-added/within" in done.err
    assert "where-added/key" not in done.err


def test_lines_are_asked_for_where_they_are_today(own):
    before = own.asked()["search"]
    own.write("import os\nimport sys\n\n" + CODE)
    after = own.asked()["search"]
    assert (after["first"], after["last"]) == (before["first"] + 3, before["last"] + 3)
    assert after["lines"] == before["lines"]
    assert after["lines"][3].strip() == "total += value"


def test_a_question_whose_code_is_gone_is_named(own):
    own.write("def other(values):\n    return sum(values)\n")
    done = own("quiz", "1", "--only", "where-added", "--json")
    assert done.code == 1
    assert "quizzes/1/sums.yaml:1:3: where-added: sums.py: no symbol" in done.err
