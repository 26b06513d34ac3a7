import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from readerkit.commands.annotate import KINDS
from readerkit.upstreams.store import blob_id
from tests.helpers import (
    ANNOTATIONS,
    SAMPLE,
    git,
    make_book,
    run,
    run_on_terminal,
    run_process,
    write_files,
)

pytestmark = pytest.mark.sampled

NOTE = """\
- id: {id}
  at: {at}
  kind: note
  title: {title}
  text: {text}
  concepts: [all-reduce]
"""
SPANISH = """\
close: {title: El colectivo de cierre, why: La mitad de los bytes.}
"""
MIRROR = """\
id: closing
title: Closing a layer
idea: Sum what the ranks hold.
sections:
  - title: the sum
    relation: same
    upstream: [close]
    mini: [{file: mini_impls/tiny.py, symbol: SYMBOL}]
"""
MINI = "def close(y, group):\n    return all_reduce(y, group)\n"
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def a_note(at, name="deep", title="A title", text="Some words."):
    return NOTE.format(id=name, at=at, title=title, text=text)


def with_minis(folder: Path, symbol: str = "close"):
    """Make a book whose mini stands beside the note ``close``."""
    book = make_book(
        folder,
        more={
            "mirrors/closing.yaml": MIRROR.replace("SYMBOL", symbol),
            "../mini_impls/tiny.py": MINI,
        },
    )
    path = book.path("upstreams.yaml")
    minis = {"name": "minis", "title": "The minis", "folder": "mini_impls"}
    minis["include"] = ["mini_impls/*.py"]
    path.write_text(json.dumps([*json.loads(path.read_text()), minis]))
    return book


# --- what it shows ---


def test_notes_are_listed_by_file_with_their_exact_lines(desk):
    done = desk.run("annotate", "sample")
    assert (done.code, done.err) == (0, "")
    assert [line.split("\t") for line in done.out.splitlines()[:2]] == [
        [
            "close",
            "citation",
            "lib/linear.py:14-17",
            "Linear.forward",
            "The closing collective",
            "-",
            "unlocked",
        ],
        [
            "whole-step",
            "note",
            "lib/linear.py:21-24",
            "step",
            "One step",
            "-",
            "unlocked",
        ],
    ]
    mend = f"readerkit annotate --update-lock --book {desk.book.root}"
    assert f"# * differs from the lock: {mend}" in done.out
    assert done.out.splitlines()[-1] == (
        "# 2 notes (1 citation) in 1 of 1 file of Sample v1, commit "
        f"{desk.book.commit[:12]}, verified, from git {desk.book.repository.as_uri()} "
        f"at {desk.book.commit[:12]}"
    )


def test_one_note_shows_its_lines_numbered_the_note_and_the_proof(locked):
    done = locked.run("annotate", "sample", "close")
    assert (done.code, done.err) == (0, "")
    lines = [line.rstrip() for line in done.out.splitlines()]
    assert lines[:8] == [
        "citation  The closing collective  close",
        "lib/linear.py:14-17  Linear.forward",
        "",
        "14          if self.sequence_parallel:",
        "15              y = reduce_scatter(y, group=self.group)",
        "16          else:",
        "17              y = all_reduce(y, group=self.group)",
        "",
    ]
    commit, place = locked.book.commit, locked.book.repository.as_uri()
    text = " ".join(done.out.split())
    for words in (
        "Decided One switch picks it.",
        "Instead of Always all-reduce.",
        "Why Half the bytes.",
        "Cost A gather later.",
        "Source A. Author 2020, A paper, section 3 “Method”. https://example.org/paper",
        "Concepts all-reduce",
        f"link {place}/blob/{commit}/lib/linear.py#L14-L17",
        f"pinned Sample v1, commit {commit}",
        f"blob {blob_id(SAMPLE.encode())}, verified on this read",
        "state not reviewed yet: readerkit review close",
        "rights © Nobody, MIT",
    ):
        assert words in text


def test_an_id_alone_names_a_note(desk):
    assert (
        desk.run("annotate", "close").out == desk.run("annotate", "sample", "close").out
    )


