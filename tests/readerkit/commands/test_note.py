import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.helpers import (
    ANNOTATIONS,
    WAIT_S,
    git,
    make_book,
    run,
    run_process,
    write_files,
)
from tests.readerkit.commands.disk import run_on_full_disk

pytestmark = pytest.mark.sampled

# An editor is a small script; these are what it does to the text.
NAMED = """s.replace("key: , section: ", 'key: paper, section: "3"')\
.replace("concepts: []", "concepts: [all-reduce]")"""
FILL = (
    f'{NAMED}.replace("title:", "title: Mine").replace(">-\\n    ", ">-\\n    Words.")'
)
UNFILLED = 's.replace("title:", "title: Mine")'
BROKEN = 's.replace("title:", "title: [")'


@pytest.fixture
def editor(tmp_path, monkeypatch):
    """Set the editor to a script that replaces the text by an expression over it."""
    script = tmp_path / "editor"

    def use(change: str, end: str = "") -> None:
        script.write_text(
            f"#!{sys.executable}\nimport sys, pathlib\n"
            "file = pathlib.Path(sys.argv[1])\ns = file.read_text('utf-8')\n"
            f"pathlib.Path({str(tmp_path / 'offered')!r}).write_text(s, 'utf-8')\n"
            f"file.write_text({change}, 'utf-8')\n{end}\n"
        )
        script.chmod(0o755)
        monkeypatch.setenv("EDITOR", str(script))
        monkeypatch.delenv("VISUAL", raising=False)

    return use


@pytest.fixture
def drafts(tmp_path):
    """What is left for the reader to mend."""
    kept = tmp_path / "data" / "drafts"
    return lambda: [path for path in kept.rglob("*") if path.is_file()]


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# --- what it proposes ---


def test_id_that_is_proposed_is_free_in_every_book(desk, tmp_path):
    overlay = tmp_path / "data" / "book" / "annotations"
    other = ANNOTATIONS.replace("id: close", "id: my-note")
    files = {"other/mine.yaml": other, "sample/faulty.yaml": "- id: my-note-2\n"}
    write_files(overlay, files)
    ids = {
        into: re.findall(
            r"id: (\S+)",
            desk.run("note", "linear.py:14", "--print", "--into", into).out,
        )
        for into in ("mine", "book")
    }
    assert ids == {"mine": ["my-note-3"], "book": ["new-note"]}


def test_topic_is_checked_where_the_entry_is_only_printed(desk):
    done = desk.run("note", "linear.py:14", "--print", "--topic", "../x")
    assert (done.code, done.out) == (2, "")
    assert "--topic: got '../x', expected a name such as my-notes" in done.err


@pytest.mark.parametrize(
    ("lines", "at"),
    [
        ("21-24", {"symbol": "step"}),
        ("6-18", {"symbol": "Linear"}),
        ("11-18", {"symbol": "Linear.forward"}),
        ("20-24", {"symbol": "step"}),
        (
            "14-17",
            {"symbol": "Linear.forward", "code": "if self.sequence_parallel: ..."},
        ),
        ("14", {"symbol": "Linear.forward", "code": "if self.sequence_parallel:"}),
        ("15", {"symbol": "Linear.forward", "code": "reduce_scatter(...)"}),
        ("12-13", {"symbol": "Linear.forward", "code": "y = x @ self.weight"}),
    ],
)
def test_proposal_is_the_narrowest_anchor_of_these_lines(lines, at, desk):
    done = desk.run("note", f"lib/linear.py:{lines}", "--print")
    assert (done.code, done.err) == (0, "")
    [entry] = yaml.safe_load(done.out)
    assert entry["at"] == {"file": "lib/linear.py", **at}


@pytest.mark.parametrize("lines", ["6-18", "13", "14-17", "15", "22-23", "23-24"])
def test_proposal_resolves_to_the_lines_it_was_asked_for(lines, desk, editor):
    editor(FILL)
    assert desk.run("note", f"linear.py:{lines}", "--id", "new").code == 0
    note = json.loads(desk.run("annotate", "new", "--json").out)
    first, _, last = lines.partition("-")
    assert (note["first"], note["last"]) == (int(first), int(last or first))


