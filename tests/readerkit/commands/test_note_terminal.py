"""``readerkit note`` with a person at a real terminal, whose editor slips."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.helpers import git
from tests.readerkit.commands.test_note import FILL
from tests.terminals import READERKIT, Terminal

pytestmark = pytest.mark.sampled

QUESTION = "Edit it again? [Y/n]: "


@pytest.fixture
def editor(tmp_path):
    """An editor that names no concept when it is first opened, and mends that next."""
    script = tmp_path / "editor"
    script.write_text(
        f"#!{sys.executable}\nimport sys, pathlib\n"
        "file = pathlib.Path(sys.argv[1])\ns = file.read_text()\n"
        f"slip = {FILL}.replace('[all-reduce]', '[all-redcue]')\n"
        "mended = s.replace('[all-redcue]', '[all-reduce]')\n"
        "file.write_text(slip if slip != s and 'redcue' not in s else mended)\n"
    )
    script.chmod(0o755)
    return {"EDITOR": str(script), "VISUAL": None}


def writing(desk, editor) -> Terminal:
    words = ("note", "linear.py:14-17", "--book", str(desk.book.root))
    return Terminal(*READERKIT, *words, environment=editor, columns=300)


def test_slip_is_said_and_the_entry_edited_again(locked, editor, tmp_path):
    with writing(locked, editor) as person:
        said = person.read_until(QUESTION)
        assert "unknown concept: got 'all-redcue' (did you mean 'all-reduce'?)" in said
        person.type("\n")
        person.read_until(f"wrote {locked.book.path('sample/my-notes.yaml')}")
        assert person.close() == 0
    assert locked.run("annotate", "--check").code == 0
    assert not list((tmp_path / "data" / "drafts").iterdir())


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("\x03", 130), ("\x04", 130)])
def test_who_leaves_is_told_how_to_go_on(locked, editor, tmp_path, answer, code):
    before = git_tree(locked.book.root)
    with writing(locked, editor) as person:
        person.read_until(QUESTION)
        person.type(answer)
        said = person.read_until("/book\n")
        assert person.close() == code
    [kept] = (tmp_path / "data" / "drafts").rglob("note.yaml")
    assert "nothing was written; to go on with your text:" in said
    assert re.search(rf"readerkit note linear.py:14-17 --from {kept} --book \S+", said)
    assert "all-redcue" in kept.read_text()
    assert git_tree(locked.book.root) == before


def git_tree(root: Path) -> str:
    files = sorted(str(path) for path in root.rglob("*") if path.is_file())
    return git(root, "hash-object", "--no-filters", *files)