def test_json_of_a_note_says_where_it_is_and_what_it_says(locked):
    note = json.loads(locked.run("annotate", "close", "--json").out)
    assert note["path"] == "lib/linear.py"
    assert (note["first"], note["last"]) == (14, 17)
    assert note["symbol"] == "Linear.forward"
    assert note["state"] == "unreviewed"
    assert note["blob"] == blob_id(SAMPLE.encode())
    assert note["commit"] == locked.book.commit
    assert note["references"] == [{"key": "paper", "section": "3"}]
    assert note["anchor"]["code"] == "if self.sequence_parallel: ..."
    assert note["written_at"] == "annotations/sample/linear.yaml:1"
    listed = json.loads(locked.run("annotate", "--json").out)
    assert [row["id"] for row in listed] == ["close", "whole-step"]
    assert listed[0] == note


def test_json_without_notes_is_an_empty_list(tmp_path, capsys):
    book = make_book(tmp_path, annotations="")
    assert run(capsys, "annotate", "--json", "--book", str(book.root)).out == "[]\n"


@pytest.mark.parametrize("kind", KINDS)
def test_schema_for_editors_is_json_schema(kind, desk):
    done = desk.run("annotate", "--schema", kind)
    assert json.loads(done.out)["$schema"].startswith("https://json-schema.org/")


def test_schema_knows_the_ids_of_this_book(desk):
    text = desk.run("annotate", "--schema", "annotations").out
    assert '"all-reduce"' in text
    assert '"paper"' in text


def test_translation_replaces_the_texts_it_has(tmp_path, capsys):
    book = make_book(tmp_path, more={"sample/linear.es.yaml": SPANISH})
    arguments = ("--lang", "es", "--book", str(book.root))
    done = run(capsys, "annotate", "close", *arguments)
    assert "El colectivo de cierre" in done.out
    assert "La mitad de los bytes." in done.out
    assert "One switch picks it." in done.out
    assert done.err == ""
    other = run(capsys, "annotate", "whole-step", *arguments)
    assert "One step" in other.out
    assert "aún sin texto en es" in other.err


def test_check_tells_of_translations_whose_english_changed(tmp_path, capsys):
    unsaid = SPANISH + "whole-step: {title: Un paso}\n"
    book = make_book(tmp_path, more={"sample/linear.es.yaml": unsaid})
    where = ("--book", str(book.root))
    assert run(capsys, "annotate", "--update-lock", *where).code == 0
    said = run(capsys, "annotate", "--check", *where)
    assert said.code == 0
    stamps = re.findall(
        r"^  (\S+) \(es\): of which English\?: .* of: ([\w -]+)$", said.out, re.M
    )
    assert [name for name, _ in stamps] == ["close", "whole-step"]

    sidecar = book.root / "annotations" / "sample" / "linear.es.yaml"
    for name, stamp in stamps:
        text = sidecar.read_text()
        sidecar.write_text(text.replace(f"{name}: {{", f"{name}: {{of: {stamp}, "))
    assert "(es)" not in run(capsys, "annotate", "--check", *where).out
    shown = run(capsys, "annotate", "close", "--lang", "es", *where)
    assert shown.err == ""

    notes = book.root / "annotations" / "sample" / "linear.yaml"
    notes.write_text(notes.read_text().replace("picks it", "picks one"))
    said = run(capsys, "annotate", "--check", *where)
    assert said.code == 0
    assert "  close (es): decision has changed: was " in said.out
    assert "whole-step (es)" not in said.out
    plain = json.loads(run(capsys, "annotate", "--check", "--json", *where).out)
    [behind] = plain["upstreams"][0]["translations_to_check"]
    assert (behind["id"], behind["of"]) == ("close", stamps[0][1])
    assert behind["now"] in said.out
    shown = run(capsys, "annotate", "close", "--lang", "es", *where)
    assert "el inglés cambió después de este texto en es" in shown.err


def test_check_tells_of_concepts_whose_english_changed(tmp_path, capsys):
    sidecar = "all-reduce: {summary: Todos reciben la suma.}\n"
    book = make_book(tmp_path, more={"concepts.es.yaml": sidecar})
    where = ("--book", str(book.root))
    assert run(capsys, "annotate", "--update-lock", *where).code == 0
    said = run(capsys, "annotate", "--check", *where)
    assert said.code == 0
    [stamp] = re.findall(
        r"^  all-reduce \(es\): of which English\?: .* of: ([\w -]+)$", said.out, re.M
    )
    book.path("concepts.es.yaml").write_text(f"all-reduce: {{of: {stamp}, title: T}}")
    assert "concepts" not in run(capsys, "annotate", "--check", *where).out

    concepts = book.path("concepts.yaml")
    concepts.write_text(concepts.read_text().replace("gets the sum", "gets it"))
    said = run(capsys, "annotate", "--check", *where)
    assert said.code == 0
    assert (
        "concepts: 1 translation to check\n  all-reduce (es): summary has changed: was "
        in said.out
    )
    plain = json.loads(run(capsys, "annotate", "--check", "--json", *where).out)
    [behind] = plain["concepts"]["translations_to_check"]
    assert (behind["id"], behind["of"]) == ("all-reduce", stamp)


