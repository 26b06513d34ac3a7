"""What works here and what is missing: told on one screen, mended as it says."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.helpers import entered, make_book, run, run_process


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("READERKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("READERKIT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("READERKIT_SCHEMES", "file")
    monkeypatch.setenv("EDITOR", "sh -c")
    return tmp_path


def told(capsys, *arguments: str) -> dict[str, dict]:
    rows = json.loads(run(capsys, "doctor", "--json", *arguments).out)["rows"]
    return {row["what"]: row for row in rows}


def test_it_fits_one_screen(capsys):
    shown = run(capsys, "doctor").out.splitlines()
    assert len(shown) < 30
    assert all(line[:4] in ("ok  ", "--  ", "!!  ", "    ") for line in shown)


def test_what_is_missing_names_the_command_that_brings_it(home, capsys):
    book = make_book(home)
    before = told(capsys, "--book", str(book.root))["sample"]
    assert before["state"] == "missing"
    assert before["detail"].startswith("0 of 1 file of v1, commit ")
    words = before["mend"].split()
    assert words[:3] == ["readerkit", "fetch", "sample"]
    assert run(capsys, *words[1:]).code == 0
    assert told(capsys, "--book", str(book.root))["sample"]["state"] == "works"


def test_a_book_with_a_fault_is_broken_and_fails(home, capsys):
    book = make_book(home)
    book.path("concepts.yaml").write_text("- {id: x}\n")
    done = run(capsys, "doctor", "--book", str(book.root))
    assert done.code == 1
    assert "!!  book" in done.out
    assert "annotations/concepts.yaml:1:" in done.out
    assert done.err.startswith("readerkit: broken: book")


def test_a_cache_that_cannot_be_written_is_broken(home, capsys, monkeypatch):
    monkeypatch.setenv("READERKIT_CACHE", str(home / "file" / "cache"))
    (home / "file").write_text("no folder")
    row = told(capsys)["cache"]
    assert row["state"] == "broken"
    assert "READERKIT_CACHE" in row["mend"]


def test_what_is_not_on_path_is_missing(home):
    tools = home / "bin"
    tools.mkdir()
    done = run_process("doctor", environment={"PATH": str(tools), "EDITOR": "nowhere"})
    assert done.code == 0
    assert "--  git " in done.out
    assert "'nowhere' is not on PATH" in done.out
    program = tools / "git"
    program.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    done = run_process("doctor", environment={"PATH": f"{tools}:/bin"})
    assert "broken" in done.out


def test_a_grammar_and_an_extra_that_are_missing_name_their_packages(
    home, capsys, monkeypatch
):
    import importlib.util
    from importlib import metadata

    real, version = importlib.util.find_spec, metadata.version

    def without(name: str) -> str:
        if name in ("torch", "genanki"):
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *more: None if name == "tree_sitter_rust" else real(name, *more),
    )
    monkeypatch.setattr(metadata, "version", without)
    rows = told(capsys)
    assert rows["grammars"]["mend"] == "pip install tree-sitter-rust"
    assert rows["torch"]["state"] == "missing"
    assert rows["anki"]["mend"] == "pip install genanki"


def test_nothing_heavy_is_loaded(home, capsys):
    files = entered(lambda: run(capsys, "doctor"))
    assert "app/doctor.py" in files
    assert not {"upstreams/git.py", "anchors/source.py", "site/build.py"} & files
