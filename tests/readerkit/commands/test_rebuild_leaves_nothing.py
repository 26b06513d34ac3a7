"""What a reader's section starts is ended with its grading, however that ends."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from readerkit.app.rebuilding import read_exercises
from tests.helpers import ROOT
from tests.processes import children, is_gone, wait_for
from tests.readerkit.commands.test_rebuild import write

pytestmark = [
    pytest.mark.sampled,
    pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux does it"),
]

MERGE = {each.key: each for each in read_exercises()}["context_parallel/merge"]
LEAVES = """\
    import os, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with open({pids!r}, "a") as file:
                print(os.getpid(), file=file)
            time.sleep(600)
        os._exit(0)
    while not os.path.exists({pids!r}):
        time.sleep(0.01)
    {then}"""
"""Has a process that is nobody's child and of no group that anybody knows."""
FAILS, HANGS = "raise ValueError('enough')", "time.sleep(600)"


def left(pids):
    """Return the processes that the section has left so far."""
    return [*map(int, pids.read_text().split())] if pids.exists() else []


@contextmanager
def grading(tmp_path, then):
    """Grade a section that leaves processes; yield the command and where they are."""
    (tmp_path / "tmp").mkdir(exist_ok=True)
    path, pids = tmp_path / MERGE.at.file.rpartition("/")[2], tmp_path / "pids"
    write(path, MERGE, LEAVES.format(pids=str(pids), then=then))
    words = ["rebuild", MERGE.mini, MERGE.name, "--file", str(path)]
    with subprocess.Popen(
        [sys.executable, "-m", "readerkit", *words],
        cwd=ROOT,
        env={
            **os.environ,
            "READERKIT_DATA": str(tmp_path / "data"),
            "TMPDIR": str(tmp_path / "tmp"),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        try:
            yield command, pids
        finally:
            command.kill()
            for pid in left(pids):
                if not is_gone(pid):
                    os.kill(pid, signal.SIGKILL)


def test_what_a_section_leaves_behind_is_ended_with_its_grading(tmp_path):
    with grading(tmp_path, FAILS) as (command, pids):
        out, _ = command.communicate(timeout=120)
        assert (command.returncode, "ValueError: enough" in out) == (1, True)
        assert left(pids) and all(map(is_gone, left(pids)))


@pytest.mark.further
def test_folders_of_a_killed_grading_are_cleared_by_the_next_one(tmp_path):
    def folders():
        return [*(tmp_path / "tmp").glob("*[!.]-*")]

    with grading(tmp_path, HANGS) as (command, pids):
        wait_for(lambda: left(pids), 120)
        grader = the_grader(command)
        for pid in (grader, command.pid):
            os.kill(pid, signal.SIGKILL)
        command.wait()
        assert {f.name.rpartition("-")[0] for f in folders()} == {
            "mini-impls",
            "readerkit-rebuild",
        }
        wait_for(lambda: is_gone(grader), 60)
    with grading(tmp_path, FAILS) as (command, _):
        command.communicate(timeout=120)
    assert folders() == []


def the_command(command):
    return command.pid


def the_grader(command):
    return children(command.pid)[1]


@pytest.mark.parametrize(
    ("whom", "signum", "status"),
    [
        pytest.param(the_command, signal.SIGTERM, 143, id="command ended"),
        pytest.param(the_command, signal.SIGKILL, -9, id="command killed"),
        pytest.param(the_grader, signal.SIGKILL, 137, id="grader killed"),
        pytest.param(the_command, signal.SIGINT, 130, id="^C on the command"),
    ],
)
@pytest.mark.further
def test_what_a_section_leaves_behind_is_ended_when_its_grading_is(
    tmp_path, whom, signum, status
):
    with grading(tmp_path, HANGS) as (command, pids):
        wait_for(lambda: left(pids), 120)
        os.kill(whom(command), signum)
        command.communicate(timeout=60)
        assert command.returncode == status
        wait_for(lambda: all(map(is_gone, left(pids))), 60)
