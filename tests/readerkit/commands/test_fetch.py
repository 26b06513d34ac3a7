import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from readerkit.upstreams import Lock
from readerkit.upstreams.store import BlobStore, blob_id
from tests.helpers import (
    SAMPLE,
    WAIT_S,
    git,
    make_book,
    run,
    run_on_terminal,
    run_process,
    write_files,
)
from tests.readerkit.commands.disk import run_on_full_disk
from tests.readerkit.upstreams.servers import git_server

pytestmark = pytest.mark.sampled

BLOB = blob_id(SAMPLE.encode())


@pytest.fixture
def cache(tmp_path) -> Path:
    return tmp_path / "cache"


def blobs(cache: Path) -> list[Path]:
    return [path for path in (cache / "blobs").rglob("*") if path.is_file()]


def unreachable(book, port: int) -> None:
    """Make the book's upstream one that nobody serves."""
    path = book.path("upstreams.yaml")
    url = book.repository.as_uri()
    path.write_text(path.read_text().replace(url, f"git://127.0.0.1:{port}/sample"))


# --- what served, and what did not ---


def test_what_nobody_serves_is_asked_for_once_and_told_once(desk, tmp_path):
    """However many notes stand in it: each try can take a quarter of a minute."""
    asked = tmp_path / "asked"
    tool = tmp_path / "bin" / "git"
    tool.parent.mkdir()
    tool.write_text(
        f'#!/bin/sh\ncase "$*" in *ls-remote*) echo >> {asked}; exit 128;; esac\n'
        f'exec {shutil.which("git")} "$@"\n'
    )
    tool.chmod(0o755)
    notes = desk.book.path("sample/linear.yaml")
    notes.write_text(
        notes.read_text() + "  claims:\n  - says: Forward\n    stands: "
        "{file: lib/linear.py, symbol: step}\n"
    )
    done = run_process(
        *("annotate", "--check", "--book", str(desk.book.root)),
        environment={"PATH": f"{tool.parent}:{os.environ['PATH']}"},
    )
    assert done.code == 1
    assert done.err.count("no source could serve") == 1, done.err
    assert asked.read_text() == "\n"


def test_output_says_which_source_served_and_why_others_did_not(desk):
    done = desk.run("fetch", "sample")
    commit, place = desk.book.commit[:12], desk.book.repository.as_uri()
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "sample: not from installed: no installed package carries these files",
        f"sample: 1 file from git {place} at {commit}",
        f"sample: its one file is that of v1, commit {commit}",
    ]


def test_second_run_needs_neither_git_nor_a_server(desk, monkeypatch):
    desk.run("fetch")
    monkeypatch.setenv("PATH", "/nowhere")
    done = desk.run("fetch")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("sample: 1 file in the cache, first from git file://")
    assert "not from" not in done.out


def test_progress_is_for_a_terminal_alone(desk):
    at = ("--book", str(desk.book.root))
    rows = list(filter(None, run_on_terminal(100, "fetch", *at).splitlines()))
    assert any("trying git …" in row for row in rows)
    assert len(rows) == len(set(rows))  # nothing is said twice
    (desk.book.root.parent / "cache").rename(desk.book.root.parent / "old")
    done = run_process("fetch", *at)
    assert (done.code, done.err) == (0, "")
    assert "trying" not in done.out


def test_json_says_how_many_files_came_and_from_where(desk):
    for fetched in (1, 0):
        done = desk.run("fetch", "--json")
        [result] = json.loads(done.out)
        assert result["upstream"] == "sample"
        assert result["commit"] == desk.book.commit
        assert (result["files"], result["fetched"]) == (1, fetched)
        assert result["came_from"]["source"] == "git"
        assert done.err == ""


def test_named_source_is_the_only_one_tried(desk):
    done = desk.run("fetch", "--source", "package")
    assert done.code == 1
    assert "package: it has no package" in done.err
    assert "git" not in done.out


def test_folder_serves_the_same_bytes(desk, tmp_path, cache):
    folder = write_files(tmp_path / "copy", {"lib/linear.py": SAMPLE})
    done = desk.run("fetch", "--source", str(folder))
    assert done.code == 0
    assert f"1 file from folder {folder}" in done.out
    assert BlobStore(cache).read(BLOB) == SAMPLE.encode()


