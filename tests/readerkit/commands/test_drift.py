"""``drift UPSTREAM``: notes followed to another revision, and what is no longer so."""

import json
import re
from xml.etree import ElementTree

import pytest
import yaml

from readerkit.app.drift_target import meant_release
from tests.helpers import (
    ANNOTATIONS,
    SAMPLE,
    git,
    make_book,
    run,
    run_on_terminal,
    write_files,
)
from tests.readerkit.commands.test_living import (
    NOTE,
    Kept,
    kept,  # noqa: F401  a fixture
)

pytestmark = pytest.mark.sampled

STEP = SAMPLE[SAMPLE.index("def step") :]
CLAIMS = """\
  claims:
    - says: One switch
      guard: {file: lib/linear.py, symbol: Linear.forward,
              code: reduce_scatter(...), under: self.sequence_parallel}
"""
NOTED = ANNOTATIONS.replace(
    "  concepts: [all-reduce]\n", "  concepts: [all-reduce]\n" + CLAIMS, 1
)


class Desk:
    def __init__(self, book, capsys):
        self.book, self._capsys = book, capsys

    def __call__(self, *arguments):
        return run(self._capsys, *arguments, "--book", str(self.book.root))

    def commit(self, files, tag):
        """Make another commit of the sample; None takes a file out."""
        repository = self.book.repository
        for path in [path for path, text in files.items() if text is None]:
            (repository / path).unlink()
        write_files(repository, {p: t for p, t in files.items() if t is not None})
        git(repository, "add", "--all")
        git(repository, "commit", "--quiet", "--message", tag)
        git(repository, "tag", "--annotate", "--message", tag, tag)
        return f"{repository}@{tag}"

    def statuses(self, to):
        done = self("drift", "sample", "--to", to, "--json")
        assert done.code == 0, done.err
        found = json.loads(done.out)
        return found, {row["id"]: row for row in found["notes"]}


@pytest.fixture
def reviewed(tmp_path, capsys):
    desk = Desk(make_book(tmp_path, annotations=NOTED), capsys)
    assert desk("annotate", "--update-lock").code == 0
    assert desk("review", "close", "whole-step").code == 0
    return desk


def test_the_same_code_is_the_same(reviewed):
    found, rows = reviewed.statuses(str(reviewed.book.repository))
    assert found["counts"] == {"same": 2}
    assert found["held"] == 1
    assert [row["to_do"] for row in rows.values()] == ["", ""]


def test_a_note_whose_code_went_to_another_file_gets_an_anchor_there(reviewed):
    to = reviewed.commit(
        {
            "lib/linear.py": SAMPLE.replace(STEP, ""),
            "lib/train.py": '"""Training."""\n\nimport os\n\n\n' + STEP,
        },
        "v2",
    )
    _, rows = reviewed.statuses(to)
    assert rows["close"]["status"] == "same"
    moved = rows["whole-step"]
    assert moved["status"] == "moved"
    assert moved["anchor"] == {"file": "lib/train.py", "symbol": "step"}
    assert moved["to"]["path"] == "lib/train.py"


def test_edited_code_shows_both_texts_and_sentences_that_are_no_longer_true(reviewed):
    other = SAMPLE.replace(
        "if self.sequence_parallel:", "if self.fused or self.sequence_parallel:"
    ).replace("reduce_scatter(y, ", "reduce_scatter(y * 2, ")
    found, rows = reviewed.statuses(reviewed.commit({"lib/linear.py": other}, "v2"))
    edited = rows["close"]
    assert edited["status"] == "edited"
    assert "        if self.sequence_parallel:" in edited["before"]
    assert "        if self.fused or self.sequence_parallel:" in edited["after"]
    assert edited["anchor"]["file"] == "lib/linear.py"
    [sentence] = found["sentences"]
    assert (sentence["id"], sentence["says"]) == ("close", "One switch")
    shown = reviewed("drift", "sample", "--to", f"{reviewed.book.repository}@v2").out
    assert "edited close: lib/linear.py:14-17 -> lib/linear.py:14-17" in shown
    assert "One switch" in shown