def test_check_tells_of_mirrors_whose_english_changed(tmp_path, capsys):
    book = with_minis(tmp_path)
    sidecar = book.path("mirrors/closing.es.yaml")
    written = (
        "closing:\n  title: El cierre\n  sections:\n    the sum:\n      title: S\n"
    )
    sidecar.write_text(written)
    where = ("--book", str(book.root))
    assert run(capsys, "annotate", "--update-lock", *where).code == 0
    said = run(capsys, "annotate", "--check", *where)
    assert said.code == 0
    stamps = re.findall(
        r"^  (.+) \(es\): of which English\?: .* of: ([\w -]+)$", said.out, re.M
    )
    assert [name for name, _ in stamps] == ["closing", "closing, the sum"]
    for key, (_, stamp) in zip(("  title: El", "      title: S"), stamps, strict=True):
        indent = key[: -len(key.lstrip())]
        written = written.replace(f"\n{key}", f"\n{indent}of: {stamp}\n{key}")
    sidecar.write_text(written)
    assert "mirrors:" not in run(capsys, "annotate", "--check", *where).out

    mirror = book.path("mirrors/closing.yaml")
    mirror.write_text(mirror.read_text().replace("idea: ", "idea: Indeed, "))
    said = run(capsys, "annotate", "--check", *where)
    assert (
        "mirrors: 1 translation to check\n  closing (es): idea has changed: was "
        in said.out
    )
    plain = json.loads(run(capsys, "annotate", "--check", "--json", *where).out)
    [behind] = plain["mirrors"]["translations_to_check"]
    assert (behind["id"], behind["of"]) == stamps[0]


def test_a_section_beside_a_note_is_told_in_spanish_or_marked(tmp_path, capsys):
    book = with_minis(tmp_path)
    shown = ("annotate", "close", "--lang", "es", "--book", str(book.root))
    spanish = "close: {title: El cierre}\n"
    book.path("sample/linear.es.yaml").write_text(spanish)
    assert "el mini (igual): [en] the sum" in run(capsys, *shown).out
    sidecar = "closing: {sections: {the sum: {title: la suma}}}\n"
    book.path("mirrors/closing.es.yaml").write_text(sidecar)
    assert "el mini (igual): la suma" in run(capsys, *shown).out


def test_mini_stands_beside_the_note_and_in_the_table(tmp_path, capsys):
    book = with_minis(tmp_path)
    done = run(capsys, "annotate", "close", "--book", str(book.root))
    assert "the mini (same): the sum" in done.out
    assert re.search(r"^2\s+return all_reduce\(y, group\)", done.out, re.MULTILINE)
    table = run(capsys, "annotate", "--book", str(book.root)).out
    assert re.search(r"^close\t.*\ttiny\tunlocked$", table, re.MULTILINE)


# --- held against the lock ---


def edit_lock(desk, change) -> None:
    data = json.loads(desk.lock().read_text())
    change(data["anchors"])
    desk.lock().write_text(json.dumps(data))


LOCK_EDITS = [
    pytest.param(
        lambda anchors: anchors["close"].update(span=[13, 17]),
        "close: its place has changed: was lib/linear.py:13-17, is lib/linear.py:14-17",
        id="other-lines",
    ),
    pytest.param(
        lambda anchors: anchors["close"].update(path="lib/other.py"),
        "close: its place has changed: was lib/other.py:14-17, is lib/linear.py:14-17",
        id="other-file",
    ),
    pytest.param(
        lambda anchors: anchors["close"]["fingerprint"].update(lines="0" * 8),
        "close: its code has changed: was ",
        id="other-code",
    ),
    pytest.param(
        lambda anchors: anchors["close"]["fingerprint"].update(after="0" * 16),
        "close: the code after it has changed: was ",
        id="other-neighbours",
    ),
    pytest.param(
        lambda anchors: anchors.pop("close"),
        "close: its place is new: lib/linear.py:14-17",
        id="missing",
    ),
    pytest.param(
        lambda anchors: anchors.update(gone=anchors["close"]),
        "gone: its place is gone: was lib/linear.py:14-17",
        id="left-over",
    ),
]