@pytest.mark.parametrize("made", [("clone",), ("clone", "--bare"), ("worktree", "add")])
@pytest.mark.parametrize("given", ["up", "./up", "../here/up"])
def test_a_repository_is_named_from_the_working_folder(
    made, given, desk, tmp_path, cache, monkeypatch
):
    here, repository = tmp_path / "here", desk.book.repository
    here.mkdir()
    monkeypatch.chdir(here)
    whence = () if made[0] == "worktree" else (str(repository),)
    git(repository, *made, *whence, str(here / "up"))
    done = desk.run("fetch", "--source", given)
    assert (done.code, done.err) == (0, "")
    assert BlobStore(cache).read(BLOB) == SAMPLE.encode()


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param(
            {"lib/linear.py": SAMPLE + "\n"},
            "1 of 1 file of folder .* differ from the lock, lib/linear.py first: "
            f"got blob [0-9a-f]{{40}}, expected {BLOB}",
            id="other-bytes",
        ),
        pytest.param(
            {"lib/linear.py": SAMPLE.replace("\n", "\r\n")},
            "differ from the lock",
            id="line-ends",
        ),
        pytest.param(
            {"README": "empty"},
            "cannot read lib/linear.py in .*: No such",
            id="missing",
        ),
        pytest.param(
            {"lib/linear.py": b"#" * 5_000_000},
            "lib/linear.py is too large: got 5,000,000 bytes",
            id="too-large",
        ),
    ],
)
def test_folder_with_other_bytes_is_refused_whole(
    files, message, desk, tmp_path, cache
):
    folder = write_files(tmp_path / "copy", files)
    done = desk.run("fetch", "--source", str(folder))
    assert done.code == 1
    assert re.search(message, done.err)
    assert blobs(cache) == []


def test_folder_whose_file_is_a_link_out_of_it_is_refused(desk, tmp_path, cache):
    outside = write_files(tmp_path / "outside", {"linear.py": SAMPLE})
    folder = write_files(tmp_path / "copy", {"lib/other.py": ""})
    (folder / "lib" / "linear.py").symlink_to(outside / "linear.py")
    done = desk.run("fetch", "--source", str(folder))
    assert done.code == 1
    assert (
        f"lib/linear.py of {folder} is a link, and links are never followed" in done.err
    )
    assert blobs(cache) == []


# --- wrong use ---


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["other"], "unknown upstream: got 'other', expected one of sample"),
        (
            ["--source", "nowhere"],
            "--source: got 'nowhere', expected git, installed, package "
            "or the path of a folder that exists",
        ),
        (
            ["--source", ""],
            "--source: got '', expected git, installed, package "
            "or the path of a folder that exists",
        ),
    ],
    ids=["upstream", "source", "no-source"],
)
def test_a_wrong_name_is_one_line_with_the_right_ones(arguments, message, desk):
    done = desk.run("fetch", *arguments)
    assert (done.code, done.out, done.err) == (2, "", f"readerkit: {message}\n")


def test_folder_upstream_is_not_fetched(tmp_path, capsys):
    book = make_book(tmp_path)
    path = book.path("upstreams.yaml")
    minis = {"name": "minis", "title": "Minis", "folder": "m", "include": ["m/*.py"]}
    path.write_text(json.dumps([*json.loads(path.read_text()), minis]))
    done = run(capsys, "fetch", "minis", "--book", str(book.root))
    assert (done.code, done.out) == (2, "")
    assert "minis is a folder of this book" in done.err
    path.write_text(json.dumps([minis]))
    shutil.rmtree(path.parent / "sample")
    (path.parent / "sample.lock").unlink(missing_ok=True)
    for arguments, said in {
        (): "there is nothing to fetch\n",
        ("--json",): "[]\n",
    }.items():
        none = run(capsys, "fetch", *arguments, "--book", str(book.root))
        assert (none.code, none.err) == (0, "")
        assert none.out.endswith(said)
    assert run(capsys, "fetch", "--book", str(book.root)).code == 0


def add_upstream(book, name: str, url: str) -> None:
    """Pin the book's repository once more, under another name and address."""
    [first] = json.loads(book.path("upstreams.yaml").read_text())
    second = {**first, "name": name, "url": url}
    book.path("upstreams.yaml").write_text(json.dumps([first, second]))
    book.path(f"{name}.lock").write_text(book.path("sample.lock").read_text())


@pytest.mark.parametrize("names", [(), ("second", "sample")])
def test_several_upstreams_are_fetched_in_one_run(names, desk):
    add_upstream(desk.book, "second", desk.book.repository.as_uri())
    done = desk.run("fetch", *names)
    assert (done.code, done.err) == (0, "")
    summaries = [line for line in done.out.splitlines() if "its one file is" in line]
    expected = names or ("sample", "second")
    assert [line.split(":")[0] for line in summaries] == [*expected]


