"""Several processes change one book at once; nobody's change is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import yaml

from tests.terminals import WAIT_S

COUNT = 8


def a_note(number: int) -> str:
    return (
        f"- {{id: n{number}, at: {{file: lib/linear.py, symbol: step}}, kind: note, "
        "title: One, text: Words., concepts: [all-reduce]}\n"
    )


def start(desk, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "readerkit", *arguments]
    return subprocess.Popen(
        [*command, "--book", str(desk.book.root)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def wait(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        _, said = process.communicate(timeout=WAIT_S)
        assert (process.returncode, said) == (0, b"")


def test_reviews_at_once_are_all_kept(desk):
    notes = "".join(map(a_note, range(COUNT)))
    (desk.book.path("sample") / "more.yaml").write_text(notes)
    assert desk.run("annotate", "--update-lock").code == 0
    wait(
        [
            *(start(desk, "review", f"n{number}") for number in range(COUNT)),
            start(desk, "annotate", "--update-lock"),
            start(desk, "fetch", "--update-lock"),
        ]
    )
    anchors = json.loads(desk.lock().read_text())["anchors"]
    assert all(anchors[f"n{number}"]["reviewed"] for number in range(COUNT))


@pytest.mark.further
def test_notes_written_at_once_are_all_kept(locked, tmp_path, monkeypatch):
    editor = tmp_path / "editor"
    editor.write_text(
        "#!/bin/sh\nsed -i 's/title:/title: Mine/; s/^    $/    Words./; "
        "s/concepts: \\[\\]/concepts: [all-reduce]/; "
        's/{key: , section: }/{key: paper}/\' "$1"\n'
    )
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.delitem(os.environ, "VISUAL", raising=False)
    ids = [f"new-{number}" for number in range(4)]
    wait(
        [
            start(locked, "note", "linear.py:23", "--kind", "note", "--id", i)
            for i in ids
        ]
    )
    written = yaml.safe_load((locked.book.path("sample") / "my-notes.yaml").read_text())
    assert sorted(entry["id"] for entry in written) == ids
    anchors = json.loads(locked.lock().read_text())["anchors"]
    assert all(anchors[name]["reviewed"] for name in ids)
    assert locked.run("annotate", "--check").code == 0