def test_entry_is_filled_in_but_for_the_texts(desk, editor, tmp_path):
    editor("s")
    desk.run("note", "lib/linear.py:14-17", "--id", "mine")
    offered = (tmp_path / "offered").read_text()
    assert "#     14         if self.sequence_parallel:\n" in offered
    assert f"{desk.book.root / 'annotations'}" in offered
    [entry] = yaml.safe_load(offered)
    assert entry == {
        "id": "mine",
        "at": {
            "file": "lib/linear.py",
            "symbol": "Linear.forward",
            "code": "if self.sequence_parallel: ...",
        },
        "kind": "citation",
        "title": None,
        "decision": "",
        "alternative": "",
        "why": "",
        "cost": "",
        "references": [{"key": None, "section": None}],
        "concepts": [],
    }


@pytest.mark.parametrize("kind", ["note", "pitfall"])
def test_entry_has_the_texts_of_its_kind(kind, desk):
    [entry] = yaml.safe_load(
        desk.run("note", "linear.py:13", "--kind", kind, "--print").out
    )
    assert entry["kind"] == kind
    assert set(entry) == {"id", "at", "kind", "title", "text", "concepts"}


@pytest.mark.further
def test_print_writes_nothing(desk, tmp_path):
    desk.run("fetch")
    before = tree(desk.book.root)
    assert desk.run("note", "linear.py:13", "--print").code == 0
    assert tree(desk.book.root) == before
    assert not (tmp_path / "data").exists()


def test_code_with_quotes_controls_and_emoji_survives_yaml(tmp_path, capsys, editor):
    source = (
        "def f(x):\n    x.send('it\\'s', \"a: \\\\#b\", '\U0001f600\x1b\x85', null)\n"
    )
    book = make_book(tmp_path, files={"lib/odd.py": source})
    editor(FILL)
    at = ("--book", str(book.root))
    done = run(capsys, "note", "odd.py:2", "--id", "odd", *at)
    assert done.code == 0
    note = json.loads(run(capsys, "annotate", "odd", "--json", *at).out)
    assert (note["first"], note["last"]) == (2, 2)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(
            "x = (" + "(\n" * 50_000 + "1" + ")\n" * 50_000 + ")", id="brackets"
        ),
        pytest.param("x = (a" + "\n.b" * 50_000 + ")", id="attributes"),
        pytest.param("x = (" + "not\n" * 50_000 + "1)", id="operators"),
    ],
)
def test_proposal_in_code_nested_50000_deep_ends(code, tmp_path):
    book = make_book(tmp_path, files={"lib/deep.py": f"{code}\ny = 1\n"})
    lines = code.count("\n") + 1
    for place in (f"1-{lines}", "300", f"{lines + 1}"):
        done = run_process(
            "note",
            f"deep.py:{place}",
            "--print",
            "--book",
            str(book.root),
        )
        assert done.code == (2 if place == "300" else 0)
        assert "Traceback" not in done.err


# --- a note that is taken ---


def test_note_goes_into_the_book_locked_reviewed_and_shown(locked, editor, drafts):
    editor(FILL)
    before = json.loads(locked.lock().read_text())["anchors"]
    done = locked.run("note", "lib/linear.py:14-17", "--topic", "closing")
    path = locked.book.path("sample/closing.yaml")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"wrote {path}\ncitation  Mine  new-note\n")
    assert "the note was reviewed against exactly these lines" in done.out
    anchors = json.loads(locked.lock().read_text())["anchors"]
    new = anchors.pop("new-note")
    assert new["span"] == [14, 17]
    assert new["reviewed"] == new["fingerprint"]["code"]
    assert anchors == before
    assert locked.run("annotate", "--check").code == 0
    assert "new-note" in locked.run("annotate").out
    assert drafts() == []


def test_second_note_is_added_below_the_first(locked, editor):
    editor(FILL)
    locked.run("note", "linear.py:14-17")
    first = locked.book.path("sample/my-notes.yaml").read_text()
    assert locked.run("note", "linear.py:23", "--kind", "note").code == 0
    both = locked.book.path("sample/my-notes.yaml").read_text()
    assert both.startswith(first)
    assert [entry["id"] for entry in yaml.safe_load(both)] == ["new-note", "new-note-2"]