def test_code_that_is_gone_is_gone(reviewed):
    to = reviewed.commit({"lib/linear.py": SAMPLE.replace(STEP, "")}, "v2")
    _, rows = reviewed.statuses(to)
    assert rows["whole-step"]["status"] == "gone"
    assert rows["whole-step"]["to"] is None
    assert "take the note out" in rows["whole-step"]["to_do"]


def test_apply_moves_anchors_pin_and_lock_and_keeps_reviews(reviewed):
    to = reviewed.commit(
        {
            "lib/linear.py": SAMPLE.replace(STEP, "").replace(
                "if self.sequence_parallel:", "if self.sequence_parallel is True:"
            ),
            "lib/train.py": '"""Training."""\n\nimport os\n\n\n' + STEP,
        },
        "v2",
    )
    commit = git(reviewed.book.repository, "rev-parse", "v2^{commit}")
    done = reviewed("drift", "sample", "--to", to, "--apply")
    assert done.code == 0, done.err
    [pin] = yaml.safe_load(reviewed.book.path("upstreams.yaml").read_text())
    assert (pin["tag"], pin["commit"]) == ("v2", commit)
    written = reviewed.book.path("sample/linear.yaml").read_text()
    assert "at: {file: lib/train.py, symbol: step}" in written
    lock = json.loads(reviewed.book.path("sample.lock").read_text())
    assert lock["commit"] == commit
    assert "lib/train.py" in lock["files"]
    # What it needs was brought along, and every anchor stands where the lock says.
    listed = reviewed("annotate", "sample", "--json")
    states = {note["id"]: note["state"] for note in json.loads(listed.out)}
    assert states == {"close": "changed", "whole-step": "reviewed"}
    check = reviewed("annotate", "sample", "--check")
    assert "One switch" in check.err  # no longer true, and a person says what is
    assert "whole-step" not in check.err


def test_apply_leaves_what_is_not_sure_to_a_person(reviewed):
    to = reviewed.commit({"lib/linear.py": SAMPLE.replace(STEP, "")}, "v2")
    done = reviewed("drift", "sample", "--to", to, "--apply")
    assert done.code == 0, done.err
    assert "left for you: whole-step" in done.out
    check = reviewed("annotate", "sample", "--check")
    assert check.code == 1
    assert "whole-step" in check.err


def test_apply_without_a_commit_writes_nothing(reviewed, tmp_path):
    write_files(tmp_path / "tree", {"lib/linear.py": "import os\n" + SAMPLE})
    files = [reviewed.book.path(n) for n in ("upstreams.yaml", "sample.lock")]
    before = [file.read_bytes() for file in files]
    done = reviewed("drift", "sample", "--to", str(tmp_path / "tree"), "--apply")
    assert done.code == 1
    assert "expected the full id of the commit" in done.err
    assert [file.read_bytes() for file in files] == before


def test_a_tag_of_the_upstreams_own_repository_is_asked_for(reviewed, monkeypatch):
    monkeypatch.setenv("READERKIT_SCHEMES", "file")
    reviewed.commit({"lib/linear.py": "import os\n" + SAMPLE}, "v2")
    found, rows = reviewed.statuses("v2")
    assert found["to"] == "v2"
    assert {row["status"] for row in rows.values()} == {"moved"}