@pytest.mark.parametrize(("change", "message"), LOCK_EDITS)
def test_check_fails_on_any_difference_and_update_mends_it(change, message, locked):
    whole = locked.lock().read_bytes()
    assert locked.run("annotate", "--check").code == 0
    edit_lock(locked, change)
    done = locked.run("annotate", "--check")
    assert (done.code, done.out) == (1, "")
    said, then = done.err.splitlines()
    assert said.startswith(f"readerkit: sample.lock: {message}")
    assert then == (
        "book and locks differ in 1 place: look at each, then "
        f"readerkit annotate --update-lock --book {locked.book.root}"
    )
    assert locked.run("annotate", "--update-lock").code == 0
    assert locked.lock().read_bytes() == whole
    assert locked.run("annotate", "--check").code == 0


def test_check_counts_every_difference(desk):
    done = desk.run("annotate", "--check")
    assert done.code == 1
    assert "close: its place is new: " in done.err
    assert "whole-step: its place is new: " in done.err
    assert "differ in 2 places" in done.err


def test_check_names_what_nobody_reviewed(locked):
    assert locked.run("annotate", "--check").out.splitlines() == [
        "sample: 2 anchors, all as the lock says",
        "  not reviewed against this code yet: close, whole-step",
    ]


def test_update_lock_says_what_it_wrote_and_writes_nothing_twice(desk):
    first = desk.run("annotate", "--update-lock")
    assert first.out == f"wrote {desk.lock()}\nsample: 2 anchors locked\n"
    assert desk.run("annotate", "--update-lock").out == "sample: 2 anchors locked\n"


def test_lock_holds_no_upstream_text(locked):
    text = locked.lock().read_text()
    for line in SAMPLE.splitlines():
        words = line.strip()
        assert len(words) < 8 or words not in text


def test_moved_code_is_a_difference_of_lines_alone(locked):
    book = locked.book
    write_files(book.repository, {"lib/linear.py": "# new\n\n" + SAMPLE})
    repin(book)
    assert locked.run("fetch", "--update-lock").code == 0
    done = locked.run("annotate", "--check")
    assert done.err.splitlines()[0] == (
        "readerkit: sample.lock: close: its place has changed: "
        "was lib/linear.py:14-17, is lib/linear.py:16-19"
    )
    assert locked.run("annotate", "--update-lock").code == 0
    assert locked.run("annotate", "--check").code == 0


def repin(book) -> None:
    """Commit what the repository holds and pin the book to it, tag and all."""
    git(book.repository, "commit", "--all", "--quiet", "--message=next")
    git(book.repository, "tag", "--force", "--annotate", "--message=next", "v1")
    commit = git(book.repository, "rev-parse", "HEAD")
    path = book.path("upstreams.yaml")
    path.write_text(path.read_text().replace(book.commit, commit))


def test_check_holds_mirrors_against_the_minis(tmp_path, capsys):
    book = with_minis(tmp_path, symbol="clsoe")
    done = run(capsys, "annotate", "--check", "--book", str(book.root))
    assert done.code == 1
    assert re.search(
        r"annotations/mirrors/closing\.yaml:8:12: closing: mini_impls/tiny\.py: "
        r"no symbol 'clsoe'\n +did you mean close\?",
        done.err,
    )


