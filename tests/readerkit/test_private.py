"""What is the reader's is nobody else's: modes under any umask, old files too."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from readerkit.budget import Ceilings, Ledger
from readerkit.quiz.history import History
from readerkit.quiz.history_rows import MIGRATIONS
from readerkit.system.private_files import make_database, make_folder, tighten
from readerkit.upstreams.store import write_atomically
from tests.helpers import make_book, run_process, write_files

pytestmark = pytest.mark.sampled

UMASKS = [0o000, 0o022, 0o027, 0o077, 0o007, 0o777]


@pytest.fixture(params=UMASKS, ids=lambda mask: f"umask-{mask:03o}")
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): f"{path.lstat().st_mode & 0o777:o}"
        for path in sorted(root.rglob("*"))
    }


def all_private(root: Path) -> bool:
    return all(
        path.lstat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)
        for path in (root, *root.rglob("*"))
    )


def test_folder_and_all_that_are_made_for_it_are_private(umask, tmp_path):
    make_folder(tmp_path / "data" / "a" / "b")
    assert modes(tmp_path) == {"data": "700", "data/a": "700", "data/a/b": "700"}


def test_file_written_is_private(umask, tmp_path):
    write_atomically(tmp_path / "data" / "file", b"mine", private=True)
    assert modes(tmp_path) == {"data": "700", "data/file": "600"}


def test_history_and_what_sqlite_keeps_beside_it_are_private(umask, tmp_path):
    history = History(tmp_path / "data" / "quiz.sqlite3")
    found = modes(tmp_path / "data")
    assert set(found) == {"quiz.sqlite3", "quiz.sqlite3-wal", "quiz.sqlite3-shm"}
    assert all_private(tmp_path / "data")
    history.close()


def test_copy_that_a_migration_keeps_is_private(umask, tmp_path):
    path = tmp_path / "data" / "quiz.sqlite3"
    History(path, MIGRATIONS).close()
    History(path, (*MIGRATIONS, "CREATE TABLE more (x)")).close()
    assert f"quiz.sqlite3.v{len(MIGRATIONS)}.bak" in modes(tmp_path / "data")
    assert all_private(tmp_path / "data")


def test_ledger_is_private(umask, tmp_path):
    ledger = Ledger(tmp_path / "data" / "budget.sqlite")
    ledger.create(Ceilings())
    assert ledger.entries() == []
    assert all_private(tmp_path / "data")


def open_history(path: Path) -> None:
    History(path).close()


def open_ledger(path: Path) -> None:
    Ledger(path).entries()


@pytest.mark.parametrize("opens", [open_history, open_ledger])
def test_existing_database_is_tightened_when_it_is_opened(opens, tmp_path):
    path = tmp_path / "data" / "file.sqlite"
    if opens is open_ledger:
        Ledger(path).create(Ceilings())
    else:
        open_history(path)
    path.chmod(0o644)
    opens(path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_log_that_a_killed_process_left_is_tightened(tmp_path):
    path = tmp_path / "data" / "quiz.sqlite3"
    open_history(path)
    with sqlite3.connect(path) as reader:
        reader.execute("SELECT count(*) FROM session").fetchone()
        for each in path.parent.iterdir():
            each.chmod(0o644)
        make_database(path)
        assert all_private(path.parent)
    reader.close()


@pytest.mark.parametrize("mask", ["022", "000"])
def test_commands_leave_the_data_folder_private(mask, tmp_path):
    book = make_book(tmp_path)
    data = tmp_path / "data"
    old = {
        "book/annotations/sample.lock": "",
        "records/x.json": "{}",
        "read.json": "[]",
    }
    write_files(data, {name: text for name, text in old.items() if name != "x"})
    (data / "book/annotations/sample.lock").unlink()
    (tmp_path / "elsewhere").write_text("another's")
    (tmp_path / "elsewhere").chmod(0o644)
    (data / "drafts").mkdir()
    (data / "drafts" / "link").symlink_to(tmp_path / "elsewhere")
    for path in (data, *data.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o777 if path.is_dir() else 0o666)
    script = (
        f"import os, sys; os.umask(0o{mask}); "
        "sys.argv = ['readerkit', *sys.argv[1:]]; "
        "from readerkit.cli import main; main(sys.argv[1:])"
    )
    commands = [
        ("annotate", "--update-lock", "--book", str(book.root)),
        ("budget", "ledger", "--create"),
        ("progress", "35", "--waive", "real_gpu", "--because", "none here"),
    ]
    for command in commands:
        subprocess.run(
            [sys.executable, "-c", script, *command], capture_output=True, check=False
        )
    kept = [path for path in (data, *data.rglob("*")) if not path.is_symlink()]
    assert (data / "budget.sqlite").is_file()
    assert {path for path in kept if path.stat().st_mode & 0o077} == set()
    assert (tmp_path / "elsewhere").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("place", ["home", "above-home", "sticky"])
def test_folder_that_holds_more_than_the_readers_things_is_left(place, tmp_path):
    folder = tmp_path / "a"
    (folder / "home").mkdir(parents=True)
    for each in (folder, folder / "home"):
        each.chmod(0o755)
    if place == "sticky":
        folder.chmod(0o1777)
    data = folder / "home" if place == "home" else folder
    home = tmp_path if place == "sticky" else folder / "home"
    before = modes(tmp_path)
    run_process(
        *("budget", "ledger"),
        environment={"READERKIT_DATA": str(data), "HOME": str(home)},
    )
    assert modes(tmp_path) == before


def pipe(path: Path) -> None:
    os.mkfifo(path)


def nothing(path: Path) -> None:
    return


@pytest.mark.parametrize("make", [pipe, nothing])
def test_tighten_waits_for_nothing_and_minds_nothing(
    make: Callable[[Path], None], tmp_path
):
    make(tmp_path / "odd")
    tighten(tmp_path / "odd")
    tighten(tmp_path)