def test_note_into_the_overlay_leaves_the_book_alone(locked, editor, tmp_path):
    editor(FILL)
    before = tree(locked.book.root)
    assert locked.run("note", "linear.py:14-17", "--into", "mine").code == 0
    assert tree(locked.book.root) == before
    overlay = tmp_path / "data" / "book" / "annotations"
    assert (overlay / "sample" / "my-notes.yaml").is_file()
    assert list(json.loads((overlay / "sample.lock").read_text())["anchors"]) == [
        "my-note"
    ]
    listed = json.loads(locked.run("annotate", "--json").out)
    states = {note["id"]: note["state"] for note in listed}
    assert states["my-note"] == "reviewed"
    assert states["close"] == "unreviewed"
    assert locked.run("annotate", "--check").code == 0
    assert locked.run("annotate", "--update-lock").out == "sample: 3 anchors locked\n"
    assert tree(locked.book.root) == before


# --- a note that is not ---


@pytest.mark.parametrize(
    ("change", "end", "problem"),
    [
        pytest.param("s", "", "the entry was closed unchanged", id="unchanged"),
        pytest.param("s + '\\n\\n'", "", "closed unchanged", id="blank-lines-added"),
        pytest.param("''", "", "there is no entry left", id="emptied"),
        pytest.param("s", "file.unlink()", "the entry was removed", id="removed"),
        pytest.param(
            "s", "sys.exit(1)", "editor: Editing failed; set EDITOR", id="quit"
        ),
    ],
)
def test_nothing_typed_leaves_nothing(change, end, problem, desk, editor, drafts):
    editor(change, end)
    before = tree(desk.book.root)
    done = desk.run("note", "linear.py:14-17")
    assert (done.code, done.out) == (1, "")
    assert problem in done.err
    assert done.err.splitlines()[-1] == "nothing was written"
    assert tree(desk.book.root) == before
    assert drafts() == []


@pytest.mark.parametrize(
    ("change", "end", "line", "problem"),
    [
        pytest.param(
            BROKEN, "", "title: [", "not valid YAML: got", id="yaml-that-does-not-parse"
        ),
        pytest.param(
            UNFILLED, "", "decision: >-", "wrong value for 'decision'", id="unfilled"
        ),
        pytest.param(
            f"{FILL}.replace('cost:', 'costs:')",
            "",
            "costs: >-",
            "unknown key: got 'costs'",
            id="unknown-key",
        ),
        pytest.param(
            f"{FILL}.replace('all-reduce', 'all-redcue')",
            "",
            "concepts: [all-redcue]",
            "unknown concept: got 'all-redcue' (did you mean 'all-reduce'?)",
            id="unknown-concept",
        ),
        pytest.param(
            f"{FILL}.replace('new-note', 'close')",
            "",
            "- id: close",
            "a duplicate id: got 'close'",
            id="duplicate-id",
        ),
        pytest.param(
            f"{FILL}.replace('sequence_parallel: ...', 'nothing: ...')",
            "",
            "- id: new-note",
            "no match for 'if self.nothing: ...'",
            id="anchor-that-names-no-place",
        ),
        pytest.param(
            f"{FILL}.replace('lib/linear.py\\n', '../linear.py\\n')",
            "",
            "file: ../linear.py",
            "path '../linear.py' leaves its upstream",
            id="anchor-out-of-the-upstream",
        ),
    ],
)
@pytest.mark.parametrize("after", [False, True], ids=["first", "second"])
def test_text_that_cannot_be_taken_is_kept_and_its_place_said(
    change, end, line, problem, after, desk, editor, drafts
):
    if after:
        editor(FILL)
        desk.run("note", "linear.py:23", "--id", "earlier", "--kind", "note")
    editor(change, end)
    before = tree(desk.book.root)
    done = desk.run("note", "linear.py:14-17")
    assert (done.code, done.out) == (1, "")
    [kept] = drafts()
    assert "Traceback" not in done.err
    assert done.err.splitlines()[-2:] == [
        "nothing was written; to go on with your text:",
        f"    readerkit note linear.py:14-17 --from {kept} --book {desk.book.root}",
    ]
    places = re.findall(rf"{kept}:(\d+):\d+: ", done.err)
    assert problem in done.err
    # The parser notices an open bracket one line late.
    late = "not valid YAML" in problem
    lines = kept.read_text().splitlines()
    assert line in [lines[int(place) - 1 - late].strip() for place in places]
    assert tree(desk.book.root) == before