# --- wrong names and wrong use ---


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ["samlpe"],
            "unknown upstream or note: got 'samlpe', expected one of sample, "
            "the ID of a note, a topic, a concept or a mini: did you mean sample?",
            id="misspelt-upstream",
        ),
        pytest.param(
            ["whole-stpe"],
            "unknown upstream or note: got 'whole-stpe', expected one of sample, "
            "the ID of a note, a topic, a concept or a mini: did you mean whole-step?",
            id="misspelt-note",
        ),
        pytest.param(
            ["zzz"],
            "unknown upstream or note: got 'zzz', expected one of sample, "
            "the ID of a note, a topic, a concept or a mini",
            id="nothing-like-it",
        ),
        pytest.param(
            ["other", "close"],
            "unknown upstream: got 'other', expected one of sample",
            id="note-of-unknown-upstream",
        ),
        pytest.param(
            ["sample", "clsoe"],
            "unknown note on sample: got 'clsoe', expected one of close, whole-step: "
            "did you mean close?",
            id="misspelt-note-of-upstream",
        ),
        pytest.param(
            ["sample", "zzz"],
            "unknown note on sample: got 'zzz', expected one of close, whole-step",
            id="no-such-note-of-upstream",
        ),
    ],
)
def test_a_wrong_name_is_one_line_with_the_right_ones(arguments, message, desk):
    done = desk.run("annotate", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"readerkit: {message}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--check", "--update-lock"], id="check-and-update"),
        pytest.param(["close", "--check"], id="check-of-one-note"),
        pytest.param(["sample", "close", "--update-lock"], id="update-of-one-note"),
        pytest.param(["--strict"], id="strict-without-check"),
        pytest.param(["--schema", "book"], id="unknown-schema"),
        pytest.param(["a", "b", "c"], id="too-many"),
    ],
)
def test_wrong_use_exits_with_2_and_does_nothing(arguments, desk):
    before = desk.lock().read_bytes()
    done = desk.run("annotate", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Usage: readerkit annotate")
    assert desk.lock().read_bytes() == before


def test_folder_upstream_has_no_lock_to_write(tmp_path, capsys):
    book = with_minis(tmp_path)
    done = run(capsys, "annotate", "minis", "--update-lock", "--book", str(book.root))
    assert done.code == 2
    assert done.err == "readerkit: minis is a folder of this book: it has no lock\n"


# --- anchors that name no place ---


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("../linear.py", "path '../linear.py' leaves its upstream"),
        ("lib/../../linear.py", "path 'lib/../../linear.py' leaves its upstream"),
        ("/etc/passwd", "path '/etc/passwd' is absolute"),
        ("C:/linear.py", "path 'C:/linear.py' is absolute"),
        ("lib/./linear.py", "path 'lib/./linear.py' is not in its shortest form"),
        ('"lib/\\eline.py"', "holds a control character"),
    ],
)
def test_a_path_out_of_the_upstream_is_refused_where_it_is_written(
    path, message, tmp_path, capsys
):
    book = make_book(tmp_path, annotations=a_note(f"{{file: {path}, symbol: step}}"))
    done = run(capsys, "annotate", "--book", str(book.root))
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("readerkit: annotations/sample/linear.yaml:2:7: anchor:")
    assert message in done.err


def test_a_link_in_the_upstream_is_not_followed(tmp_path, capsys):
    (tmp_path / "secret.py").write_text("def step():\n    password = 1\n")
    repository = tmp_path / "served" / "sample"
    (repository / "lib").mkdir(parents=True)
    (repository / "lib" / "link.py").symlink_to(tmp_path / "secret.py")
    book = make_book(tmp_path, annotations=a_note("{file: lib/link.py, symbol: step}"))
    done = run(capsys, "annotate", "--book", str(book.root))
    assert done.code == 1
    assert "includes no file 'lib/link.py'" in done.err
    # The pinned tree has the link itself, and still nothing reads through it.
    assert run(capsys, "fetch", "--update-lock", "--book", str(book.root)).code == 0
    assert "link.py" not in book.path("sample.lock").read_text()


def test_a_link_out_of_the_minis_is_refused(tmp_path, capsys):
    book = with_minis(tmp_path)
    (tmp_path / "secret.py").write_text("def close():\n    password = 1\n")
    (book.root / "mini_impls" / "link.py").symlink_to(tmp_path / "secret.py")
    done = run(capsys, "annotate", "minis", "--book", str(book.root))
    assert (done.code, done.out) == (1, "")
    assert "mini_impls/link.py of" in done.err


def test_an_anchor_with_two_meanings_lists_both(tmp_path, capsys):
    at = '{file: lib/linear.py, symbol: Linear.forward, code: "y = ..."}'
    book = make_book(tmp_path, annotations=a_note(at))
    done = run(capsys, "annotate", "--book", str(book.root))
    assert done.code == 1
    assert done.err.splitlines() == [
        "readerkit: annotations/sample/linear.yaml:1:3: deep: lib/linear.py: "
        "3 matches for 'y = ...' in Linear.forward, expected one",
        "    nth: 1 is line 13: y = x @ self.weight",
        "    nth: 2 is line 15: y = reduce_scatter(y, group=self.group)",
        "    nth: 3 is line 17: y = all_reduce(y, group=self.group)",
    ]


# --- YAML from anyone ---

LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [{','.join(f'*{a}' for _ in range(9))}]\n"
    for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = "a: &a {x: 1}\n" + "".join(
    f"{b}: &{b}\n  <<: [{','.join(f'*{a}' for _ in range(9))}]\n"
    for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(
            "[" + "*a , " * 5_000 + "]",
            r"yaml:1:2: an alias[\s\S]*\nand 4,900 more\n$",
            id="too-many-faults",
        ),
        pytest.param(LAUGHS, r"yaml:1:4: an anchor: got '&a'", id="alias-bomb"),
        pytest.param(MERGES, r"yaml:3:3: a merge key: got '<<'", id="merge-bomb"),
        pytest.param(
            "[" * 50_000, r"yaml:1:(33|1001): nested too deep", id="deep-flow"
        ),
        pytest.param("{a: " * 50_000, r"nested too deep", id="deep-flow-mappings"),
        pytest.param(
            "".join(" " * n + "-\n" for n in range(1_000)),
            r"yaml:\d+:\d+: nested too deep",
            id="deep-block",
        ),
        pytest.param("- " * 50_000, r"nested too deep", id="deep-compact"),
        pytest.param(
            "- !!python/object/apply:os.system [touch /tmp/owned]\n",
            r"yaml:1:3: a tag: got '.*python/object/apply:os\.system'",
            id="python-tag",
        ),
        pytest.param(
            ANNOTATIONS.replace("  kind: note", "  kind: note\n  kind: pitfall"),
            r"yaml:\d+:3: a duplicate key: got 'kind', first at line \d+",
            id="duplicate-key",
        ),
        pytest.param(b"- id: \xff\n", r"yaml:1:7: file is not UTF-8", id="not-utf8"),
        pytest.param("- [\n", r"yaml:2:1: not valid YAML", id="not-yaml"),
        pytest.param("x" * 1_100_000, r"yaml:1:1: file is too large", id="too-large"),
    ],
)
def test_hostile_yaml_is_one_message_with_its_place(data, message, tmp_path, capsys):
    book = make_book(tmp_path, more={"sample/bomb.yaml": data})
    done = run(capsys, "annotate", "--book", str(book.root))
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("readerkit: annotations/sample/bomb.yaml:")
    assert re.search(message, done.err)
    assert len(done.err) < 20_000
    assert "Traceback" not in done.err


def test_every_fault_of_every_file_comes_at_once(tmp_path, capsys):
    wrong = ANNOTATIONS.replace("kind: note", "kind: remark").replace("cost:", "costs:")
    book = make_book(
        tmp_path, annotations=wrong, more={"sample/more.yaml": "- {id: Bad Id}\n"}
    )
    done = run(capsys, "annotate", "--book", str(book.root))
    assert done.code == 1
    assert "'costs'" in done.err
    assert "'remark'" in done.err
    assert "annotations/sample/more.yaml:1:" in done.err


# --- source from anyone ---

# Over many lines: one line as long as these would be skipped for its length.
DEEP = [
    pytest.param(b"x = " + b"(\n" * 50_000 + b"1" + b")\n" * 50_000, id="brackets"),
    pytest.param(b"x = (" + b"not\n" * 50_000 + b"1)\n", id="operators"),
    pytest.param(b"x = (a" + b"\n.b" * 50_000 + b")\n", id="attributes"),
]


@pytest.mark.parametrize("code", DEEP)
def test_source_nested_50000_deep_is_read_like_any_other(code, tmp_path):
    book = make_book(
        tmp_path,
        files={"lib/deep.py": b"def step():\n    pass\n" + code},
        annotations=a_note("{file: lib/deep.py, symbol: step}")
        + a_note('{file: lib/deep.py, code: "y = ..."}', name="missing"),
    )
    done = run_process("annotate", "--book", str(book.root))
    assert done.code == 1
    assert "deep" in done.out and "missing" not in done.out
    assert done.err.startswith(
        "readerkit: annotations/sample/linear.yaml:7:3: missing: lib/deep.py: "
        "no match for 'y = ...'"
    )
    shown = run_process("annotate", "deep", "--book", str(book.root))
    assert (shown.code, shown.err) == (0, "")
    assert "lib/deep.py:1-2  step" in shown.out


def test_a_line_too_long_to_read_is_cut_when_it_is_shown(tmp_path):
    line = b'x = "' + b"a" * 90_000 + b'"\n'
    book = make_book(
        tmp_path,
        files={"lib/big.py": line},
        annotations=a_note('{file: lib/big.py, code: "x = ..."}', name="big"),
    )
    done = run_process("annotate", "big", "--book", str(book.root))
    assert (done.code, done.err) == (0, "")
    assert "88,006 more characters" in " ".join(done.out.split())
    assert len(done.out) < 10_000