def test_what_was_kept_has_a_page_and_a_feed(reviewed, tmp_path):
    other = SAMPLE.replace(STEP, "").replace(
        "if self.sequence_parallel:", "if self.fused or self.sequence_parallel:"
    )
    to = reviewed.commit(
        {"lib/linear.py": other, "lib/train.py": "import os\n\n\n" + STEP}, "v2"
    )
    assert reviewed("drift", "sample", "--to", to, "--keep").code == 0
    report = reviewed.book.path("drift/sample.json").read_text()
    assert "reduce_scatter(" not in report  # no code of upstream is kept
    built = reviewed("site", "build", "--output", str(tmp_path / "site"))
    assert built.code == 0, built.err
    page = (tmp_path / "site/drift/sample.html").read_text()
    assert "Sample: v1, commit" in page
    assert "lib/train.py:4" in page
    assert '<q lang="en">One switch</q>' in page
    tree = (tmp_path / "site/read/sample/index.html").read_text()
    assert "../../drift/sample.html" in tree
    feed = ElementTree.parse(tmp_path / "site/drift/sample.xml").getroot()
    atom = "{http://www.w3.org/2005/Atom}"
    titles = [entry.findtext(f"{atom}title") for entry in feed.iter(f"{atom}entry")]
    assert titles == ["close: no longer true", "close: edited", "whole-step: moved"]
    ids = [each.text for each in feed.iter(f"{atom}id")]
    assert len({*ids}) == len(ids) == 4


def test_a_damaged_report_is_named(reviewed, tmp_path):
    write_files(reviewed.book.root / "annotations", {"drift/sample.json": "{}"})
    built = reviewed("site", "build", "--output", str(tmp_path / "site"))
    assert built.code == 1
    assert "annotations/drift/sample.json:1" in built.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["sample", "--to", "v99"], 1, "has no tag v99"),
        (["sample"], 1, "no newer release can be had"),
        (["nothing"], 2, "unknown upstream"),
        ([], 1, "sample: no newer release can be had"),
        (["sample", "--from", "x"], 2, "--from is for --spans"),
        (["sample", "--commit", "abc"], 2, "--commit is for --apply"),
        (["sample", "--apply", "--commit", "abc"], 2, "expected 40 digits"),
    ],
)
def test_what_cannot_be_done_is_said_in_words(
    reviewed, monkeypatch, arguments, code, said
):
    monkeypatch.setenv("READERKIT_SCHEMES", "file")
    done = reviewed("drift", *arguments)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


def test_of_several_upstreams_one_is_to_be_named(capsys):
    for more in ([], ["--apply"]):
        done = run(capsys, "drift", *more)
        assert (done.code, done.out) == (2, "")
        assert "name an UPSTREAM (megatron, " in done.err


def test_notes_on_a_work_tree_follow_a_refactoring(kept: Kept):  # noqa: F811
    kept.edit('"""An app that fetches."""\n\n\n', '"""An app."""\n\nimport os\n\n\n')
    text = kept.app.read_text()
    at = text.index("def fetch_page")
    moved, rest = text[at : text.index("def main")], text[text.index("def main") :]
    kept.app.write_text(text[:at] + rest)
    (kept.root / "src/net.py").write_text(
        '"""The net."""\n\n\n' + moved.rstrip() + "\n"
    )
    assert kept("annotate", "app", "--check").code == 1
    done = kept("drift", "app", "--apply")

    assert done.code == 0, done.err
    written = (kept.book / "annotations/app/notes.yaml").read_text()
    assert "at: {file: src/net.py, symbol: fetch_page}" in written
    shown = kept("annotate", "app", "--json")
    assert shown.code == 0, shown.err
    shown = json.loads(shown.out)
    assert {note["id"]: note["state"] for note in shown} == {
        "tries": "reviewed",
        "use": "reviewed",
    }


