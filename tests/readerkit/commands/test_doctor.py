"""What works here and what is missing: told on one screen, mended as it says."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import click
import pytest

from tests.helpers import (
    entered,
    make_book,
    run,
    run_on_terminal,
    run_process,
    write_files,
)

pytestmark = pytest.mark.sampled


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


def test_on_a_narrow_terminal_lines_break_between_words():
    shown = click.unstyle(run_on_terminal(40, "doctor"))
    assert all(len(line) <= 40 for line in shown.split("\n") if " " in line.strip())


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


def test_a_folder_that_is_no_book_is_mended_by_beginning_one(home, capsys):
    row = told(capsys, "--book", str(home))["book"]
    assert (row["state"], row["mend"]) == ("broken", "readerkit init")


@pytest.mark.parametrize(("holds", "state"), [(True, "missing"), (False, "broken")])
def test_a_cache_that_can_only_be_read_is_broken_where_nothing_is_in_it(
    holds, state, home, capsys, monkeypatch
):
    (home / "cache" / "blobs" if holds else home / "cache").mkdir(parents=True)
    access = os.access
    monkeypatch.setattr(
        os,
        "access",
        lambda path, mode: (
            access(path, mode) and not (mode & os.W_OK and Path(path).name == "cache")
        ),
    )
    row = told(capsys)["cache"]
    assert (row["state"], "can be read" in row["detail"]) == (state, holds)
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


def test_an_extra_that_is_missing_names_its_package(home, capsys, monkeypatch):
    from importlib import metadata

    version = metadata.version

    def without(name: str) -> str:
        if name in ("torch", "genanki"):
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", without)
    rows = told(capsys)
    assert rows["torch"]["state"] == "missing"
    assert rows["anki"]["mend"] == "pip install genanki"


@pytest.mark.further
@pytest.mark.parametrize(
    ("package", "text", "state", "detail", "mend"),
    [
        pytest.param(
            "tree_sitter_rust",
            "raise ModuleNotFoundError(name='tree_sitter_rust')",
            "missing",
            "the grammar of Rust is not installed",
            "pip install tree-sitter-rust",
            id="not-installed",
        ),
        pytest.param(
            "tree_sitter_rust",
            "from ._binding import language",
            "missing",
            "the grammar of Rust does not load (No module named "
            "'tree_sitter_rust._binding')",
            "pip install --force-reinstall tree-sitter-rust",
            id="no-library",
        ),
        pytest.param(
            "tree_sitter_go",
            "",
            "missing",
            "the grammar of Go does not load (module 'tree_sitter_go' has no "
            "attribute 'language')",
            "pip install --force-reinstall tree-sitter-go",
            id="another-thing",
        ),
        pytest.param(
            "tree_sitter_python",
            "import ctypes\n"
            "api = ctypes.pythonapi\n"
            "api.PyCapsule_New.restype = ctypes.py_object\n"
            "data = ctypes.create_string_buffer(bytes([99, 0, 0, 0]) + bytes(4096))\n"
            "name = b'tree_sitter.Language'\n"
            "def language():\n"
            "    where = ctypes.c_void_p(ctypes.addressof(data))\n"
            "    return api.PyCapsule_New(where, name, None)\n",
            "broken",
            "the grammar of Python does not load (Incompatible Language version 99. "
            "Must be between ",
            "pip install --force-reinstall tree-sitter-python",
            id="of-another-tree-sitter",
        ),
    ],
)
def test_a_grammar_that_does_not_load_is_told_with_its_reason(
    package, text, state, detail, mend, home
):
    hidden = write_files(home / "hidden", {f"{package}/__init__.py": text})
    done = run_process("doctor", "--json", environment={"PYTHONPATH": str(hidden)})
    said = json.loads(done.out)
    row = next(row for row in said["rows"] if row["what"] == "grammars")
    assert (row["state"], row["mend"]) == (state, mend)
    assert row["detail"].startswith(detail)
    assert (done.code == 0) == said["ok"] == (state == "missing")


def test_nothing_heavy_is_loaded(home, capsys):
    files = entered(lambda: run(capsys, "doctor"))
    assert "app/doctor.py" in files
    assert (
        not {"upstreams/git_commands.py", "anchors/source.py", "site/build.py"} & files
    )
