"""Notes on the repository that a book stands in, as its files are now."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import yaml

from tests.helpers import git, make_repository, run, write_files
from tests.readerkit.commands.test_init import APP, LICENCE

NOTE = """\
- id: tries
  at: {file: src/app.py, symbol: fetch_page}
  kind: note
  title: It tries again
  text: It gives up after 3 tries, by default.
  concepts: [idea]
  claims:
    - says: 3 tries, by default
      default: {file: src/app.py, of: fetch_page.tries, is: 3}
- id: use
  at: {file: src/app.py, symbol: main}
  kind: note
  title: Where it is used
  text: Two addresses are asked.
  concepts: [idea]
"""
CONCEPTS = "- {id: idea, title: An idea, summary: What this is about.}\n"


class Kept:
    """A repository with a book in it, and the command on that."""

    def __init__(self, root: Path, capsys) -> None:
        self.root, self.book, self._capsys = root, root / "book", capsys
        self.app = root / "src/app.py"

    def __call__(self, *arguments: str):
        return run(self._capsys, *arguments, "--book", str(self.book))

    def run(self, *arguments: str):
        return run(self._capsys, *arguments)

    def edit(self, old: str, new: str) -> None:
        text = self.app.read_text()
        assert old in text
        self.app.write_text(text.replace(old, new))

    @property
    def locked(self) -> dict:
        return json.loads((self.book / "annotations/app.lock").read_text())


@pytest.fixture
def kept(tmp_path, monkeypatch, capsys) -> Kept:
    monkeypatch.setenv("READERKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("READERKIT_DATA", str(tmp_path / "data"))
    upstream = {"name": "app", "title": "App", "worktree": True}
    root = tmp_path / "repo"
    files = {
        "src/app.py": APP,
        "LICENSE": LICENCE,
        ".gitignore": "ignored/\n",
        "book/annotations/upstreams.yaml": yaml.safe_dump(
            [upstream | {"include": ["**/*.py"], "exclude": ["gen/**"]}]
        ),
        "book/annotations/concepts.yaml": CONCEPTS,
        "book/annotations/references.yaml": "[]\n",
        "book/annotations/app/notes.yaml": NOTE,
    }
    make_repository(root, files)
    git(root, "config", "user.name", "Jane Doe")
    kept = Kept(root, capsys)
    assert kept("annotate", "--update-lock").code == 0
    assert kept("review", "tries", "use").code == 0
    return kept


def test_a_lock_says_who_read_a_note_against_which_code(kept):
    anchor = kept.locked["anchors"]["tries"]
    assert anchor["by"] == "Jane Doe"
    assert anchor["at"] == git(kept.root, "rev-parse", "HEAD")
    assert anchor["blob"] == git(kept.root, "hash-object", "src/app.py")
    assert len(anchor["on"]) == len("2026-01-31")


def test_lines_that_only_move_are_followed(kept):
    kept.app.write_text("# one\n# two\n\n" + APP)
    held = kept("annotate", "--check", "--strict")
    assert (held.code, held.err) == (0, "")
    assert "src/app.py:7-12" in kept("annotate", "app").out
    assert "as the lock says" in held.out


def test_code_that_was_edited_names_note_sentence_lines_and_reader(kept):
    kept.edit("tries=3", "tries=5")
    red = kept("annotate", "--check")
    assert red.code == 1
    commit = git(kept.root, "rev-parse", "HEAD")[:12]
    [day] = {each["on"] for each in kept.locked["anchors"].values()}
    assert (
        "annotations/app/notes.yaml:1:3: tries: the code under it changed since Jane "
        f"Doe reviewed it on {day}, at commit {commit}: src/app.py:4-9 of fetch_page, "
        "line 4\n    4: def fetch_page(url, tries=5):\n    it says: It tries again: "
        "It gives up after 3 tries, by default.\n"
    ) in red.err
    assert "'3 tries, by default' is no longer true: got src/app.py:4" in red.err
    assert "use:" not in red.err

    told = json.loads(kept("annotate", "--check", "--json").out)
    [edited] = told["edited"]
    assert edited["id"] == "tries"
    assert edited["lines"] == [4]
    assert edited["reviewed_by"] == "Jane Doe"


def test_an_update_of_the_lock_is_no_review(kept):
    kept.edit("if url:", "if url is not None:")
    before = kept.locked["anchors"]["tries"]
    assert kept("annotate", "--update-lock").code == 0
    assert kept.locked["anchors"]["tries"] == before
    assert kept("annotate", "--check").code == 1
    reviewed = kept("review", "tries", "--by", "John Roe")
    assert (reviewed.code, reviewed.err) == (0, "")
    held = kept("annotate", "--check", "--strict")
    assert (held.code, held.err) == (0, "")
    assert kept.locked["anchors"]["tries"]["by"] == "John Roe"
    assert kept.locked["anchors"]["use"]["by"] == "Jane Doe"


def test_a_definition_that_is_gone_is_told_with_what_is_near(kept):
    kept.edit("def fetch_page(", "def fetch_pages(")
    red = kept("annotate", "--check")
    assert red.code == 1
    assert "no symbol 'fetch_page'" in red.err
    assert "did you mean fetch_pages?" in red.err


def test_a_note_that_is_new_is_to_be_locked(kept):
    file = kept.book / "annotations/app/notes.yaml"
    new = NOTE[NOTE.index("- id: use") :].replace("id: use", "id: more")
    file.write_text(NOTE + new)
    assert "more: not in the lock yet" in kept("annotate", "--check").err
    assert kept("annotate", "--update-lock").code == 0
    assert kept("annotate", "--check").code == 0
    strict = kept("annotate", "--check", "--strict")
    assert "more: not reviewed against this code" in strict.err


def test_what_git_ignores_what_is_left_out_and_the_book_are_not_read(kept):
    write_files(
        kept.root,
        {
            "ignored/a.py": "a\n",
            "gen/b.py": "b\n",
            "new.py": "c\n",
            "book/annotations/experiments/e.py": "e\n",
        },
    )
    (kept.root / "link.py").symlink_to("new.py")
    (kept.root / os.fsdecode(b"caf\xe9.py")).write_text("d\n")
    assert "of 2 files" in kept("annotate", "app").out


def test_a_book_away_from_its_repository_says_so_in_one_line(kept, tmp_path):
    away = tmp_path / "away" / "book"
    shutil.copytree(kept.book, away)
    for words in (
        ("annotate", "--check"),
        ("annotate",),
        ("drift",),
        ("site", "build"),
    ):
        done = kept.run(*words, "--book", str(away))
        [line] = done.err.splitlines()
        assert (done.code, done.out) == (1, ""), words
        assert line.startswith(f"readerkit: app: {away.parent} has no file of it")


def test_a_branch_is_read_whatever_is_checked_out(kept):
    file = kept.book / "annotations/upstreams.yaml"
    file.write_text(file.read_text().replace("worktree: true", "branch: main"))
    kept.edit("tries=3", "tries=5")
    assert kept("annotate", "--check").code == 0
    git(kept.root, "commit", "--quiet", "--all", "--message=five")
    assert kept("annotate", "--check").code == 1
    git(kept.root, "checkout", "--quiet", "-b", "other")
    git(kept.root, "branch", "--quiet", "-D", "main")
    gone = kept("annotate", "--check")
    assert gone.code == 1
    assert "has no branch 'main'" in gone.err


def test_a_book_names_no_place_outside_of_its_repository(kept, tmp_path):
    write_files(tmp_path, {"secret.py": "secret = 1\n"})
    file = kept.book / "annotations/upstreams.yaml"
    for path in ("../**/*.py", "src/../../secret.py", str(tmp_path / "secret.py")):
        file.write_text(
            json.dumps(
                [{"name": "app", "title": "A", "worktree": True, "include": [path]}]
            )
        )
        assert "secret" not in kept("annotate", "app").out


def test_the_kinds_of_code_exclude_each_other(kept):
    file = kept.book / "annotations/upstreams.yaml"
    file.write_text(file.read_text() + "  branch: main\n")
    refused = kept("annotate")
    assert refused.code == 1
    assert "'worktree' and 'branch' exclude each other" in refused.err


def test_a_page_and_a_draft_are_of_today(kept, tmp_path):
    kept.app.write_text("\n" + APP)
    page = kept("annotate", "tries")
    assert "src/app.py:5-10" in page.out
    assert "App, the work tree" in page.out
    entry = kept("note", "src/app.py:6-7", "--print", "--kind", "note")
    assert "symbol: fetch_page" in entry.out
    site = tmp_path / "site"
    assert kept("site", "build", "--output", str(site)).code == 0
    assert 'id="tries"' in (site / "read/app/src/app.py.html").read_text()


@pytest.mark.parametrize(
    "typed", ["./src/app.py", "{}/src/app.py", "src/../src/app.py"]
)
def test_a_file_may_be_named_from_here_or_from_the_root(kept, monkeypatch, typed):
    monkeypatch.chdir(kept.root)
    done = kept("note", f"{typed.format(kept.root)}:1-2", "--print")
    assert (done.code, done.err) == (0, "")
    assert "file: src/app.py" in done.out


def test_a_file_may_be_named_from_the_folder_it_is_in(kept, monkeypatch):
    (kept.root / "src/deep").mkdir()
    (kept.root / "src/deep/app.py").write_text("def deep():\n    return 1\n")
    monkeypatch.chdir(kept.root / "src/deep")
    done = kept("note", "app.py:1-2", "--print")
    assert "file: src/deep/app.py" in done.out


def test_a_link_to_itself_is_no_file(kept, monkeypatch):
    (kept.root / "loop.py").symlink_to("loop.py")
    monkeypatch.chdir(kept.root)
    done = kept("note", "loop.py:1", "--print")
    assert done.code == 2
    assert "no upstream of this book includes a file 'loop.py'" in done.err


def test_a_book_without_references_is_asked_for_a_note(kept):
    """A citation wants one, so that its form could not be filled in."""
    assert "kind: note\n" in kept("note", "src/app.py:1-2", "--print").out
    turned = kept("note", "src/app.py:9-2", "--print")
    assert turned.code == 2
    assert "got 'src/app.py:9-2', expected the first line before the last" in turned.err


def test_a_name_that_is_gone_leads_to_drift(kept):
    kept("annotate", "--update-lock")
    kept.edit("def fetch_page", "def page_of")
    red = kept("annotate", "--check")
    assert red.code == 1
    assert "1 note does not find the code that was reviewed: where it was" in red.err
    assert f"readerkit drift app --book {kept.book} says where it is now" in red.err


def test_notes_on_many_files_are_held_as_notes_on_few(kept, tmp_path):
    """So many that they are parsed by several processes."""
    code = {f"src/m{i}.py": f"def f{i}():\n    return {i}\n" for i in range(120)}
    entries = [
        {
            "id": f"n{i}",
            "at": {"file": path, "symbol": f"f{i}", "code": f"return {i}"},
            "kind": "note",
            "title": f"Returns {i}",
            "text": "That is all.",
            "concepts": ["idea"],
        }
        for i, path in enumerate(code)
    ]
    notes = {"book/annotations/app/many.yaml": yaml.safe_dump(entries)}
    write_files(kept.root, code | notes)
    assert kept("annotate", "--update-lock").code == 0
    held = json.loads(kept("annotate", "--check", "--json").out)
    assert (held["ok"], held["upstreams"][0]["anchors"]) == (True, 122)

    shutil.rmtree(tmp_path / "cache")
    kept.root.joinpath("src/m7.py").write_text("# moved\n\ndef f7():\n    return 7\n")
    kept.root.joinpath("src/m8.py").write_text("def f8():\n    return 9\n")
    kept.root.joinpath("src/m9.py").unlink()
    kept.root.joinpath("src/m10.py").write_bytes(b"\0")
    for _ in range(2):  # the second time what was found is remembered
        red = kept("annotate", "--check", "--json")
        told = [each["message"] for each in json.loads(red.out)["faults"]]
        assert [each.partition(":")[0] for each in told] == ["n8", "n9", "n10"]
        assert "no match for 'return 8' in f8" in told[0]
    assert "src/m7.py:4" in kept("annotate", "app").out