@pytest.mark.parametrize("kind", ["citation", "note", "pitfall"])
def test_form_names_no_source_and_no_concept_of_somebody_else(kind, desk, editor):
    editor('s.replace("title:", "title: Mine").replace(">-\\n    ", ">-\\n    Words.")')
    before = tree(desk.book.root)
    done = desk.run("note", "linear.py:14-17", "--kind", kind)
    assert (done.code, done.out) == (1, "")
    assert "wrong value for 'concepts': got [], expected at least 1 entry" in done.err
    if kind == "citation":
        assert "wrong type for 'key': got None, expected string" in done.err
    assert tree(desk.book.root) == before


def test_form_tells_what_other_notes_on_the_file_rest_on(desk, editor, tmp_path):
    editor("s")
    desk.run("note", "linear.py:14-17")
    head, _, entry = (tmp_path / "offered").read_text().partition("\n- id")
    assert "# Other notes on this file cite: paper 3\n" in head
    assert "# Other notes on this file name: all-reduce, collectives\n" in head
    assert "paper" not in entry and "all-reduce" not in entry


def test_every_fault_of_an_entry_is_told_in_one_round(desk, editor):
    editor(
        f"{FILL}.replace('cost: >-', 'costs: >-').replace('title: Mine', 'title: 7')"
        ".replace('[all-reduce]', '[all-redcue]').replace('\"3\"', '\"8\"')"
        ".replace('self.sequence_parallel: ...', 'self.nothing: ...')"
    )
    done = desk.run("note", "linear.py:14-17")
    assert done.code == 1
    for fault in (
        "missing key 'cost'",
        "unknown key: got 'costs'",
        "wrong type for 'title': got 7, expected string",
        "unknown concept: got 'all-redcue'",
        "unknown section: got '8' of paper",
        "no match for 'if self.nothing: ...'",
    ):
        assert fault in done.err


def test_names_are_checked_where_the_anchor_is_none(desk, editor):
    editor(f"{FILL}.replace('[all-reduce]', '[all-redcue]').replace('code:', 'cod:')")
    done = desk.run("note", "linear.py:14-17")
    assert "unknown key: got 'cod'" in done.err
    assert "unknown concept: got 'all-redcue'" in done.err


# --- a draft that is taken up again ---


def taken_up_again(err: str) -> list[str]:
    """Return the words of the command that a refusal ends with."""
    name, *words = shlex.split(err.splitlines()[-1])
    assert name == "readerkit"
    return words


def test_draft_is_taken_back_by_the_command_that_is_printed(
    desk, editor, drafts, capsys
):
    editor(f"{FILL}.replace('[all-reduce]', '[all-redcue]')")
    refused = desk.run("note", "linear.py:14-17", "--topic", "closing")
    again = taken_up_again(refused.err)
    still = run(capsys, *again)
    assert (still.code, still.out) == (1, "")
    assert taken_up_again(still.err) == again
    [kept] = drafts()
    kept.write_text(kept.read_text().replace("all-redcue", "all-reduce"))
    editor("nothing opens it")
    done = run(capsys, *again)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"wrote {desk.book.path('sample/closing.yaml')}\n")
    assert drafts() == []
    assert not list(kept.parents[1].iterdir())


def test_file_that_the_reader_brings_is_taken_and_stays(desk, tmp_path):
    mine = tmp_path / "words" / "mine.yaml"
    write_files(mine.parent, {"mine.yaml": ANNOTATIONS.replace("id: ", "id: my-")})
    done = desk.run("note", "linear.py:14-17", "--from", str(mine))
    assert (done.code, done.err) == (0, "")
    assert mine.is_file()
    listed = json.loads(desk.run("annotate", "--json").out)
    assert {"my-close", "my-whole-step"} < {note["id"] for note in listed}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--id", "x"], "--from takes the entry as it stands: leave --id"),
        (["--kind", "note"], "leave --id, --kind and --print out"),
        (["--print"], "leave --id, --kind and --print out"),
    ],
)
def test_what_the_form_would_hold_does_not_go_with_a_file(
    more, message, desk, tmp_path
):
    write_files(tmp_path, {"mine.yaml": ANNOTATIONS})
    given = ("--from", str(tmp_path / "mine.yaml"))
    done = desk.run("note", "linear.py:14", *given, *more)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_file_that_is_not_there_is_wrong_use(desk):
    done = desk.run("note", "linear.py:14", "--from", "/nowhere/x.yaml")
    assert done.code == 2
    assert "'/nowhere/x.yaml' does not exist" in done.err


