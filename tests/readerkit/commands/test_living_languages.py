"""A book over code of nine languages: held, shown, searched, written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.helpers import make_repository, read_search_index, run, write_files
from tests.readerkit.anchors.languages import SOURCES
from tests.readerkit.commands.test_living import CONCEPTS, Kept

SYMBOL = {
    "a.c": "make",
    "a.cpp": "net.Server.close",
    "a.cu": "scale",
    "a.rs": "net.Server.close",
    "a.go": "Server.Close",
    "a.js": "Server.run",
    "a.ts": "Server.get",
    "a.tsx": "App",
    "A.java": "Server.run",
}
EDITS = {
    "a.c": (b"> 3", b"> 4"),
    "a.cpp": (b"i < 3", b"i < 4"),
    "a.cu": (b"*= by", b"+= by"),
    "a.rs": (b"n > 3", b"n > 4"),
    "a.go": (b"n > 3", b"n > 4"),
    "a.js": (b"again: true", b"again: false"),
    "a.ts": (b"this.all?.[key]", b"this.all[key]"),
    "a.tsx": (b"name.trim()", b"name"),
    "A.java": (b"i < port", b"i <= port"),
}
NAMES = {path: path.lower().replace(".", "-") for path in SOURCES}
CLAIMS = """\
  claims:
    - says: nothing is returned past 3
      order: {file: src/a.go, symbol: Server.Close,
              code: ["if n > 3 {", "go s.run(...)"]}
    - says: There is no lock
      absent: {name: Mutex, in: ["src/*.go"]}