@pytest.mark.further
def test_upstream_that_nobody_serves_does_not_hold_up_the_others(desk, free_port):
    add_upstream(desk.book, "gone", f"git://127.0.0.1:{free_port}/gone")
    blob = blob_id(b"x")
    lock = Lock(desk.book.commit, {"lib/linear.py": blob})
    desk.book.path("gone.lock").write_text(lock.to_text())
    done = desk.run("fetch", "gone", "sample", "--json")
    assert done.code == 1
    assert [result["upstream"] for result in json.loads(done.out)] == ["sample"]
    assert done.err.startswith("readerkit: gone: 1 file is not in the cache")
    assert done.err.count("Connection refused") == 1


def test_source_that_is_named_is_verified_though_the_cache_is_full(desk, tmp_path):
    assert desk.run("fetch").code == 0
    first = json.loads(desk.run("fetch", "--json").out)[0]["came_from"]
    good, bad = tmp_path / "good", tmp_path / "bad"
    write_files(good, {"lib/linear.py": SAMPLE})
    write_files(bad, {"lib/linear.py": SAMPLE.replace("loss", "lass")})
    done = desk.run("fetch", "--source", str(good))
    assert (done.code, done.err) == (0, "")
    assert f"sample: verified 1 file of folder {good}\n" in done.out
    assert "sample: 1 file in the cache, first from git file:" in done.out
    done = desk.run("fetch", "--source", str(bad))
    assert (done.code, done.out) == (1, "")
    assert "1 of 1 file of folder" in done.err and "differ from the lock" in done.err
    again = json.loads(desk.run("fetch", "--json").out)[0]
    assert (again["came_from"], again["fetched"]) == (first, 0)


def test_a_pin_without_a_tag_is_its_commit_alone(desk):
    pins = desk.book.path("upstreams.yaml")
    pins.write_text(pins.read_text().replace('"tag": "v1", ', ""))
    done = desk.run("fetch")
    assert (done.code, done.err) == (0, "")
    last = done.out.splitlines()[-1]
    assert last == f"sample: its one file is that of commit {desk.book.commit[:12]}"
    summary = desk.run("annotate").out.splitlines()[-1]
    assert f"of Sample commit {desk.book.commit[:12]}, verified" in summary


def test_files_that_were_there_already_are_counted(tmp_path, capsys):
    book = make_book(tmp_path, files={"lib/other.py": "x = 1\n"})
    at = ("--book", str(book.root))
    assert run(capsys, "fetch", *at).code == 0
    BlobStore(tmp_path / "cache").path(blob_id(b"x = 1\n")).unlink()
    *_, brought, there, all_of_it = run(capsys, "fetch", *at).out.splitlines()
    assert brought.startswith("sample: 1 file from git file:")
    assert there == "sample: 1 file was in the cache already"
    assert all_of_it.startswith("sample: all 2 files are those of v1")


def test_advice_after_a_failure_fits_the_source_that_was_asked(desk, tmp_path):
    (tmp_path / "empty").mkdir()
    done = desk.run("fetch", "--source", str(tmp_path / "empty"))
    assert done.code == 1
    advice = done.err.splitlines()[-1]
    assert "leave --source out" in advice and "name a checkout of v1" in advice
    assert "network" not in advice


# --- nothing to fetch from ---


@pytest.mark.parametrize("command", ["fetch", "annotate"])
def test_no_network_and_nothing_cached_says_what_was_tried_and_what_to_do(
    command, desk, free_port, cache
):
    unreachable(desk.book, free_port)
    done = desk.run(command, "sample")
    assert done.code == 1
    head, *rows, mend = done.err.splitlines()
    assert head.startswith("readerkit: sample: 1 file is not in the cache and no ")
    assert [row.split(":")[0].strip() for row in rows] == [
        "installed",
        "git",
        "package",
    ]
    assert "Connection refused" in rows[1]
    assert mend.strip().startswith("to mend it: connect to a network and run")
    assert "readerkit fetch sample --source PATH" in mend
    assert blobs(cache) == []


@pytest.mark.parametrize("command", ["fetch", "annotate"])
def test_a_person_without_a_network_is_told_each_reason_once(command, desk, free_port):
    unreachable(desk.book, free_port)
    shown = run_on_terminal(200, command, "sample", "--book", str(desk.book.root))
    assert shown.count("no installed package carries these files") == 1
    assert shown.count("Connection refused") == 1