def test_folder_that_keeps_drafts_must_be_writable(desk, editor, tmp_path):
    editor(FILL)
    write_files(tmp_path / "data", {"drafts": "a file"})
    done = desk.run("note", "linear.py:14-17")
    assert (done.code, done.out) == (1, "")
    assert f"cannot write {tmp_path}/data/drafts" in done.err
    assert "set READERKIT_DATA" in done.err
    assert not (tmp_path / "offered").exists()


def test_text_that_is_not_utf8_is_kept(desk, editor, drafts):
    editor("s", "file.write_bytes(b'- id: caf\\xe9\\n')")
    done = desk.run("note", "linear.py:14-17")
    assert done.code == 1
    [kept] = drafts()
    assert f"{kept}: not UTF-8 text" in done.err
    assert kept.read_bytes() == b"- id: caf\xe9\n"


def test_failing_editor_keeps_what_was_typed(desk, editor, drafts):
    editor("s + 'typed'", "sys.exit(1)")
    done = desk.run("note", "linear.py:14-17")
    assert done.code == 1
    [kept] = drafts()
    assert kept.read_text().endswith("typed")
    assert str(kept) in done.err


def test_missing_editor_says_how_to_go_on(desk, editor, monkeypatch, drafts):
    editor("s")
    monkeypatch.setenv("EDITOR", "/nowhere/editor")
    done = desk.run("note", "linear.py:14-17")
    assert (done.code, done.out) == (1, "")
    assert "/nowhere/editor: Editing failed" in done.err
    assert "set EDITOR to an editor that runs, or use --print" in done.err
    assert drafts() == []