"""


def note(path: str) -> str:
    claims = CLAIMS if path == "a.go" else ""
    return (
        f"- id: {NAMES[path]}\n  at: {{file: src/{path}, symbol: {SYMBOL[path]}}}\n"
        f"  kind: note\n  title: A note on {path}\n"
        "  text: There is no lock, and nothing is returned past 3.\n"
        f"  concepts: [idea]\n{claims}"
    ).replace("There is no lock", "There is no lock" if claims else "Some code")


@pytest.fixture
def many(tmp_path, monkeypatch, capsys) -> Kept:
    monkeypatch.setenv("READERKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("READERKIT_DATA", str(tmp_path / "data"))
    root = tmp_path / "repo"
    upstream = {
        "name": "code",
        "title": "Code",
        "worktree": True,
        "include": ["src/**"],
    }
    files: dict[str, str | bytes] = {f"src/{p}": data for p, data in SOURCES.items()}
    files |= {
        "src/README": "no code\n",
        "book/annotations/upstreams.yaml": json.dumps([upstream]),
        "book/annotations/concepts.yaml": CONCEPTS,
        "book/annotations/references.yaml": "[]\n",
        "book/annotations/code/notes.yaml": "".join(map(note, SOURCES)),
    }
    make_repository(root, files)
    kept = Kept(root, capsys)
    locked = kept("annotate", "--update-lock")
    assert (locked.code, locked.err) == (0, "")
    assert kept("review", *NAMES.values(), "--by", "Ada").code == 0
    return kept


def test_code_of_each_language_moves_and_is_edited(many):
    for path, data in SOURCES.items():
        comment = b"/* moved */\n\n"
        write_files(many.root, {f"src/{path}": comment + data})
    held = many("annotate", "--check", "--strict")
    assert (held.code, held.err) == (0, "")
    assert "claims: 2 sentences held" in held.out

    for path, (old, new) in EDITS.items():
        data = SOURCES[path]
        assert data.count(old) == 1
        write_files(many.root, {f"src/{path}": data.replace(old, new)})
    red = json.loads(many("annotate", "--check", "--json").out)
    told = {each["path"]: each["lines"] for each in red["edited"]}
    changed = {
        f"src/{path}": [SOURCES[path][: SOURCES[path].index(old)].count(b"\n") + 1]
        for path, (old, _) in EDITS.items()
    }
    assert told == changed
    [lost] = red["claims"]["not_held"]
    assert "no match for 'if n > 3 {'" in lost["found"]


def test_pages_are_coloured_and_definitions_are_found(many, tmp_path):
    site = tmp_path / "site"
    built = many("site", "build", "--output", str(site))
    assert (built.code, built.err) == (0, "")
    for path in SOURCES:
        page = (site / f"read/code/src/{path}.html").read_text()
        assert f'id="{NAMES[path]}"' in page
        assert re.search(r"<b>[a-z# ]*(return|for|if|let)", page), path
    plain = (site / "read/code/src/README.html").read_text()
    assert "no code" in plain
    assert len(read_search_index(site)) >= len(SOURCES)
    packed = (site / "search-names.js").read_text()
    assert all(name.rpartition(".")[2] in packed for name in SYMBOL.values())


@pytest.mark.parametrize(
    "place, wanted",
    [
        ("a.rs:9-11", "code: if n > 3 {...}"),
        ("a.go:12-14", "code: go s.run(...)"),
        ("a.cu:4-6", "code: if (...) {...}"),
        ("A.java:13", "code: close(...);"),
    ],
)
def test_a_note_is_written_on_lines(many, place, wanted):
    entry = many("note", place, "--print", "--kind", "note")
    assert entry.code == 0
    assert wanted in entry.out


def test_what_is_known_of_python_alone_is_one_line(many):
    file = many.book / "annotations/code/notes.yaml"
    claim = "default: {file: src/a.go, of: Server.port, is: 3}"
    text = file.read_text()
    order = text[text.index("order:") : text.index("    - says: There is no lock")]
    file.write_text(text.replace(order, claim + "\n"))
    red = many("annotate", "--check")
    assert red.code == 1
    assert "a default is read in Python alone, and this is Go" in red.err


def test_bad_files_are_one_line_and_nothing_is_written(many):
    lock = (many.book / "annotations/code.lock").read_bytes()
    for path, data, told in (
        ("a.c", b"int x;\0", "got a binary file, expected source"),
        ("a.rs", b"x" * 3_000_000, "got 3,000,000 bytes, expected at most"),
        ("a.js", b"x" * 20_000_000, "is too large: got 20,000,000 bytes"),
    ):
        write_files(many.root, {f"src/{path}": data})
        red = many("annotate", "--check")
        assert red.code == 1
        [line] = [row for row in red.err.splitlines() if told in row]
        assert path in line
        assert many("annotate", "--update-lock").code == 1
        assert (many.book / "annotations/code.lock").read_bytes() == lock
        write_files(many.root, {f"src/{path}": SOURCES[path]})
    assert many("annotate", "--check").code == 0


def test_a_grammar_that_is_missing_is_one_line(many, monkeypatch):
    import importlib

    from readerkit.anchors.grammars import grammar

    real = importlib.import_module

    def without_go(name: str, package: str | None = None) -> object:
        if name == "tree_sitter_go":
            raise ModuleNotFoundError(name=name)
        return real(name, package)

    more = note("a.go").replace(f"id: {NAMES['a.go']}", "id: another")
    with (many.book / "annotations/code/notes.yaml").open("a") as file:
        file.write(more)
    monkeypatch.setattr(importlib, "import_module", without_go)
    for command in (("annotate", "--check"), ("annotate",), ("site", "build")):
        grammar.cache_clear()
        red = many(*command)
        grammar.cache_clear()
        [line] = red.err.splitlines()
        assert red.code == 1
        said = "the grammar of Go is not installed: pip install tree-sitter-go: "
        assert said in line
        assert line.endswith("without it 2 notes cannot be held"), command


def test_a_repository_of_another_language_is_begun(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("READERKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("READERKIT_DATA", str(tmp_path / "data"))
    root = tmp_path / "thing"
    make_repository(root, {"src/lib.rs": SOURCES["a.rs"], "src/big.bin": b"\0" * 99})
    made = run(capsys, "init", str(root))
    assert (made.code, made.err) == (0, "")
    assert "the first note is on " in made.out
    assert ", in src/lib.rs: " in made.out
    book = Path(root / "book")
    assert run(capsys, "annotate", "--check", "--strict", "--book", str(book)).code == 0


def test_a_large_file_without_a_note_keeps_nothing_from_being_read(many, tmp_path):
    write_files(many.root, {"src/made.js": b"x" * 20_000_000})
    assert many("annotate", "--check").code == 0
    for words in (("drift",), ("site", "build", "--output", str(tmp_path / "site"))):
        done = many(*words)
        assert (done.code, done.err) == (0, ""), words
    refused = many("note", "src/made.js:1", "--print")
    assert refused.code == 1
    assert "src/made.js is too large: got 20,000,000 bytes" in refused.err