def test_without_a_network_what_is_cached_still_reads(desk, free_port):
    assert desk.run("fetch").code == 0
    unreachable(desk.book, free_port)
    assert desk.run("annotate").code == 0
    assert desk.run("fetch").code == 0


def test_missing_git_is_one_of_the_reasons(desk, monkeypatch, cache):
    monkeypatch.setenv("PATH", "/nowhere")
    done = desk.run("fetch")
    assert done.code == 1
    assert re.search(r"git: .*git is not installed, or not on PATH$", done.err, re.M)
    assert blobs(cache) == []


def test_missing_git_does_not_keep_a_process_from_starting(desk):
    at = ("--book", str(desk.book.root))
    done = run_process("annotate", *at, environment={"PATH": "/nowhere"})
    assert done.code == 1
    assert "git is not installed, or not on PATH" in done.err
    assert "Traceback" not in done.err


def test_a_new_tag_wants_its_commit(desk):
    """What the old commit holds is never said to be of the new version."""
    assert desk.run("fetch", "--update-lock").code == 0
    pins = desk.book.path("upstreams.yaml")
    pins.write_text(pins.read_text().replace('"tag": "v1"', '"tag": "v2"'))
    for command in (["fetch"], ["annotate", "--check"]):
        done = desk.run(*command)
        assert done.code == 1 and "v2, commit" not in done.out
        assert (
            "upstreams.yaml: sample: got tag 'v2' beside the commit that is locked as "
            "v1, expected the commit of 'v2'; where both are names of it, readerkit "
            "fetch sample --update-lock" in done.err
        )
    git(desk.book.repository, "tag", "v2", "v1^{commit}")
    assert desk.run("fetch", "--update-lock").code == 0
    assert "is that of v2, commit" in desk.run("fetch").out


def test_moved_tag_shows_both_commits_and_no_other_source_is_tried(desk):
    repository, old = desk.book.repository, desk.book.commit
    write_files(repository, {"lib/linear.py": SAMPLE + "# more\n"})
    git(repository, "commit", "--all", "--quiet", "--message=next")
    git(repository, "tag", "--force", "--annotate", "--message=moved", "v1")
    new = git(repository, "rev-parse", "HEAD")
    done = desk.run("fetch")
    assert done.code == 1
    assert f"has moved: got {new}, expected {old}" in done.err
    assert "from package" not in done.out


# --- a lock that does not fit ---


def set_files(files: dict[str, str]):
    return lambda text: Lock(json.loads(text)["commit"], files).to_text()


def set_blob(value: object):
    def change(text: str) -> str:
        data = json.loads(text)
        data["files"]["lib/linear.py"] = value
        return json.dumps(data)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(
            lambda text: re.sub('"commit": "....', '"commit": "f00d', text),
            r"annotations/sample\.lock: got the lock of f00d\w+, expected one of the "
            r"pinned commit \w{40}; make it with readerkit fetch sample --update-lock",
            id="of-another-commit",
        ),
        pytest.param(
            set_files({"lib/linear.py": "00" * 20}),
            rf"lib/linear\.py first: got blob {BLOB}, expected {'00' * 20}",
            id="of-another-blob",
        ),
        pytest.param(
            set_blob(BLOB[:12]),
            r"sample\.lock:1:1: not a readable lock: got lib/linear\.py: blob id",
            id="short-blob-id",
        ),
        pytest.param(
            set_files({"lib/linear.py": BLOB, "docs/a.py": BLOB}),
            r"sample\.lock: got 'docs/a\.py', which its upstream does not include",
            id="path-of-another-upstream",
        ),
        pytest.param(set_blob(5), r"sample\.lock:1:1: not a readable", id="number"),
        pytest.param(set_blob(None), r"sample\.lock:1:1: not a readable", id="null"),
        pytest.param(
            lambda text: text[:80], r"sample\.lock:\d+:1: not a", id="cut-off"
        ),
        pytest.param(
            lambda text: text.replace('"files"', "<<<<<<< HEAD\n"),
            r"sample\.lock:5:1: not a readable lock",
            id="merge-conflict",
        ),
        pytest.param(lambda text: "[" * 100_000, r"not a readable lock", id="deep"),
        pytest.param(lambda text: "[]", r"not a readable lock", id="list"),
        pytest.param(
            lambda text: text.replace('"format": 1', '"format": 2'),
            r"a lock of another version: got format 2, expected 1",
            id="of-another-version",
        ),
        pytest.param(lambda text: "", r"not a readable lock", id="empty"),
    ],
)
@pytest.mark.parametrize("command", ["fetch", "annotate"])
def test_lock_that_does_not_fit_is_one_message(command, change, message, desk, cache):
    desk.lock().write_text(change(desk.lock().read_text()))
    done = desk.run(command, "sample")
    assert done.code == 1
    assert re.search(message, done.err)
    assert "Traceback" not in done.err
    assert blobs(cache) == []