@pytest.mark.parametrize(
    ("size", "reason"),
    [
        (
            5_000_000,
            "got 5,000,007 bytes, expected at most 2,000,000 for a source file",
        ),
        (1_000_000, "got a line of 1,000,006 bytes, expected at most 200,000"),
    ],
    ids=["five-megabytes", "one-megabyte"],
)
def test_a_file_of_one_huge_line_is_skipped_and_said(size, reason, tmp_path):
    book = make_book(
        tmp_path,
        files={"lib/big.py": b"x = '" + b"1," * (size // 2) + b"'\n"},
        annotations=ANNOTATIONS + a_note("{file: lib/big.py, symbol: f}", name="big"),
    )
    done = run_process("annotate", "--book", str(book.root))
    assert done.code == 1
    # Notes on other files are shown.
    assert done.out.count("lib/linear.py:") == 2 and "lib/big.py" not in done.out
    line = ANNOTATIONS.count("\n") + 1
    assert done.err == (
        f"readerkit: annotations/sample/linear.yaml:{line}:3: big: lib/big.py: "
        f"skipped: {reason}\n"
    )
    shown = run_process("annotate", "close", "--book", str(book.root))
    assert shown.code == 0


# What a terminal would obey or hide: an escape that clears the screen, its 8-bit
# form, a line that reads backwards, letters nobody sees, a bell.
HOSTILE = "\x1b[2J\x9b2J\u202egnihton\u2066\u200b\ufeff\u00ad\u2028\x07"
SHOWN = (
    "<U+001B>[2J<U+009B>2J<U+202E>gnihton<U+2066><U+200B><U+FEFF><U+00AD>"
    "<U+2028><U+0007>"
)
HARMLESS = re.compile(
    r"[^\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e]*"
)
HOSTILE_YAML = '"A title \\e[2J\\x9b2J\\u202E\\u200B\\uFEFF\\a"'


def test_hostile_text_is_spelt_out_wherever_it_is_shown(tmp_path, capsys):
    source = f"def step():\n    # {HOSTILE}\n    return '{HOSTILE}'\n"
    book = make_book(
        tmp_path,
        files={"lib/hostile.py": source},
        annotations=a_note(
            "{file: lib/hostile.py, symbol: step}",
            name="hostile",
            title=HOSTILE_YAML,
            text=HOSTILE_YAML,
        ),
    )
    at = ("--book", str(book.root))
    for arguments in (["annotate"], ["annotate", "hostile"]):
        done = run(capsys, *arguments, *at)
        assert done.code == 0
        assert HARMLESS.fullmatch(done.out)
        assert (
            "A title <U+001B>[2J<U+009B>2J<U+202E><U+200B><U+FEFF><U+0007>" in done.out
        )
    assert "".join(part.strip() for part in done.out.splitlines()).count(SHOWN) == 2
    plain = run(capsys, "annotate", "hostile", "--json", *at).out
    assert plain.isascii()
    assert "\u202e" in json.loads(plain)["title"]


def test_hostile_text_in_an_error_is_spelt_out(tmp_path, capsys):
    source = f"def step():\n    the_value = '{HOSTILE}'\n"
    book = make_book(
        tmp_path,
        files={"lib/hostile.py": source},
        annotations=a_note('{file: lib/hostile.py, code: "the_valu = ..."}'),
    )
    done = run(capsys, "annotate", "--book", str(book.root))
    assert done.code == 1
    assert HARMLESS.fullmatch(done.err)
    assert "the_value = '<U+001B>[2J<U+009B>2J" in done.err


# --- terminals, pipes and locales ---


def test_narrow_terminal_gets_a_note_on_several_lines(locked):
    at = ("--book", str(locked.book.root))
    lines = ANSI.sub("", run_on_terminal(20, "annotate", "sample", *at)).split("\n")
    assert lines[:10] == [
        "lib/linear.py",
        "? close",
        "    citation  14-17",
        "    Linear.forward",
        "    The closing",
        "    collective",
        "? whole-step",
        "    note      21-24",
        "    step",
        "    One step",
    ]


def test_wide_terminal_gets_a_note_on_one_line(locked):
    at = ("--book", str(locked.book.root))
    shown = run_on_terminal(120, "annotate", "sample", *at)
    assert "\x1b[36mcitation" in shown
    lines = ANSI.sub("", shown).split("\n")
    assert lines[1] == "lib/linear.py"
    words = "? close citation Linear.forward 14-17 The closing collective -"
    assert " ".join(lines[2].split()) == words
    assert max(map(len, lines[:4])) <= 120


@pytest.mark.parametrize("columns", [24, 80, 200])
def test_no_line_of_a_note_is_wider_than_the_terminal(columns, locked):
    at = ("--book", str(locked.book.root))
    shown = ANSI.sub("", run_on_terminal(columns, "annotate", "close", *at))
    page, _, _ = shown.partition("link")
    assert max(map(len, page.split("\n"))) <= columns
    assert "".join(shown.split()).count("y=reduce_scatter(y,group=self.group)") == 1


def test_pipe_gets_one_plain_line_for_each_note(locked):
    done = run_process("annotate", "--book", str(locked.book.root))
    assert "\x1b" not in done.out
    assert [line.count("\t") for line in done.out.splitlines()] == [6, 6, 0, 0]
    assert not re.search(r"[ \t]$", done.out, re.MULTILINE)


def test_pipe_gets_every_line_of_code_whole_and_no_trailing_blanks(locked):
    long = "all_reduce(y, group=self.group)"
    assert f"                y = {long}"[4:] in SAMPLE
    environment = {"COLUMNS": "24"}
    at = ("--book", str(locked.book.root))
    done = run_process("annotate", "close", *at, environment=environment)
    assert f"17              y = {long}\n" in done.out
    assert not re.search(r"[ \t]$", done.out, re.MULTILINE)


def shell(command: str, environment=None):
    """Run a pipeline in which ``readerkit`` is this one; it fails where a part does."""
    words = shlex.join([sys.executable, "-m", "readerkit"])
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command.replace('readerkit', words, 1)}"],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


# More than a pipe holds, so that its reader is gone before all is written.
MANY = "".join(
    a_note("{file: lib/linear.py, symbol: step}", f"many-{number}", title="T" * 80)
    for number in range(500)
)
LONG = a_note("{file: lib/linear.py, symbol: step}", "long", text="Words. " * 15_000)


@pytest.mark.parametrize(
    ("what", "reader"),
    [("--json", "head -1"), ("", "head -1"), ("", "true"), ("long", "head -1")],
    ids=["json", "table", "table-unread", "note"],
)
def test_closed_pipe_ends_quietly(what, reader, tmp_path, capsys):
    book = make_book(tmp_path, annotations=MANY + LONG)
    at = f"--book {shlex.quote(str(book.root))}"
    run(capsys, "fetch", "--book", str(book.root))
    done = shell(f"readerkit annotate {what} {at} | {reader}")
    assert done.stderr.strip() == ""
    assert done.returncode == 0


@pytest.mark.parametrize("what", ["--json", "", "close"], ids=["json", "table", "note"])
def test_output_that_is_full_is_one_message(what, locked):
    at = f"--book {shlex.quote(str(locked.book.root))}"
    done = shell(f"readerkit annotate {what} {at} >/dev/full")
    assert done.returncode == 1
    assert (
        done.stderr == "readerkit: cannot write the output: No space left on device\n"
    )


@pytest.mark.parametrize("what", ["", "close"], ids=["table", "note"])
def test_output_that_is_closed_is_no_bug(what, locked):
    at = f"--book {shlex.quote(str(locked.book.root))}"
    done = shell(f"readerkit annotate {what} {at} >&-")
    assert (done.returncode, done.stderr) == (0, "")


def test_ascii_locale_shows_what_it_can(tmp_path, capsys):
    title = "Größe: 2 · 3 ☃"
    book = make_book(
        tmp_path / "bücher",
        files={"lib/linear.py": SAMPLE.replace("multiply", "multiplié")},
        annotations=ANNOTATIONS.replace("One step", f'"{title}"'),
    )
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    at = ("--book", str(book.root))
    table = run_process("annotate", *at, environment=ascii_only)
    assert (table.code, table.err) == (0, "")
    shown = run_process("annotate", "whole-step", *at, environment=ascii_only)
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.isascii()
    assert "Grosse: 2 * 3 ?" in shown.out
    assert "-" * 100 in shown.out
    assert "rights  (c) Nobody" in shown.out
    plain = run_process("annotate", "whole-step", "--json", *at, environment=ascii_only)
    assert json.loads(plain.out)["title"] == title
    failed = run_process("annotate", "nöte", *at, environment=ascii_only)
    assert failed.code == 2
    assert failed.err.startswith("readerkit: unknown upstream or note: got 'n")
    assert len(failed.err.splitlines()) == 1
