import json
import os
import pwd
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from readerkit.app.folders import cache_folder, data_folder
from readerkit.app.library import open_library
from readerkit.content.parse_book import read_strictly
from readerkit.errors import ContentError, ReaderkitError
from readerkit.upstreams import Lock
from tests.helpers import ANNOTATIONS, make_book, run, run_process, write_files

pytestmark = pytest.mark.sampled

OWN = ANNOTATIONS.replace("id: close", "id: own-close").replace(
    "id: whole-step", "id: own-step"
)
FOLDERS = [
    pytest.param(cache_folder, "READERKIT_CACHE", ".cache", id="cache"),
    pytest.param(data_folder, "READERKIT_DATA", ".local/share", id="data"),
]


# --- where things are kept ---


@pytest.mark.parametrize(("folder", "variable", "below"), FOLDERS)
def test_folder_is_what_its_variable_says(
    folder, variable, below, monkeypatch, tmp_path
):
    monkeypatch.setenv(variable, str(tmp_path / "here"))
    assert folder() == tmp_path / "here"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable, "here")
    assert folder() == tmp_path / "here"


@pytest.mark.parametrize(("folder", "variable", "below"), FOLDERS)
def test_folder_follows_the_desktop_convention(
    folder, variable, below, monkeypatch, tmp_path
):
    monkeypatch.delenv(variable)
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert folder() == tmp_path / below / "readerkit"


