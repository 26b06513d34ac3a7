"""``drift --spans``: rows in, rows out, from folders and from commits."""

import json
import resource
import subprocess
import time
from pathlib import Path

import pytest

from tests.helpers import git, make_repository, run_typed, write_files
from tests.terminals import READERKIT

OLD = "import os\n\n\ndef first(value):\n    return os.fspath(value) + '!'\n"
NEW = (
    "import os\n\nLIMIT = 3\n\n\ndef first(value):\n    return os.fspath(value) + '!'\n"
)
ROW = {"id": "one", "path": "pkg/a.py", "start": 4, "end": 5}


@pytest.fixture
def folders(tmp_path):
    old = write_files(tmp_path / "old", {"pkg/a.py": OLD, "pkg/b.bin": b"\0\1\2\n"})
    new = write_files(tmp_path / "new", {"pkg/a.py": NEW, "pkg/b.bin": b"\0\1\2\n"})
    return str(old), str(new)


def rows_file(tmp_path, *rows):
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(lines) + "\n")
    return str(file)


def carry(file, old, new):
    return run_typed("drift", "--spans", file, "--from", old, "--to", new, stdin="")


def test_each_row_is_answered_by_a_row(tmp_path, folders):
    file = rows_file(tmp_path, ROW, {**ROW, "id": 7, "path": "pkg/b.bin"})
    result = carry(file, *folders)
    assert (result.code, result.err) == (0, "")
    first, second = map(json.loads, result.out.splitlines())
    place = first.pop("confidence"), first.pop("reason")
    assert first == {
        "id": "one",
        "status": "moved",
        "path": "pkg/a.py",
        "start": 6,
        "end": 7,
    }
    assert place[0] > 0.94
    assert second["id"] == 7
    assert second["status"] == "unsure"
    assert second["path"] is second["start"] is second["end"] is None
    assert second["reason"] == "it is a binary file"


@pytest.mark.parametrize("bare", [False, True], ids=["checkout", "bare"])
def test_revisions_of_a_git_directory_are_trees(tmp_path, bare):
    make_repository(tmp_path / "repo", {"pkg/a.py": OLD}, tag="v1")
    write_files(tmp_path / "repo", {"pkg/a.py": NEW})
    git(tmp_path / "repo", "commit", "--quiet", "--all", "--message=second")
    root = tmp_path / "repo"
    if bare:
        git(tmp_path, "clone", "--quiet", "--bare", str(root), "bare.git")
        root = tmp_path / "bare.git"
    result = carry(rows_file(tmp_path, ROW), f"{root}@v1", f"{root}@main")
    assert result.code == 0, result.err
    answer = json.loads(result.out)
    assert (answer["status"], answer["start"], answer["end"]) == ("moved", 6, 7)
    # A bare repository alone is its HEAD, a checkout its files.
    alone = carry(rows_file(tmp_path, ROW), f"{root}@v1", str(root))
    assert json.loads(alone.out) == answer


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("nonsense", "got no JSON"),
        ("[" * 50_000, "got no JSON"),
        ("[1, 2]", "got a list"),
        ({"id": 1, "path": "a.py", "start": 1}, "got no 'end'"),
        ({**ROW, "id": [1]}, "got a list as 'id'"),
        ({**ROW, "start": "4"}, "got a text as 'start'"),
        ({**ROW, "start": True}, "got true or false as 'start'"),
        ({**ROW, "start": 9, "end": 3}, "got lines 9 to 3"),
        ({**ROW, "start": 0}, "got lines 0 to 5"),
        ({**ROW, "path": "../../etc/passwd"}, "leaves its upstream"),
        ({**ROW, "path": 3}, "is no text"),
    ],
)
def test_a_row_that_asks_for_nothing_is_one_line_and_the_others_are_answered(
    tmp_path, folders, row, said
):
    file = rows_file(tmp_path, row, ROW)
    result = carry(file, *folders)
    assert result.code == 1
    [line] = result.err.splitlines()
    assert line.startswith(f"readerkit: {file}:1: ")
    assert said in line
    assert json.loads(result.out)["id"] == "one"


def test_a_binary_file_of_rows_is_one_line(tmp_path, folders):
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b"\x7fELF\0" + b"no row\n" * 5000)
    result = carry(str(file), *folders)
    assert (result.code, result.out) == (2, "")
    [line] = result.err.splitlines()
    assert "got a binary file, expected lines of" in line


def test_many_rows_that_are_none_are_counted(tmp_path, folders):
    result = carry(rows_file(tmp_path, *["nonsense"] * 500, ROW), *folders)
    assert result.code == 1
    assert json.loads(result.out)["id"] == "one"
    lines = result.err.splitlines()
    assert len(lines) == 21
    assert lines[-1].endswith("and 480 more rows of no use")


@pytest.mark.parametrize("text", ["# Notes\n\nProse.\n", json.dumps([ROW], indent=1)])
def test_a_file_of_something_else_is_one_line(tmp_path, folders, text):
    file = tmp_path / "rows.jsonl"
    file.write_text(text)
    result = carry(str(file), *folders)
    assert (result.code, result.out) == (2, "")
    [line] = result.err.splitlines()
    assert f"{file}:1: got no JSON in " in line and "expected lines of" in line