def test_code_that_no_commit_has_is_not_taken_for_what_stands_there(kept: Kept):  # noqa: F811
    text = kept.app.read_text()
    kept.app.write_text("# 1\n# 2\n# 3\n# 4\n# 5\n# 6\n" + text)  # in no commit
    assert kept("annotate", "--update-lock").code == 0
    kept.app.write_text("# 0\n" + text.replace("def fetch_page", "def fetched"))
    rows = json.loads(kept("drift", "app", "--json").out)["notes"]
    found = {row["id"]: row for row in rows}
    assert found["tries"]["to"] == {"path": "src/app.py", "first": 5, "last": 10}
    assert found["tries"]["anchor"] == {"file": "src/app.py", "symbol": "fetched"}

    kept.app.write_text("# 1\n# 2\n" + text.replace("if url:", "if url and tries:"))
    assert kept("review", "tries").code == 0
    kept.app.write_text(text.replace("def fetch_page", "def fetched"))
    done = kept("drift", "app", "--json", "--apply")
    assert done.code == 0, done.err
    found = {row["id"]: row for row in json.loads(done.out)["notes"]}
    assert found["tries"]["status"] == "unsure"
    assert (
        "no commit has the code that it was locked against"
        in (found["tries"]["reason"])
    )
    assert json.loads(done.out)["left"] == ["tries"]
    written = (kept.book / "annotations/app/notes.yaml").read_text()
    assert "{file: src/app.py, symbol: fetch_page}" in written


def test_a_file_that_is_gone_or_not_read_leaves_the_rest_to_be_followed(kept: Kept):  # noqa: F811
    write_files(kept.root, {"src/more.py": "def more():\n    return 1\n"})
    notes = kept.book / "annotations/app/notes.yaml"
    new = NOTE[NOTE.index("- id: use") :].replace("id: use", "id: more")
    new = new.replace("src/app.py, symbol: main", "src/more.py, symbol: more")
    notes.write_text(NOTE + new)
    git(kept.root, "add", "--all")
    git(kept.root, "commit", "--quiet", "--message=more")
    assert kept("annotate", "--update-lock").code == 0
    assert kept("review", "more").code == 0
    kept.app.write_text("import os\n" + kept.app.read_text())

    (kept.root / "src/more.py").write_text("def more():\n    return 1\n#" * 90_000)
    large = kept("drift", "app", "--all")
    assert (large.code, large.err) == (0, "")
    assert "3 anchors: 2 moved, 1 unsure" in large.out
    assert large.out.count("expected at most 2,000,000") == 1

    (kept.root / "src/more.py").unlink()
    gone = kept("drift", "app")
    assert (gone.code, gone.err) == (0, "")
    assert "3 anchors: 2 moved, 1 gone" in gone.out
    assert "app includes no file 'src/more.py'; " in gone.out


def test_a_narrow_screen_breaks_no_word(reviewed):
    other = SAMPLE.replace(
        "if self.sequence_parallel:", "if self.fused or self.sequence_parallel:"
    )
    to = reviewed.commit({"lib/linear.py": other}, "v2")
    words = ("drift", "sample", "--to", to, "--book", str(reviewed.book.root))
    shown = run_on_terminal(40, *words)
    assert max(map(len, shown.splitlines())) <= 40 or to in shown
    assert "        if self.sequence_parallel" in shown
    assert "-" in shown and "| " not in shown
    wide = run_on_terminal(120, *words)
    assert re.search(r"~ +if self.sequence_parallel: +\| +if self.fused or", wide)


def test_code_that_lives_is_compared_with_a_revision_of_its_repository(kept):  # noqa: F811
    kept("annotate", "--update-lock")
    git(kept.root, "add", "--all")
    git(kept.root, "commit", "--quiet", "--message", "Locked")
    git(kept.root, "branch", "before")
    kept.edit("def fetch_page", "def page_of")
    for revision in ("before", "HEAD"):
        done = kept("drift", "--to", revision)
        assert done.code == 0, done.err
        assert f"@{revision}" in done.out.splitlines()[0]
    done = kept("drift", "--to", "nowhere")
    assert done.code == 1
    assert "no revision 'nowhere' can be had" in done.err


@pytest.mark.parametrize("place", ["/nowhere", "./nowhere", "~/nowhere"])
def test_a_folder_that_is_not_there_is_asked_of_nobody(place, capsys):
    done = run(capsys, "drift", "megatron", "--to", place)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"readerkit: --to {place}: got no folder there")