def test_interrupt_while_the_editor_is_open_writes_nothing(desk, editor, tmp_path):
    opened = tmp_path / "opened"
    os.mkfifo(opened)
    editor(FILL, f"open({str(opened)!r}, 'w').close(); sys.stdin.read()")
    before = tree(desk.book.root)
    with subprocess.Popen(
        [sys.executable, "-m", "readerkit", "note", "linear.py:14-17"],
        env={**os.environ, "READERKIT_BOOK": str(desk.book.root)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        opened.read_text()  # until the editor runs
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 130
    assert out == ""
    assert "nothing was written; to go on with your text:" in err
    assert err.splitlines()[-1] == "readerkit: interrupted"
    assert tree(desk.book.root) == before


def test_full_disk_keeps_the_old_file_and_the_text(desk, editor, drafts):
    desk.run("fetch")
    book = desk.book
    topic = book.path("sample/my-notes.yaml")
    topic.write_text(ANNOTATIONS.replace("id: ", "id: old-") + "#" * 58_000 + "\n")
    old = git(book.root, "hash-object", "--no-filters", str(topic))
    files = book.root.parent / "files"
    topic.parent.rename(files)
    editor(f"{FILL}.replace('Words', 'Words ' * 2_000)")
    done, left = run_on_full_disk(
        topic.parent, "note", "linear.py:23", "--book", str(book.root), files=files
    )
    assert done.code == 1
    assert f"cannot write {topic}: " in done.err
    assert left[str(topic)] == old
    assert not any(".aside-" in path for path in left)
    [kept] = drafts()
    assert f"--from {kept}" in done.err


def test_no_draft_begins_where_no_byte_can_be_written(locked, tmp_path, monkeypatch):
    monkeypatch.setenv("READERKIT_DATA", str(tmp_path / "small"))
    monkeypatch.setenv("EDITOR", "false")
    note = ("note", "linear.py:23", "--book", str(locked.book.root))
    limited = ("sh", "-c", 'ulimit -f 0 && exec "$@"', "")
    done = subprocess.run(
        [*limited, sys.executable, "-m", "readerkit", *note],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert re.match("readerkit: cannot write .*note.yaml: File too large", done.stderr)
    assert not list(tmp_path.glob("small/**/note-*")), "a folder was left"


# --- places that hold no note ---


@pytest.mark.parametrize(
    ("place", "message"),
    [
        pytest.param("linear.py:99", "lines within 1 to 24", id="behind-the-end"),
        pytest.param("linear.py:0", "lines within 1 to 24", id="before-the-start"),
        pytest.param("linear.py:9-3", "the first line before the last", id="backwards"),
        pytest.param("linear.py:20-25", "lines within 1 to 24", id="over-the-end"),
        pytest.param("linear.py:12", "holds no code: an anchor names", id="comment"),
        pytest.param("linear.py:19-20", "holds no code: an anchor names", id="blank"),
        pytest.param(
            "other.py:1",
            "includes a file 'other.py'",
            id="file",
        ),
        pytest.param(
            "ear.py:1",
            "includes a file 'ear.py'",
            id="half-name",
        ),
        pytest.param(
            "../linear.py:1", "no upstream of this book includes", id="parent"
        ),
        pytest.param(
            "/etc/passwd:1", "no upstream of this book includes", id="absolute"
        ),
    ],
)
def test_a_place_without_code_is_one_message(place, message, desk):
    done = desk.run("note", place, "--print")
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert len(done.err.splitlines()) == 1


def test_lines_that_cut_a_statement_name_the_ones_that_would_do(tmp_path, capsys):
    source = "def f(x):\n    y = call(\n        x,\n        2,\n    )\n    return y\n"
    book = make_book(tmp_path, files={"lib/cut.py": source})
    done = run(capsys, "note", "cut.py:2-3", "--print", "--book", str(book.root))
    assert done.code == 2
    assert "lib/cut.py:2-3 cuts through a statement" in done.err
    assert "try lib/cut.py:2-5" in done.err


def test_a_name_of_several_files_lists_them_all(tmp_path, capsys):
    book = make_book(tmp_path, files={"lib/other/linear.py": "x = 1\n"})
    at = ("--book", str(book.root))
    done = run(capsys, "note", "linear.py:1", "--print", *at)
    assert done.code == 2
    assert done.err.splitlines() == [
        "readerkit: 'linear.py' fits 2 files, expected one:",
        "    lib/linear.py (sample)",
        "    lib/other/linear.py (sample)",
    ]
    # A whole path is never ambiguous, and more of a path may be enough.
    assert run(capsys, "note", "lib/linear.py:13", "--print", *at).code == 0
    assert run(capsys, "note", "other/linear.py:1", "--print", *at).code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        pytest.param(
            ["linear.py"], 2, "got 'linear.py', expected path:12", id="no-line"
        ),
        pytest.param(["linear.py:x"], 2, "expected path:12 or path:12-20", id="word"),
        pytest.param(
            ["linear.py:13-99999999"], 2, "expected lines within 1 to 24", id="far"
        ),
        pytest.param([], 2, "Missing argument 'FILE:LINES'", id="nothing"),
        pytest.param(
            ["linear.py:13", "--id", "Bad Id"], 2, "--id: got 'Bad Id'", id="bad-id"
        ),
        pytest.param(
            ["linear.py:13", "--id", "close"],
            2,
            "the id 'close' is taken (annotations/sample/linear.yaml:1)",
            id="taken-id",
        ),
        pytest.param(
            ["linear.py:13", "--topic", "../../x"],
            2,
            "--topic: got '../../x'",
            id="topic",
        ),
        pytest.param(["linear.py:13", "--kind", "remark"], 2, "'--kind'", id="kind"),
        pytest.param(["linear.py:13", "--into", "theirs"], 2, "'--into'", id="into"),
    ],
)
def test_wrong_use_is_said_before_the_editor_opens(
    arguments, code, message, desk, editor, tmp_path
):
    editor("s")
    done = desk.run("note", *arguments)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert not (tmp_path / "offered").exists()


def test_ascii_locale_keeps_what_is_typed(tmp_path, editor, capsys):
    book = make_book(tmp_path / "bücher")
    run(capsys, "fetch", "--book", str(book.root))
    editor(f"{FILL}.replace('Mine', 'Größe')")
    done = run_process(
        "note",
        "linear.py:13",
        environment={
            "READERKIT_BOOK": str(book.root),
            "LC_ALL": "C",
            "PYTHONCOERCECLOCALE": "0",
            "PYTHONUTF8": "0",
        },
    )
    assert (done.code, done.err) == (0, "")
    assert "title: Größe" in book.path("sample/my-notes.yaml").read_text("utf-8")


def test_a_book_that_is_broken_is_said_before_the_editor_opens(desk, editor, tmp_path):
    editor(FILL)
    write_files(desk.book.root, {"annotations/sample/broken.yaml": "- ["})
    done = desk.run("note", "linear.py:13")
    assert done.code == 1
    assert "annotations/sample/broken.yaml:2:1: not valid YAML" in done.err
    assert not (tmp_path / "offered").exists()