@pytest.mark.parametrize("text", ["", "\n \n", "\ufeff"])
def test_a_file_without_rows_is_told(tmp_path, folders, text):
    file = tmp_path / "rows.jsonl"
    file.write_text(text)
    result = carry(str(file), *folders)
    assert (result.code, result.out) == (2, "")
    assert f"{file}:1: got no row, expected lines of" in result.err


def test_numbers_that_are_no_lines_are_named(tmp_path, folders):
    rows = ({**ROW, "start": 1.5}, {**ROW, "end": float("nan")})
    result = carry(rows_file(tmp_path, *rows), *folders)
    assert (result.code, result.out) == (2, "")
    assert ":1: got 1.5 as 'start', expected the number of a line" in result.err
    assert ":2: got nan as 'end', expected the number of a line" in result.err


def test_a_folder_without_files_is_no_tree(tmp_path, folders):
    bare = tmp_path / "bare"
    (bare / ".git").mkdir(parents=True)
    result = carry(rows_file(tmp_path, ROW), folders[0], str(bare))
    assert (result.code, result.out) == (2, "")
    assert f"got the folder {bare} without a file, expected code" in result.err


def test_an_id_of_two_rows_is_said_and_both_are_answered(tmp_path, folders):
    result = carry(rows_file(tmp_path, ROW, ROW, {**ROW, "id": 1}), *folders)
    assert result.code == 0
    assert "1 id of more than one row: got 'one', expected an id of its" in result.err
    assert len(result.out.splitlines()) == 3


@pytest.mark.parametrize(
    ("old", "code", "said"),
    [
        ("nowhere", 2, "expected a folder, or a git directory"),
        ("{tmp}/old@v9", 1, "has no commit called 'v9'"),
        ("{tmp}/old@--upload-pack=x", 1, "has no commit called '--upload-pack=x'"),
    ],
)
def test_a_tree_that_is_not_there_is_one_line(tmp_path, folders, old, code, said):
    file = rows_file(tmp_path, ROW)
    result = carry(file, old.format(tmp=tmp_path), folders[1])
    assert (result.code, result.out) == (code, "")
    assert len(result.err.splitlines()) == 1
    assert said in result.err


def test_a_file_of_rows_that_cannot_be_read_is_one_line(tmp_path, folders):
    for name in ("missing.jsonl", "."):
        result = carry(str(tmp_path / name), *folders)
        assert result.code == 2
        assert len(result.err.splitlines()) == 1


def test_links_lead_nowhere(tmp_path, folders):
    (tmp_path / "secret").write_text("line one\nline two\n")
    (tmp_path / "old" / "pkg" / "link.py").symlink_to(tmp_path / "secret")
    row = {"id": 1, "path": "pkg/link.py", "start": 1, "end": 2}
    result = carry(rows_file(tmp_path, row), *folders)
    assert json.loads(result.out)["reason"] == "the old tree has no such file"


@pytest.mark.parametrize("option", ["--apply", "--keep", "--all", "--json"])
def test_an_option_for_notes_is_named(tmp_path, folders, option):
    old, new = folders
    words = ("--spans", rows_file(tmp_path, ROW), "--from", old, "--to", new)
    result = run_typed("drift", *words, option, stdin="")
    assert (result.code, result.out) == (2, "")
    assert f"{option} is for notes: leave it out with --spans" in result.err


def test_rows_onto_a_full_disk_are_one_message(tmp_path, folders):
    old, new = folders
    typed = (*READERKIT, "drift", "--spans", rows_file(tmp_path, ROW))
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            (*typed, "--from", old, "--to", new),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert (
        done.stderr == "readerkit: cannot write the output: No space left on device\n"
    )


def test_many_spans_over_many_files_take_seconds(tmp_path):
    steps = [
        f"def step_{n}(self, value):\n    total = value * {n}\n"
        f"    if total > {n + 3}:\n        return self.at_{n}\n    return total\n\n\n"
        for n in range(60)
    ]
    body = "".join(steps)
    old = {f"pkg/m{n}.py": body.replace("step", f"walk{n}") for n in range(100)}
    new = {p: "import os\n" + t.replace("value * 7\n", "7\n") for p, t in old.items()}
    folders = [
        str(write_files(tmp_path / name, files))
        for name, files in (("old", old), ("new", new))
    ]
    rows = [
        {"id": n, "path": f"pkg/m{n % 100}.py", "start": 7 * (n // 100) + 1,
         "end": 7 * (n // 100) + 5}
        for n in range(1000)
    ]  # fmt: skip
    before, begun = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    result = carry(rows_file(tmp_path, *rows), *folders)
    after = resource.getrusage(resource.RUSAGE_SELF)
    answers = [json.loads(line) for line in result.out.splitlines()]
    assert [a["start"] - r["start"] for a, r in zip(answers, rows, strict=True)] == (
        [1] * 1000
    )
    spent = after.ru_utime - before.ru_utime
    assert spent < 10, f"{spent:.1f} s of {time.monotonic() - begun:.1f}"