@pytest.mark.parametrize(
    ("tag", "to", "release"),
    [
        ("core_v1.2", "core_v0.15.0", "0.15.0"),
        ("core_v1.2", "0.15.0", "0.15.0"),
        ("v1.2", "v0.19.4", "0.19.4"),
        ("", "v0.19.4", "0.19.4"),
        ("release-1.2-final", "release-2.0-final", "2.0"),
        ("stable", "stable", "stable"),
    ],
)
def test_a_release_is_meant_by_its_tag_too(tag, to, release):
    assert meant_release(tag, "1.2", to) == release


TOTAL = """\


def total(rows, key):
    result = 0
    for row in rows:
        result += row[key]
    return result
"""
SUM_OF = '''\
"""Sums."""


def sum_of(rows, key):
    result = 0
    for row in rows:
        if key in row:
            result += row[key]
    return result
'''
WHERE = {
    "total": {"lib/linear.py": SAMPLE + TOTAL, "lib/sums.py": None},
    "sum_of": {"lib/linear.py": SAMPLE, "lib/sums.py": SUM_OF},
}


@pytest.mark.parametrize("names", [("total", "sum_of"), ("sum_of", "total")])
def test_what_moved_was_renamed_and_wrapped_is_followed_both_ways(
    tmp_path, capsys, names
):
    was, now = names
    homes = {"total": "lib/linear.py", "sum_of": "lib/sums.py"}
    rows = [
        {"id": "all", "at": {"file": homes[was], "symbol": was}},
        {
            "id": "loop",
            "at": {"file": homes[was], "symbol": was, "code": "for row in rows: ..."},
        },
    ]
    about = {"kind": "note", "title": "A sum", "text": "It adds."}
    notes = [row | about | {"concepts": ["all-reduce"]} for row in rows]
    files = {path: text for path, text in WHERE[was].items() if text}
    book = make_book(tmp_path, files=files, annotations=yaml.safe_dump(notes))
    desk = Desk(book, capsys)
    assert desk("annotate", "--update-lock").code == 0
    there = {path: text for path, text in WHERE[now].items() if text or path in files}
    _, found = desk.statuses(desk.commit(there, "v2"))
    assert {name: row["status"] for name, row in found.items()} == {
        "all": "edited",
        "loop": "edited",
    }
    for row in rows:
        at = row["at"] | {"file": homes[now], "symbol": now}
        assert found[row["id"]]["anchor"] == at
        assert found[row["id"]]["confidence"] >= 0.92


@pytest.mark.parametrize(
    ("text", "status", "state"),
    [
        ("What Linear.forward gives.", "edited", "unreviewed"),
        ("What it gives.", "moved", "reviewed"),
    ],
)
def test_words_that_name_a_definition_are_read_again_where_it_has_another_owner(
    tmp_path, capsys, text, status, state
):
    note = {"id": "gives", "kind": "note", "title": "A result", "text": text}
    note |= {"at": {"file": "lib/linear.py", "symbol": "Linear.forward"}}
    written = yaml.safe_dump([note | {"concepts": ["all-reduce"]}])
    desk = Desk(make_book(tmp_path, annotations=written), capsys)
    assert desk("annotate", "--update-lock").code == 0
    assert desk("review", "gives").code == 0
    other = SAMPLE.replace("class Linear", "class Layer")
    to = desk.commit({"lib/linear.py": other}, "v2")
    _, rows = desk.statuses(to)
    assert rows["gives"]["status"] == status
    assert "Linear.forward is Layer.forward now" in rows["gives"]["reason"]
    assert desk("drift", "sample", "--to", to, "--apply").code == 0
    [found] = json.loads(desk("annotate", "--json").out)
    assert (found["symbol"], found["state"]) == ("Layer.forward", state)
