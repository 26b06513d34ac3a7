"""Processes that are watched to their end, and of which nothing is left over.

Each has a session of its own, so that no terminal and no shell reaches it: whoever
starts them ends them. What they start in turn is ended behind them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from readerkit.system.children import end_with_parent

_LIBC = ctypes.CDLL(None)
PR_SET_CHILD_SUBREAPER = 36
"""Linux prctl: what its children leave behind becomes this process's child."""
GRACE_S = 3.0
"""How long others may go on once one has failed, and one that was told to end."""
MAX_OUTPUT_BYTES = 16 * 2**20
"""Of one file: a program that prints for ever ends there."""
_STEP_S = 0.02


@dataclass(frozen=True, slots=True)
class Process:
    """What to start, and where its output goes."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    output: Path
    errors: Path


@dataclass(slots=True)
class Ended:
    """How processes ended."""

    codes: list[int] = field(default_factory=list)
    """Exit codes in the order of the processes; negative: the signal that ended it."""
    first: int | None = None
    """The one that failed first."""
    late: tuple[int, ...] = ()
    """Those that had not ended in time."""
    left_over: int = 0
    """Processes that they had started and did not end."""


def run_together(each: Sequence[Process], folder: Path, timeout_s: float) -> Ended:
    """Run processes in a folder until all have ended, one has failed, or time is up.

    Whatever happens, an interrupt among it, nothing that they started is left running.
    """
    started: list[subprocess.Popen[bytes]] = []
    ended = Ended()
    with _reaping() as leftovers:
        try:
            started += [_start(process, folder) for process in each]
            _watch(started, ended, timeout_s)
            ended.left_over = len([*leftovers({p.pid for p in started})])
        finally:
            for process in started:
                _kill(process)
            _kill_all(leftovers)
    ended.codes = [process.returncode for process in started]
    return ended


def _start(process: Process, folder: Path) -> subprocess.Popen[bytes]:
    def prepare() -> None:
        end_with_parent()
        most = MAX_OUTPUT_BYTES
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with process.output.open("wb") as output, process.errors.open("wb") as errors:
        return subprocess.Popen(
            process.arguments,
            env=dict(process.environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
            preexec_fn=prepare,
        )


def _watch(
    started: Sequence[subprocess.Popen[bytes]], ended: Ended, timeout_s: float
) -> None:
    """Wait for all of them; once one has failed, not for long."""
    until = time.monotonic() + timeout_s
    while None in [process.poll() for process in started]:
        failed = next((n for n, p in enumerate(started) if p.returncode), None)
        if failed is not None and ended.first is None:
            ended.first = failed
            until = min(until, time.monotonic() + GRACE_S)
        if time.monotonic() > until:
            late = [n for n, p in enumerate(started) if p.returncode is None]
            if ended.first is None:
                ended.late = tuple(late)
            for number in late:  # each says where it stands
                started[number].terminate()
            _wait_for(started, GRACE_S)
            return
        time.sleep(_STEP_S)
    if ended.first is None:
        ended.first = next((n for n, p in enumerate(started) if p.returncode), None)


def _wait_for(started: Sequence[subprocess.Popen[bytes]], seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and None in [p.poll() for p in started]:
        time.sleep(_STEP_S)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and its group: its own session has no other."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def _reaping() -> Iterator[_Leftovers]:
    """Have what children leave behind come here, where the kernel can do that."""
    if sys.platform != "linux":
        yield _Leftovers(frozenset())
        return
    _LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield _Leftovers(frozenset(_children()))
    finally:
        _LIBC.prctl(PR_SET_CHILD_SUBREAPER, 0)


@dataclass(frozen=True, slots=True)
class _Leftovers:
    """The running children of this process that were not there before."""

    before: frozenset[int]

    def __call__(self, known: set[int]) -> Iterator[int]:
        if sys.platform == "linux":
            for pid in _children():
                if pid not in self.before and pid not in known:
                    yield pid


def _children() -> Iterator[int]:
    """Yield the children of this process that have not ended."""
    own = str(os.getpid())
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                stat = (folder / "stat").read_text().rpartition(")")[2].split()
                if stat[1] == own and stat[0] != "Z":
                    yield int(folder.name)


def _kill_all(leftovers: _Leftovers) -> None:
    """End what was left over, and what that leaves over in turn."""
    until = time.monotonic() + GRACE_S
    while time.monotonic() < until:
        found = [*leftovers(set())]
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not found:
            return
        time.sleep(_STEP_S)
