"""A mini as a process: whose help it is, and how it ends when it is told to."""

from __future__ import annotations

import getpass
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import click
import pytest

from readerkit.app.mini_names import SAYS
from tests.helpers import WAIT_S, run, run_on_terminal, run_process
from tests.processes import children, is_gone, wait_for
from tests.readerkit.commands.test_annotate import shell


def descendants(pid: int) -> list[int]:
    """Return the processes below one that are still there (Linux)."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # no process, or one that ended meanwhile
            continue
        if int(stat[1]) == pid:
            found += [int(folder.name), *descendants(int(folder.name))]
    return found


def still_there(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def command_line(pid: int) -> bytes:
    with suppress(OSError):  # it ended meanwhile
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


WITH_TORCH = pytest.mark.parametrize(
    "mini", [pytest.param("ddp", marks=pytest.mark.slow), "schedules"]
)


@WITH_TORCH
def test_help_with_a_mini_is_the_help_of_that_mini(mini):
    done = run_process("run", mini, "--help")
    assert (done.code, done.err) == (0, "")
    assert "--world" in done.out and "--book" not in done.out
    assert run_process("run", "--help", mini).out == done.out


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("run", "schedules"), id="run schedules"),
        pytest.param(("run", "ddp"), id="run ddp", marks=pytest.mark.slow),
        pytest.param(("compare", "ddp"), id="compare ddp", marks=pytest.mark.slow),
    ],
)
def test_help_of_a_mini_reads_as_that_of_every_command(words):
    shown = run_process(*words, "--help", environment={"COLUMNS": "80"}).out
    first, *rest = shown.split("\n")
    assert first.startswith(f"Usage: readerkit {words[0]}")
    assert "[OPTIONS]" in first
    heads = [line for line in rest if line and not line.startswith(" ")]
    assert {"Options:"} <= {*heads} <= {"Options:", "Arguments:", "Comparisons:"}
    assert "Show this message and exit." in shown


def test_help_without_a_mini_is_the_help_of_the_command(capsys):
    assert "--world" in run(capsys, "run", "--help").out


def test_run_without_a_mini_lists_the_minis(capsys):
    done = run(capsys, "run")
    assert (done.code, done.err) == (0, "")
    assert {line.split()[0] for line in done.out.splitlines()[1:]} == {*SAYS}


@WITH_TORCH
def test_a_mistake_is_said_in_the_name_of_what_was_typed(mini):
    done = run_process("run", mini, "--nothing")
    assert done.code == 2
    assert f"readerkit run {mini}: error: unrecognized arguments: --nothing" in done.err


def test_compare_without_a_mini_lists_what_is_held_against_what(capsys):
    done = run(capsys, "compare")
    assert (done.code, done.err) == (0, "")
    rows = [line.split()[:3] for line in done.out.splitlines()]
    assert ["ddp", "--upstream", "megatron"] in rows
    assert len(rows) == len(set(map(tuple, rows))) >= 20


def test_a_mini_that_is_not_compared_is_refused_by_a_list_without_it(capsys):
    for mini in ("schedules", "nothing"):
        done = run(capsys, "compare", mini)
        assert (done.code, done.out) == (2, "")
        assert mini not in done.err.partition("expected one of")[2]
        assert "expected one of" in done.err and "tensor_parallel" in done.err


@pytest.mark.parametrize("command", ["run", "compare"])
def test_options_without_a_mini_ask_for_one(command, capsys):
    done = run(capsys, command, "--world", "0")
    assert (done.code, done.out) == (2, "")
    assert "name a MINI before --world: one of " in done.err and "ddp" in done.err


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "words",
    [
        ("readerkit", "run", "ddp"),
        pytest.param(("mini_impls.ddp",), marks=pytest.mark.further),
        pytest.param(("readerkit", "compare", "ddp"), marks=pytest.mark.further),
    ],
    ids=" ".join,
)
@pytest.mark.further
def test_interrupt_of_the_launcher_alone_ends_every_rank(words, tmp_path, real_cache):
    with subprocess.Popen(
        [sys.executable, "-m", *words, "--steps", "10000"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        launcher = process.pid
        if words[0] == "readerkit":
            (launcher,) = wait_for(lambda: children(process.pid)[1:], WAIT_S)[:1]
        # Its tracker of shared memory, and two ranks.
        wait_for(lambda: len(children(launcher)) == 4, WAIT_S)
        pids = children(process.pid)
        os.kill(launcher, signal.SIGINT)
        _, err = process.communicate(timeout=WAIT_S)
    assert (process.returncode, err) == (130, b"")
    wait_for(lambda: all(map(is_gone, pids)), WAIT_S)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("signum", "code"),
    [
        (signal.SIGINT, 130),
        pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.slow),
    ],
)
def test_signal_ends_every_rank_and_leaves_no_file(signum, code, tmp_path):
    (tmp_path / "tmp").mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "readerkit", "run", "ddp", "--steps", "10000"],
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        # The launcher, its tracker of shared memory, two ranks, their start.
        deadline = time.monotonic() + 60
        while len(pids := descendants(process.pid)) < 4:
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.1)
        process.send_signal(signum)
        _, err = process.communicate(timeout=WAIT_S)
    said = {
        signal.SIGINT: b"\nreaderkit: interrupted\n",
        signal.SIGTERM: b"readerkit: ended by SIGTERM\n",
        signal.SIGHUP: b"",
    }[signum]
    assert (process.returncode, err) == (code, said)
    deadline = time.monotonic() + 60
    while still_there(pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    # Torch's import makes an empty folder for what it compiles, one for all programs.
    left = {path.name for path in (tmp_path / "tmp").rglob("*")}
    assert left <= {f"torchinductor_{getpass.getuser()}"}


@pytest.mark.further
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("words", "when"),
    [
        (("run", "recover", "--steps", "60"), b"elastic step 2"),
        (("compare", "checkpoint", "--steps", "60"), b""),
    ],
)
def test_signal_leaves_no_folder_of_workers_or_checkpoints(words, when, tmp_path):
    (folder := tmp_path / "tmp").mkdir()
    env = {**os.environ, "TMPDIR": str(folder)}
    command = [sys.executable, "-m", "readerkit", *words]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if when:
            while when not in process.stdout.readline():
                assert process.poll() is None
        else:  # it is in its steps once ranks have written something
            deadline = time.monotonic() + 60
            while not [*folder.rglob("*checkpoint-*")]:
                assert time.monotonic() < deadline and process.poll() is None
                time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=WAIT_S)
    assert process.returncode == 143
    left = {path.name for path in folder.iterdir()}
    assert left <= {f"torchinductor_{getpass.getuser()}"}


@pytest.mark.slow
@pytest.mark.skipif((os.cpu_count() or 1) > 4, reason="too many ranks for a test")
def test_ranks_are_told_of_on_a_terminal_from_their_start_until_they_are_up():
    world = (os.cpu_count() or 1) + 1
    arguments = ("run", "ddp", "--world", str(world), "--steps", "1")
    shown = run_on_terminal(80, *arguments)
    drawn = filter(None, re.split(r"[\r\n]+", click.unstyle(shown)))
    told = list(dict.fromkeys(text.partition(":")[0] for text in drawn))
    # Forked ranks are up at once: what takes seconds is imported before, for all.
    starting = f"starting {world} ranks on {os.cpu_count()} cores"
    assert told[:2] == ["readerkit run ddp", starting]
    # The count is gone from its line before the mini says its first word.
    assert re.search(rf"{world} ranks are up\S*\r(.*\r)?\x1b\[Jstep 0", shown)


STUCK = """
import os, signal, sys
import readerkit.terminal.processes as processes
processes.END_S = 0.5
heeds_nothing = (
    "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "os.kill(os.getppid(), signal.SIGTERM); time.sleep(3600)"
)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
processes.run_to_its_end([sys.executable, "-c", heeds_nothing], "x", sys.argv[1])
"""


@pytest.mark.parametrize("doing", ["", "starting"])
def test_a_process_that_does_not_heed_its_end_is_killed(doing):
    done = subprocess.run(
        [sys.executable, "-c", STUCK, doing], timeout=WAIT_S, check=False
    )
    assert done.returncode == 143


PRINTING = pytest.mark.parametrize(
    "words",
    [
        "break",
        "run schedules",
        pytest.param("run ddp --steps 2", marks=pytest.mark.slow),
        pytest.param("break ddp no-sync --predict 3", marks=pytest.mark.slow),
        pytest.param("compare ddp --steps 6", marks=pytest.mark.slow),
    ],
)


@PRINTING
def test_what_nobody_reads_to_the_end_ends_quietly(words, real_cache):
    done = shell(f"readerkit {words} | true")
    assert (done.returncode, done.stderr) == (0, "")


@PRINTING
def test_output_that_is_full_is_said(words, real_cache):
    done = shell(f"readerkit {words} >/dev/full")
    assert done.returncode == 1
    assert "cannot write the output: No space left on device\n" in done.stderr


@pytest.mark.parametrize(
    ("signum", "why"),
    [
        (
            signal.SIGKILL,
            ": by hand, by code that it ran, or where memory is short",
        ),
        (signal.SIGSEGV, ""),
    ],
)
def test_what_a_signal_ended_is_said(signum, why, real_cache):
    with subprocess.Popen(
        [sys.executable, "-m", "readerkit", "compare", "ddp"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:

        def training():
            each = [pid for pid in descendants(process.pid) if not is_gone(pid)]
            return [p for p in each if b"mini_impls.compare" in command_line(p)]

        os.kill(wait_for(training, WAIT_S)[0], signum)
        out, err = process.communicate(timeout=WAIT_S)
    said = f"readerkit compare: its process was ended by {signum.name}{why}"
    assert (process.returncode, out) == (128 + signum, "")
    assert err.splitlines()[-1] == said