@pytest.mark.parametrize(("folder", "variable", "below"), FOLDERS)
def test_without_home_the_user_database_knows(folder, variable, below, monkeypatch):
    for name in (variable, "HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    assert folder() == home / below / "readerkit"


# In a user namespace, as somebody else, or with a user database that knows nobody.
_AS_STRANGER = """\
if unshare --map-user=54321 --map-group=54321 true 2>/dev/null; then
  exec unshare --map-user=54321 --map-group=54321 "$@"
elif setpriv --reuid=54321 --regid=54321 --clear-groups "$1" -c "" 2>/dev/null; then
  exec setpriv --reuid=54321 --regid=54321 --clear-groups "$@"
else
  PYTHONPATH="$0" exec "$@"
fi
"""
_NOBODY_KNOWN = """\
import pwd
def getpwuid(uid):
    raise KeyError(uid)
pwd.getpwuid = getpwuid
"""


@pytest.fixture
def as_stranger():
    """A folder that every user can reach, and how to run as one without a name."""
    with tempfile.TemporaryDirectory(prefix="readerkit-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        write_files(folder / "path", {"sitecustomize.py": _NOBODY_KNOWN})
        yield folder, ("sh", "-c", _AS_STRANGER, str(folder / "path"))


def test_user_without_a_home_is_told_which_variables_to_set(as_stranger, capsys):
    folder, prefix = as_stranger
    book = make_book(folder)
    source = (book.repository / "lib" / "linear.py").read_bytes()
    write_files(folder / "copy", {"lib/linear.py": source})
    for name in ("cache", "data"):
        (folder / name).mkdir()
        (folder / name).chmod(0o777)
    given: dict[str, str | None] = dict.fromkeys(
        ("HOME", "READERKIT_CACHE", "READERKIT_DATA", "XDG_CACHE_HOME", "XDG_DATA_HOME")
    )
    given["READERKIT_BOOK"] = str(book.root)
    for variable, name in (("READERKIT_DATA", "data"), ("READERKIT_CACHE", "cache")):
        done = run_process("annotate", environment=given, prefix=prefix)
        assert (done.code, done.out) == (1, "")
        assert done.err == (
            f"readerkit: this user has no home folder: set {variable} to a folder for "
            "readerkit\n"
        )
        given[variable] = str(folder / name)
    fetch = ("fetch", "--source", str(folder / "copy"))
    assert run_process(*fetch, environment=given, prefix=prefix).code == 0
    done = run_process("annotate", environment=given, prefix=prefix)
    assert (done.code, done.err) == (0, "")


@pytest.mark.further
def test_a_folder_that_is_closed_or_a_file_is_one_message(as_stranger, capsys):
    folder, prefix = as_stranger
    at = ("--book", str(make_book(folder).root))
    (folder / "closed").mkdir()
    for name in ("cache", "data"):
        (folder / name).mkdir()
        (folder / name).chmod(0o777)
    write_files(folder, {"file": ""})
    (folder / "closed").chmod(0)
    told = {
        "closed": "it is not yours, or closed to you: open it, or set {} to another",
        "file": "got a file, expected a folder: set {} to one",
    }
    for variable, commands in (
        ("READERKIT_CACHE", (("annotate", *at), ("path", *at), ("cache", *at))),
        ("READERKIT_DATA", (("start", *at), ("budget", "ledger"), ("quiz", "stats"))),
    ):
        usable = {"READERKIT_CACHE": "cache", "READERKIT_DATA": "data"}
        for name, words in told.items():
            given = {key: str(folder / at) for key, at in usable.items()}
            given[variable] = str(folder / name)
            for command in commands:
                done = run_process(*command, environment=given, prefix=prefix)
                assert (done.code, done.out) == (1, ""), command
                assert f"{folder / name}: {words.format(variable)}" in done.err
                assert done.err.count("\n") == 1
            done = run_process("doctor", *at, environment=given, prefix=prefix)
            assert words.format(variable) in done.out and "Traceback" not in done.err


def test_missing_home_is_no_matter_where_the_variables_are_set(desk):
    nothing = {"HOME": None, "XDG_CACHE_HOME": None, "XDG_DATA_HOME": None}
    at = ("--book", str(desk.book.root))
    for command in ("fetch", "annotate"):
        done = run_process(command, *at, environment=nothing)
        assert (done.code, done.err) == (0, "")


# --- which book ---


def test_variable_names_the_book(tmp_path, capsys, monkeypatch):
    book = make_book(tmp_path)
    monkeypatch.setenv("READERKIT_BOOK", str(book.root))
    assert "close" in run(capsys, "annotate").out


def test_option_goes_before_the_variable(tmp_path, capsys, monkeypatch):
    book = make_book(tmp_path)
    monkeypatch.setenv("READERKIT_BOOK", str(tmp_path))
    assert run(capsys, "annotate", "--book", str(book.root)).code == 0
    monkeypatch.setenv("READERKIT_BOOK", str(tmp_path / "nowhere"))
    wrong = run(capsys, "annotate")
    assert (wrong.code, "--book" in wrong.err) == (2, False)
    assert "Invalid value for READERKIT_BOOK: Directory " in wrong.err


@pytest.mark.parametrize(
    ("command", "what"),
    [("lab", "labs"), ("rebuild", "sections to rebuild"), ("break", "faults")],
)
def test_lists_say_that_they_are_of_the_book_that_ships(
    tmp_path, monkeypatch, command, what
):
    monkeypatch.delenv("READERKIT_BOOK", raising=False)
    plain = run_process(command)
    assert (plain.code, plain.err) == (0, "")
    book = make_book(tmp_path)
    listed = run_process(command, environment={"READERKIT_BOOK": str(book.root)})
    assert (listed.code, listed.out) == (0, plain.out)
    assert listed.err == (
        f"readerkit: {what} are those of the book that ships: {book.root} has none\n"
    )


@pytest.mark.parametrize(
    ("folder", "code", "message"),
    [
        (
            "empty",
            2,
            r"/empty: got a folder without annotations/upstreams\.yaml, expected a",
        ),
        (
            "book/annotations/sample",
            2,
            r"expected a book: did you mean --book .*/book\?",
        ),
        ("nowhere", 2, r"Directory '.*/nowhere' does not exist"),
        ("file", 2, r"Directory '.*/file' is a file"),
    ],
)
def test_folder_that_is_no_book_is_refused(folder, code, message, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    write_files(
        tmp_path / "book/annotations", {"upstreams.yaml": "", "sample/a.yaml": ""}
    )
    done = run(capsys, "annotate", "--book", str(tmp_path / folder))
    assert (done.code, done.out) == (code, "")
    assert re.search(message, done.err)


def test_book_given_relatively_is_found_again_elsewhere(tmp_path, monkeypatch):
    make_book(tmp_path)
    monkeypatch.chdir(tmp_path)
    library = open_library(Path("book"))
    monkeypatch.chdir("/")
    assert library.root == tmp_path / "book"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param(
            {"stray.yaml": "- {}\n"},
            r"annotations/stray\.yaml:1:1: a file nobody reads: expected .*concepts",
            id="stray-file",
        ),
        pytest.param(
            {"other/linear.yaml": OWN},
            r"annotations/other/linear\.yaml:1:3: unknown upstream: got folder "
            r"'other', expected one of sample",
            id="folder-of-no-upstream",
        ),
        pytest.param(
            {"sample/linear.xx.yaml/": ""},
            r"linear\.xx\.yaml:1:1: cannot be read: got a folder, expected a regular",
            id="folder",
        ),
        pytest.param(
            {"sample/more.yml": OWN},
            r"sample/more\.yml:1:1: a file nobody reads: expected .*<topic>\.yaml",
            id="yml",
        ),
        pytest.param(
            {"sample/deeper/more.yaml": OWN},
            r"sample/deeper/more\.yaml:1:1: a file nobody reads",
            id="folder-in-a-folder",
        ),
    ],
)
def test_what_is_no_part_of_a_book_is_said(files, message, tmp_path, capsys):
    book = make_book(tmp_path)
    for name, text in files.items():
        path = book.path(name)
        if name.endswith("/"):
            path.mkdir(parents=True)
        else:
            write_files(book.root / "annotations", {name: text})
    done = run(capsys, "annotate", "--book", str(book.root))
    assert (done.code, done.out) == (1, "")
    assert re.search(message, done.err)


# --- the reader's own overlay ---


@pytest.fixture
def overlay(tmp_path) -> Path:
    return tmp_path / "data" / "book" / "annotations"


def test_own_notes_stand_beside_those_of_the_book(desk, overlay):
    write_files(overlay, {"sample/mine.yaml": OWN})
    notes = json.loads(desk.run("annotate", "--json").out)
    assert [note["id"] for note in notes] == [
        "close",
        "own-close",
        "own-step",
        "whole-step",
    ]
    assert notes[1]["written_at"] == f"{overlay}/sample/mine.yaml:1"


FAULTY = {
    "an id of the book": (
        {"sample/mine.yaml": ANNOTATIONS},
        "sample/mine.yaml:1:3: a duplicate id: got 'close', first at "
        "annotations/sample/linear.yaml:1",
    ),
    "an unknown concept": (
        {"sample/mine.yaml": OWN.replace("[collectives]", "[colectives]")},
        "sample/mine.yaml:17:14: unknown concept: got 'colectives'",
    ),
    "no YAML": ({"sample/mine.yaml": "- id: ["}, "sample/mine.yaml:2:1: not valid"),
    "a lock of no use": ({"sample.lock": "[]"}, "sample.lock:1:1: not a readable lock"),
    "another ending": ({"sample/mine.yml": OWN}, "mine.yml:1:1: a file nobody reads"),
}


@pytest.mark.parametrize(("files", "message"), FAULTY.values(), ids=FAULTY)
def test_faulty_file_of_own_notes_is_left_out_and_said(
    files, message, desk, overlay, capsys
):
    write_files(overlay, {"sample/sound.yaml": OWN.replace("own", "sound"), **files})
    done = desk.run("annotate", "--json")
    assert done.code == 0
    shown = [note["id"] for note in json.loads(done.out)]
    assert shown == ["close", "sound-close", "sound-step", "whole-step"]
    assert done.err.startswith(f"readerkit: {overlay}/") and message in done.err
    assert "mend this, or move the file away" in done.err
    # What says that all is well, or writes on all, takes no note for another.
    for option in ("--check", "--update-lock"):
        done = desk.run("annotate", option)
        assert (done.code, done.out) == (1, "")
        assert message in done.err


def test_no_editor_is_opened_for_a_note_that_could_not_be_taken(
    desk, overlay, monkeypatch, tmp_path
):
    write_files(overlay, {"sample/mine.yaml": "- {}\n"})
    monkeypatch.setenv("EDITOR", f"touch {tmp_path / 'opened'};:")
    done = desk.run("note", "linear.py:14", "--into", "mine")
    assert done.code == 1
    assert "mine.yaml:1:3: missing key 'id'" in done.err
    assert not (tmp_path / "opened").exists()


def test_faults_of_the_book_are_errors_beside_those_of_own_notes(desk, overlay):
    write_files(overlay, {"sample/mine.yaml": "- {}\n"})
    write_files(desk.book.root / "annotations", {"sample/bad.yaml": "- {}\n"})
    done = desk.run("annotate")
    assert (done.code, done.out) == (1, "")
    assert f"{overlay}/sample/mine.yaml:1:3: missing key 'id'" in done.err
    assert "annotations/sample/bad.yaml:1:3: missing key 'id'" in done.err


def test_own_notes_on_what_another_book_pins_are_left_alone(desk, overlay):
    other = Lock("c" * 40).to_text()
    files = {"other/mine.yaml": OWN, "other.lock": other, "sample/m.yaml": OWN}
    write_files(overlay, files)
    done = desk.run("annotate", "--check")
    assert "left out: 2 files of your own notes on other, which this book" in done.err
    assert desk.run("annotate", "--update-lock").code == 0
    done = desk.run("annotate", "--check")
    assert (done.code, done.out.splitlines()[0]) == (
        0,
        "sample: 4 anchors, all as the lock says",
    )
    assert (overlay / "other.lock").read_text() == other


def test_lock_of_notes_that_are_left_out_is_kept(desk, overlay):
    write_files(overlay, {"sample/mine.yaml": OWN})
    assert desk.run("annotate", "--update-lock").code == 0
    before = (overlay / "sample.lock").read_bytes()
    write_files(overlay, {"sample/mine.yaml": OWN + "- {}\n"})
    assert desk.run("review", "close").code == 0
    assert (overlay / "sample.lock").read_bytes() == before
    anchors = json.loads(desk.lock().read_text())["anchors"]
    assert set(anchors) == {"close", "whole-step"}
    assert anchors["close"]["reviewed"]


@pytest.mark.parametrize("name", ["sample/pipe.yaml", "sample.lock"])
@pytest.mark.parametrize("where", ["book", "overlay"])
def test_pipe_among_the_notes_is_not_waited_for(where, name, desk, overlay):
    annotations = overlay if where == "overlay" else desk.book.root / "annotations"
    (annotations / "sample").mkdir(parents=True, exist_ok=True)
    (annotations / name).unlink(missing_ok=True)
    os.mkfifo(annotations / name)
    done = run_process("annotate", "--book", str(desk.book.root))
    assert done.code == (0 if where == "overlay" else 1)
    assert f"{name}:1:1: cannot be read: got a named pipe, expected" in done.err


@pytest.mark.parametrize("file", ["annotations/concepts.yaml", "site/pages/x.md"])
def test_pipe_in_a_book_is_not_waited_for_by_its_site(file, desk, tmp_path):
    pipe = desk.book.root / file
    pipe.parent.mkdir(parents=True, exist_ok=True)
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    command = ("site", "build", "--output", str(tmp_path / "out"))
    done = run_process(*command, "--book", str(desk.book.root))
    assert done.code == 1
    assert f"{file}: cannot be read: got a named pipe, expected" in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("script", ["exit 0", "echo git version", "exit 128"])
def test_what_only_calls_itself_git_is_no_source(script, desk, tmp_path):
    stub = tmp_path / "bin" / "git"
    stub.parent.mkdir()
    stub.write_text(f"#!/bin/sh\n{script}\n")
    stub.chmod(0o755)
    environment = {
        "PATH": f"{stub.parent}:{os.environ['PATH']}",
        "READERKIT_CACHE": str(tmp_path / "empty"),
    }
    command = ("fetch", "sample", "--source", "git", "--book", str(desk.book.root))
    done = run_process(*command, environment=environment)
    assert done.code == 1
    assert "git cannot be used: " in done.err
    assert "Traceback" not in done.err


def test_editor_files_are_no_notes(desk, overlay):
    (desk.book.root / "annotations" / "sample" / ".#x.yaml").symlink_to("me@host.1")
    assert desk.run("annotate").err == ""


def test_anchors_are_told_beside_the_faults_of_files(desk, tmp_path):
    assert desk.run("fetch").code == 0
    lost = OWN.replace("symbol: step", "symbol: stop").replace("papre", "paper")
    write_files(
        desk.book.root / "annotations",
        {
            "sample/lost.yaml": lost.replace("{key: paper,", "{key: papre,"),
            "sample/bad.yaml": "- {}\n",
        },
    )
    err = desk.run("annotate", "--check").err
    assert "annotations/sample/lost.yaml:10:22: unknown reference: got 'papre'" in err
    assert "annotations/sample/lost.yaml:12:3: own-step: lib/linear.py: no symb" in err
    assert "annotations/sample/bad.yaml:1:3: missing key 'id'" in err
    # The file was read before and is remembered: its places are exact all the same.
    write_files(desk.book.root / "annotations", {"sample/lost.yaml": OWN})
    (desk.book.root / "annotations" / "sample" / "bad.yaml").unlink()
    assert desk.run("annotate").code == 0
    concepts = desk.book.path("concepts.yaml")
    concepts.write_text(concepts.read_text().replace("all-reduce", "all-reduced"))
    err = desk.run("annotate").err
    assert "annotations/sample/linear.yaml:11:14: unknown concept: got 'all-red" in err


def test_tilde_in_a_variable_is_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("READERKIT_CACHE", "~/x")
    assert cache_folder() == tmp_path / "x"


def test_update_lock_writes_each_part_where_it_belongs(desk, overlay):
    write_files(overlay, {"sample/mine.yaml": OWN})
    done = desk.run("annotate", "--update-lock")
    assert done.out.splitlines() == [
        f"wrote {desk.lock()}",
        f"wrote {overlay / 'sample.lock'}",
        "sample: 4 anchors locked",
    ]
    book = json.loads(desk.lock().read_text())
    mine = json.loads((overlay / "sample.lock").read_text())
    assert set(book["anchors"]) == {"close", "whole-step"}
    assert set(mine["anchors"]) == {"own-close", "own-step"}
    assert list(book["files"]) == ["lib/linear.py"]
    assert mine["files"] == {}
    # Without the overlay the book is whole.
    (overlay.parent).rename(overlay.parent.parent / "away")
    assert desk.run("annotate", "--check").code == 0


# --- what it never does ---


def test_reading_a_book_writes_nothing_into_it(desk):
    def tree():
        return {p: p.stat().st_mtime_ns for p in desk.book.root.rglob("*")}

    before = tree()
    for arguments in (["annotate"], ["annotate", "close"], ["annotate", "--check"]):
        desk.run(*arguments)
    assert tree() == before


def test_altered_bytes_right_after_a_fetch_are_a_disk_error(desk, tmp_path):
    library = open_library(desk.book.root)
    upstream = library.upstream("sample")
    [blob] = library.lock(upstream).files.values()
    # A folder in the place of the blob: nothing can be kept there.
    library.store.path(blob).mkdir(parents=True)
    with pytest.raises(ReaderkitError, match=r"cannot read .*READERKIT_CACHE"):
        library.sources(upstream).file("lib/linear.py")


def test_cache_that_cannot_be_written_still_reads_what_is_there(desk, tmp_path):
    desk.run("fetch")
    # The parsed book cannot be kept where a file stands in the way of its folder.
    (tmp_path / "cache" / "parsed").rename(tmp_path / "away")
    (tmp_path / "cache" / "parsed").touch()
    done = desk.run("annotate")
    assert (done.code, done.err) == (0, "")


def test_library_opens_without_git_torch_or_a_network():
    code = (
        "import sys; from readerkit.app.library import open_library; "
        "open_library(); print({'git', 'torch', 'requests', 'pip'} & "
        "set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def test_a_fault_that_is_typed_now_is_placed_without_reading_all_else(
    tmp_path, monkeypatch
):
    """Sound files are known by what is remembered of them; faulty ones are read."""
    book = make_book(tmp_path)
    open_library(book.root)
    again = []

    def reading(file, kind):
        again.append(file.path)
        return read_strictly(file, kind)

    monkeypatch.setattr("readerkit.app.overlay.read_strictly", reading)
    target = data_folder() / "book" / "annotations" / "sample" / "mine.yaml"
    wrong = OWN.replace("text: Forward", "txt: Forward")
    with pytest.raises(ContentError) as refused:
        open_library(book.root, whole=True, as_if=(target, wrong.encode()))
    assert set(again) == {"annotations/sample/mine.yaml"}
    [line] = {fault.line for fault in refused.value.faults if "txt" in str(fault)}
    assert "txt: " in wrong.splitlines()[line - 1]
