"""Temporary folders: none of a process that is gone stays, none of another is taken."""

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from readerkit.system.temporary import LOCK, clear_left, temporary_folder
from tests.helpers import ROOT

HOLDS = """
import os, sys, time
from readerkit.system.temporary import temporary_folder
with temporary_folder("held-") as name:
    if sys.argv[1:] and not os.fork():
        time.sleep(600)  # as a rank does, which has what its launcher had open
    print(name, os.getpid(), flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def holding(*more):
    """Start a process that has a folder; return it, and the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, *more],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().split()[0])


def end(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_the_folder_of_a_killed_process_is_cleared_by_the_next_one(tmp_path):
    process, left = holding()
    (left / "below").mkdir()
    end(process)
    assert left.is_dir()
    with temporary_folder("held-") as name:
        assert [*tmp_path.iterdir()] == [Path(name)]
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("more", [(), ("forks",)])
def test_the_folder_of_a_process_that_lives_is_left_alone(more):
    process, held = holding(*more)
    try:
        if more:  # the launcher is gone, and a rank of it is not yet
            process.kill()
            process.wait()
        clear_left("held-")
        assert held.is_dir()
    finally:
        end(process)


def test_what_is_no_such_folder_is_left_alone(tmp_path):
    (tmp_path / "held-by-an-earlier-version").mkdir()
    (tmp_path / "held-file").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / LOCK).touch()
    clear_left("held-")
    assert len([*tmp_path.iterdir()]) == 3


def test_many_at_once_take_nothing_from_one_another(tmp_path):
    def use(number):
        with temporary_folder("held-") as name:
            file = Path(name, "mine")
            file.write_text(str(number))
            os.sched_yield()
            return file.read_text() == str(number)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(400)))
    assert not [*tmp_path.iterdir()]


def test_one_that_was_taken_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    flock, made = fcntl.flock, []

    def late(descriptor, how):
        if how == fcntl.LOCK_EX and not made:
            made.extend(tmp_path.iterdir())
            clear_left("held-")
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with temporary_folder("held-") as name:
        assert Path(name).is_dir() and [Path(name)] != made
        assert [*tmp_path.iterdir()] == [Path(name)]