def test_missing_lock_says_how_to_make_one(desk):
    desk.lock().unlink()
    done = desk.run("annotate")
    assert done.code == 1
    assert "got no lock, expected one of the pinned commit" in done.err
    assert desk.run("fetch", "--update-lock").code == 0
    assert desk.run("annotate").code == 0


@pytest.mark.parametrize("up", ["..", "aa/../../..", "/"])
def test_lock_reaches_no_file_outside_the_cache(up, desk, tmp_path):
    victim = tmp_path / "victim.txt"
    victim.write_text("mine")
    path = f"{up}/{victim.name}" if up != "/" else f"..{victim}"
    desk.lock().write_text(set_blob(path)(desk.lock().read_text()))
    for command in ("annotate", "fetch"):
        assert desk.run(command).code == 1
    assert victim.read_text() == "mine"


# --- a new lock ---


def test_update_lock_follows_the_pin_and_keeps_the_anchors(locked):
    book = locked.book
    anchors = json.loads(locked.lock().read_text())["anchors"]
    more = SAMPLE + "\n\ndef more():\n    pass\n"
    write_files(book.repository, {"lib/linear.py": more, "lib/new.py": "x = 1\n"})
    git(book.repository, "add", "--all")
    git(book.repository, "commit", "--quiet", "--message=next")
    git(book.repository, "tag", "--force", "--annotate", "--message=next", "v1")
    commit = git(book.repository, "rev-parse", "HEAD")
    path = book.path("upstreams.yaml")
    path.write_text(path.read_text().replace(book.commit, commit))
    assert locked.run("annotate").code == 1
    done = locked.run("fetch", "sample", "--update-lock")
    assert done.code == 0
    assert f"sample: wrote {locked.lock()}" in done.out
    assert "sample: locked 2 files" in done.out
    lock = json.loads(locked.lock().read_text())
    assert lock["commit"] == commit
    assert lock["files"] == {
        "lib/linear.py": blob_id(more.encode()),
        "lib/new.py": blob_id(b"x = 1\n"),
    }
    assert lock["anchors"] == anchors
    assert locked.run("annotate", "--check").code == 1
    result = json.loads(locked.run("fetch", "--update-lock", "--json").out)
    assert result == [{"upstream": "sample", "commit": commit, "files": 2}]


@pytest.mark.parametrize("commit", ["main", "v1", "0" * 39, "G" * 40, "0" * 64])
def test_pin_is_a_full_commit_id_or_nothing(commit, desk):
    path = desk.book.path("upstreams.yaml")
    path.write_text(path.read_text().replace(desk.book.commit, commit))
    done = desk.run("fetch", "--update-lock")
    assert (done.code, done.out) == (1, "")
    assert "annotations/upstreams.yaml:1:" in done.err
    assert "'commit'" in done.err


# --- a cache that is damaged, full, or not there ---


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(
            lambda data: data[:9] + bytes([data[9] ^ 1]) + data[10:], id="bit"
        ),
        pytest.param(lambda data: data[:-1], id="cut-off"),
        pytest.param(lambda data: b"", id="empty"),
    ],
)
@pytest.mark.parametrize("command", ["annotate", "fetch"])
def test_damaged_cache_is_fetched_again_and_said(command, damage, desk, cache):
    desk.run("fetch")
    [blob] = blobs(cache)
    blob.write_bytes(damage(SAMPLE.encode()))
    done = desk.run(command)
    assert done.code == 0
    if command == "annotate":
        assert done.err == (
            "readerkit: the cached copy of lib/linear.py was altered; "
            "fetching it again\n"
        )
    else:
        assert "sample: 1 file from git" in done.out
    assert blob.read_bytes() == SAMPLE.encode()
    assert desk.run("annotate").err == ""


