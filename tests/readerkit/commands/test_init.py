"""From a repository, an address or a package to a book, a check and a site."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.helpers import git, make_repository, run, run_process, write_files

APP = '''\
"""An app that fetches."""


def fetch_page(url, tries=3):
    """Return what an address answers."""
    for _ in range(tries):
        if url:
            return url
    raise ValueError(url)


def main():
    return fetch_page("a"), fetch_page("b", 1)
'''
LICENCE = """\
Copyright (c) 2020 Jane Doe

Permission is hereby granted, free of charge, to any person obtaining a copy
"""


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("READERKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("READERKIT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("READERKIT_SCHEMES", "file")
    root = tmp_path / "thing"
    files = {"src/app.py": APP, "notes.txt": "no code\n", "LICENSE": LICENCE}
    make_repository(root, files)
    git(root, "config", "user.name", "Jane Doe")
    return root


@pytest.fixture
def in_it(repository, monkeypatch) -> Path:
    monkeypatch.chdir(repository)
    return repository


def check(capsys, book: Path, *more: str):
    return run(capsys, "annotate", "--check", *more, "--book", str(book))


def test_a_repository_becomes_a_book_with_a_note_a_check_and_a_site(in_it, capsys):
    made = run(capsys, "init")
    assert (made.code, made.err) == (0, "")
    book = in_it / "book"
    wrote = {line.removeprefix("wrote ") for line in made.out.splitlines()[:7]}
    there = {str(p.relative_to(in_it)) for p in book.rglob("*") if p.is_file()}
    assert wrote == {path for path in there if "/build/" not in path}
    assert "the first note is on fetch_page, in src/app.py: tries is 3" in made.out

    held = check(capsys, book, "--strict", "--claims")
    assert (held.code, held.err) == (0, "")
    assert "claims: 1 sentence held" in held.out
    site = book / "build" / "site"
    assert "<h1>thing</h1>" in (site / "index.html").read_text()
    assert "tries is 3 by default" in (site / "read/thing/src/app.py.html").read_text()
    assert git(in_it, "status", "--porcelain") == "?? book/"
    assert "build" not in git(in_it, "add", "--dry-run", "book")


def test_pages_of_what_a_book_lacks_are_not_there(in_it, capsys):
    run(capsys, "init")
    site = in_it / "book/build/site"
    pages = {str(p.relative_to(site)) for p in site.rglob("*.html")}
    assert pages == {
        "index.html",
        "paths.html",
        "concepts.html",
        "read/thing/index.html",
        "read/thing/src/app.py.html",
        "read/thing/src/app.py.uses.html",
    }
    for page in pages:
        text = (site / page).read_text()
        links = re.findall(r'href="([^"#:]+\.html)', text)
        assert all((site / page).parent.joinpath(link).is_file() for link in links)
        assert "large models" not in text


def test_nothing_is_overwritten(in_it, capsys):
    write_files(in_it, {"book/mine.txt": "mine\n"})
    refused = run(capsys, "init")
    assert refused.code == 2
    assert "nothing is overwritten" in refused.err
    assert [p.name for p in (in_it / "book").iterdir()] == ["mine.txt"]


def test_a_book_stands_in_the_work_tree_that_it_reads(in_it, tmp_path, capsys):
    refused = run(capsys, "init", "--book", str(tmp_path / "elsewhere"))
    assert refused.code == 2
    assert f"outside of {in_it}, expected one in it" in refused.err
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    "subject, code, told",
    [
        ("./nowhere", 2, "./nowhere: got no folder there"),
        ("file:///nowhere/at/all.git", 1, "git ls-remote"),
        ("gopher://example.org/x", 1, "gopher://example.org/x"),
        ("no such thing", 2, "neither a folder that is there, nor an address"),
        (__file__, 2, "got a file, expected the folder of some code"),
    ],
)
def test_a_subject_that_is_none_is_one_line_and_writes_nothing(
    in_it, capsys, subject, code, told
):
    before = sorted(in_it.iterdir())
    refused = run(capsys, "init", subject)
    assert refused.code == code
    assert told in refused.err
    assert refused.err.count("\n") == 1
    assert sorted(in_it.iterdir()) == before


def test_a_folder_without_code_is_one_line(tmp_path, repository, capsys):
    empty = write_files(tmp_path / "empty", {"a.txt": "a"})
    refused = run(capsys, "init", str(empty))
    assert refused.code == 2
    assert "no file to read: expected one of Python, C, C++" in refused.err
    assert [p.name for p in empty.iterdir()] == ["a.txt"]


def test_a_folder_whose_only_file_is_too_large_says_so(tmp_path, repository, capsys):
    folder = write_files(tmp_path / "large", {"big.py": b"x" * 5_000_000})
    refused = run(capsys, "init", str(folder))
    assert refused.code == 2
    assert "big.py has 5,000,000 bytes, expected at most" in refused.err
    assert [p.name for p in folder.iterdir()] == ["big.py"]


POP = "class Stack {\n int pop() {\n  int v = at();\n  drop();\n  return v;\n }\n};\n"


@pytest.mark.parametrize(
    ("file", "text", "begun_on"),
    [
        ("a.py", "def f(x):\n    return x\n\n\ndef g(x):\n    return f(f(x))\n", "f"),
        ("a.cpp", POP, "Stack.pop"),
        ("a.py", "class Named:\n    pass\n", "Named"),
        ("a.py", "def _own():\n    pass\n", "_own"),
        ("a.py", "def half():\n    return 1\n\n\nx = (\n", "half"),
    ],
    ids=[
        "one letter",
        "three letters",
        "a class alone",
        "private",
        "broken further on",
    ],
)
def test_code_of_little_has_a_first_note_too(
    tmp_path, repository, capsys, file, text, begun_on
):
    folder = write_files(tmp_path / "small", {file: text})
    done = run(capsys, "init", str(folder), "--no-site")
    assert done.code == 0, done.err
    assert f"the first note is on {begun_on}, in {file}" in done.out
    assert check(capsys, folder / "book", "--strict").code == 0


def test_code_that_defines_nothing_says_what_was_looked_for(
    tmp_path, repository, capsys
):
    folder = write_files(tmp_path / "small", {"a.py": "print(1)\n"})
    refused = run(capsys, "init", str(folder))
    assert refused.code == 1
    assert "no function or class that is defined once, of 1 file" in refused.err
    assert not (folder / "book").exists()


def test_submodules_are_not_read_and_are_named(in_it, tmp_path, capsys):
    make_repository(tmp_path / "other", {"b.py": "def other():\n    return 1\n"})
    allowed = ("-c", "protocol.file.allow=always")
    git(in_it, *allowed, "submodule", "add", "--quiet", str(tmp_path / "other"), "dep")
    done = run(capsys, "init", "--no-site")
    assert done.code == 0, done.err
    assert "not read: 1 submodule (dep): a repository of its own each" in done.out
    assert check(capsys, in_it / "book").code == 0


def test_a_file_that_no_page_could_show_is_left_out_by_name(in_it, capsys):
    write_files(in_it, {"src/big.js": b"x" * 5_000_000, "src/odd.js": b"a\0b"})
    made = run(capsys, "init")
    assert (made.code, made.err) == (0, "")
    assert "not read: 1 file of more than 4,000,000 bytes (src/big.js)" in made.out
    [upstream] = yaml.safe_load((in_it / "book/annotations/upstreams.yaml").read_text())
    assert upstream["exclude"] == ["src/big.js"]
    assert upstream["include"] == ["**/*.py", "**/*.js"]
    assert check(capsys, in_it / "book").code == 0


def test_a_file_that_is_left_out_is_told_to_be(in_it, capsys):
    write_files(in_it, {"src/big.js": b"x" * 5_000_000})
    assert run(capsys, "init", "--no-site").code == 0
    done = run(capsys, "note", "src/big.js:1", "--print", "--book", str(in_it / "book"))
    assert done.code == 2
    assert "'src/big.js': got a file that thing leaves out" in done.err


def test_a_bare_repository_is_no_place_for_a_book(tmp_path, capsys):
    git(tmp_path, "init", "--quiet", "--bare", "bare.git")
    before = sorted((tmp_path / "bare.git").iterdir())
    done = run(capsys, "init", str(tmp_path / "bare.git"))
    assert done.code == 2
    assert "got a bare repository, expected one with its files: git clone" in done.err
    assert sorted((tmp_path / "bare.git").iterdir()) == before


def without_grammar(tmp_path: Path, package: str, *words: str):
    """Run a command where a grammar is not installed."""
    hiding = f"raise ModuleNotFoundError(name='{package}')"
    hidden = write_files(tmp_path / "hidden", {f"{package}/__init__.py": hiding})
    return subprocess.run(
        [sys.executable, "-m", "readerkit", *words],
        env={**os.environ, "PYTHONPATH": str(hidden)},
        capture_output=True,
        text=True,
    )


def test_a_grammar_that_is_missing_is_one_line(tmp_path, capsys):
    rust = "pub fn keep_it(key: u32) -> u32 {\n    let found = key;\n    found\n}\n"
    root = tmp_path / "thing"
    make_repository(root, {"lib.rs": rust})
    why = "the grammar of Rust is not installed: pip install tree-sitter-rust"
    refused = without_grammar(tmp_path, "tree_sitter_rust", "init", str(root))
    assert (refused.returncode, refused.stderr) == (1, f"readerkit: {why}\n")
    assert not (root / "book").exists()
    assert run(capsys, "init", str(root), "--no-site").code == 0
    book = ("--book", str(root / "book"))
    for words in (("drift",), ("note", "lib.rs:1", "--print")):
        done = without_grammar(tmp_path, "tree_sitter_rust", *words, *book)
        assert (done.returncode, done.stderr) == (1, f"readerkit: {why}\n"), words


def test_a_folder_without_git_is_read_as_it_is(tmp_path, repository, capsys):
    folder = write_files(tmp_path / "plain", {"app.py": APP})
    made = run(capsys, "init", str(folder), "--no-site")
    assert (made.code, made.err) == (0, "")
    assert check(capsys, folder / "book").code == 0
    write_files(folder, {"app.py": APP.replace("tries=3", "tries=4")})
    assert check(capsys, folder / "book").code == 1


def test_an_address_is_pinned_with_its_licence(
    repository, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    made = run(capsys, "init", repository.as_uri(), "--json")
    assert (made.code, made.err) == (0, "")
    book = tmp_path / "thing-book"
    assert json.loads(made.out)["book"] == str(book)
    [upstream] = yaml.safe_load((book / "annotations/upstreams.yaml").read_text())
    assert upstream["commit"] == git(repository, "rev-parse", "HEAD")
    assert upstream["licence"] == {
        "spdx": "MIT",
        "path": "LICENSE",
        "holder": "Jane Doe",
    }
    held = check(capsys, book, "--strict")
    assert (held.code, held.err) == (0, "")


def test_an_installed_package_is_pinned_at_its_release(
    tmp_path, repository, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    made = run(capsys, "init", "click", "--no-site")
    assert (made.code, made.err) == (0, "")
    book = tmp_path / "click-book"
    [upstream] = yaml.safe_load((book / "annotations/upstreams.yaml").read_text())
    assert upstream["installed"] == "click"
    assert upstream["include"] == ["click/**/*.py"]
    held = check(capsys, book, "--strict")
    assert (held.code, held.err) == (0, "")
    shown = run(capsys, "start", "--book", str(book))
    assert f"click {upstream['package']['version']}" in shown.out


def test_a_package_that_is_a_link_leads_to_its_folder(
    tmp_path, repository, capsys, monkeypatch
):
    here = {"url": repository.as_uri(), "dir_info": {"editable": True}}
    write_files(
        tmp_path / "installed",
        {
            "linked-1.0.dist-info/METADATA": "Name: linked\nVersion: 1.0\n",
            "linked-1.0.dist-info/RECORD": "linked.pth,,\n",
            "linked-1.0.dist-info/direct_url.json": json.dumps(here),
        },
    )
    monkeypatch.syspath_prepend(tmp_path / "installed")
    done = run(capsys, "init", "linked", "--book", str(tmp_path / "b"))
    assert (done.code, done.out) == (2, "")
    assert f"a link to {repository}, where it is edited" in done.err
    there = f"readerkit init {repository} --book {tmp_path / 'b'}"
    assert f"{there}, or a release" in done.err
    assert not (tmp_path / "b").exists()


def test_what_is_neither_folder_nor_package_is_told_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    missed = run(capsys, "init", "no-such-thing")
    assert (missed.code, missed.out) == (1, "")
    assert "no-such-thing: no folder of that name is here, and no package" in missed.err
    assert not any(tmp_path.iterdir())


def test_a_release_that_is_not_locked_is_refused(
    tmp_path, repository, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    run(capsys, "init", "click", "--no-site")
    file = tmp_path / "click-book/annotations/upstreams.yaml"
    file.write_text(re.sub(r"version: .*", "version: 0.0.1", file.read_text()))
    refused = check(capsys, tmp_path / "click-book")
    assert refused.code == 1
    assert "expected one of the pinned click 0.0.1" in refused.err


def test_it_works_without_a_terminal_and_within_seconds(in_it):
    made = run_process("init", cwd=in_it)
    assert (made.code, made.err) == (0, "")


def test_an_interrupted_one_leaves_nothing(in_it, monkeypatch, capsys):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("readerkit.app.new_book.check", interrupt)
    before = sorted(in_it.iterdir())
    assert run(capsys, "init").code == 130
    assert sorted(in_it.iterdir()) == before


def test_one_interrupted_in_its_site_says_that_the_book_is_whole(
    in_it, monkeypatch, capsys
):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("readerkit.site.build.make_site", interrupt)
    done = run(capsys, "init")
    told = "book is whole, and has no site yet: readerkit site build --book book"
    assert (done.code, done.err.split("\n")[::2][:2]) == (
        130,
        [told, "readerkit: interrupted"],
    )
    assert not (in_it / "book/build").exists()
    assert check(capsys, in_it / "book").code == 0


def test_the_site_is_built_again_where_init_built_it(in_it, capsys, monkeypatch):
    """Not beside the code, where the next commit and the book itself would take it."""
    run(capsys, "init")
    again = run(capsys, "site", "build", "--book", "book")
    assert "nothing changed" in again.out
    assert f"open {in_it / 'book/build/site/index.html'}" in again.out
    assert not (in_it / "build").exists()


EMPTY = [
    ("init", ""),
    ("drift", "--to", ""),
    ("review", "first-note", "--by", " "),
]


@pytest.mark.parametrize("words", EMPTY)
def test_nothing_between_quotes_is_no_place_and_no_name(in_it, capsys, words):
    before = sorted(in_it.iterdir())
    refused = run(capsys, *words)
    assert (refused.code, refused.out) == (2, "")
    assert "got nothing, expected a" in refused.err
    assert sorted(in_it.iterdir()) == before