def test_damaged_cache_without_a_network_is_an_error(desk, cache, free_port):
    desk.run("fetch")
    [blob] = blobs(cache)
    blob.write_bytes(b"def step(): pass\n")
    unreachable(desk.book, free_port)
    done = desk.run("annotate")
    assert (done.code, done.out) == (1, "")
    assert "the cached copy of lib/linear.py was altered" in done.err
    assert "no source could serve it" in done.err


@pytest.mark.parametrize("source", ["git", "folder"])
def test_full_disk_is_one_message_and_leaves_no_half_blob(source, tmp_path, cache):
    # Does not compress, so that git's packs do not fit either.
    noise = "".join(f"# {blob_id(str(n).encode())}\n" for n in range(8_000))
    small = {f"lib/a{n}.py": f"x = {n}\n" for n in range(3)}
    book = make_book(tmp_path, files={**small, "lib/z.py": noise})
    arguments = ["fetch", "--book", str(book.root)]
    if source == "folder":
        (book.repository / ".git").rename(tmp_path / "no-repository")
        arguments += ["--source", str(book.repository)]
    done, left = run_on_full_disk(cache, *arguments)
    assert done.code == 1
    assert re.search(r"No space left on device|File too large", done.err)
    assert "Traceback" not in done.err
    if source == "folder":
        assert f"cannot write {cache}" in done.err
        assert "READERKIT_CACHE" in done.err
    for path, blob in left.items():
        assert ".aside-" not in path
        if "/blobs/" in path:
            assert path.endswith(f"/blobs/{blob[:2]}/{blob[2:]}")


def test_full_disk_leaves_the_old_lock_whole(locked, tmp_path):
    book = locked.book
    many = {f"lib/{'long-name-' * 15}{n}.py": "" for n in range(500)}
    write_files(book.repository, many)
    git(book.repository, "add", "--all")
    git(book.repository, "commit", "--quiet", "--message=next")
    git(book.repository, "tag", "--force", "--annotate", "--message=next", "v1")
    commit = git(book.repository, "rev-parse", "HEAD")
    path = book.path("upstreams.yaml")
    path.write_text(path.read_text().replace(book.commit, commit))
    disk = tmp_path / "disk"
    old = git(book.root, "hash-object", "--no-filters", str(locked.lock()))
    arguments = ("fetch", "--update-lock", "--book", str(disk))
    done, left = run_on_full_disk(disk, *arguments, files=book.root)
    assert done.code == 1
    assert f"cannot write {disk}/annotations/sample.lock" in done.err
    assert left[f"{disk}/annotations/sample.lock"] == old
    assert not any(".aside-" in path for path in left)


@pytest.mark.parametrize("place", ["/dev/null/cache", "/proc/cache"])
def test_cache_that_cannot_be_made_is_one_message(place, desk, monkeypatch):
    monkeypatch.setenv("READERKIT_CACHE", place)
    done = desk.run("fetch")
    assert done.code == 1
    assert re.search(rf"cannot (use the cache|read) {place}", done.err)
    assert "set READERKIT_CACHE to a" in done.err


# --- interrupted, and at the same time ---


def test_interrupt_in_the_middle_of_a_fetch_exits_with_130(tmp_path, cache):
    noise = "".join(f"# {blob_id(str(n).encode())}\n" for n in range(8_000))
    with git_server(tmp_path / "served", limits={3: 20_000}, hold=True) as server:
        book = make_book(tmp_path, files={"lib/z.py": noise}, url=server.url())
        command = [sys.executable, "-m", "readerkit", "fetch", "--book", str(book.root)]
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            assert server.stalled.wait(WAIT_S)
            os.killpg(process.pid, signal.SIGINT)  # what ^C in a terminal does
            _, err = process.communicate(timeout=WAIT_S)
        assert process.returncode == 130
        assert err.strip() == "readerkit: interrupted"
        assert blobs(cache) == []
        server.limits.clear()
        done = run_process("fetch", "--book", str(book.root))
        assert done.code == 0
        assert "sample: 2 files from git" in done.out


def test_two_fetches_at_once_both_end_well(desk, cache):
    command = [sys.executable, "-m", "readerkit", "fetch", "--json"]
    command += ["--book", str(desk.book.root)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    results = [
        json.loads(process.communicate(timeout=WAIT_S)[0])[0] for process in both
    ]
    assert [process.returncode for process in both] == [0, 0]
    assert {result["files"] for result in results} == {1}
    assert [path.read_text() for path in blobs(cache)] == [SAMPLE]
