"""How processes are started: nothing of where one stands is run, and none is left over.

A command is often run in a folder that somebody else has filled: a clone, a download.
Python imports from the working folder first, when it is asked for ``-m`` or ``-c``.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LIBC = ctypes.CDLL(None)  # not after a fork: a thread of ours may be loading, too
PR_SET_PDEATHSIG = 1
"""Linux prctl: the signal that the kernel sends when the parent dies."""
PR_SET_CHILD_SUBREAPER = 36
LEFT = "READERKIT_LEFT"
"""Names the signals that a process ignores because whoever started it heeds them."""
GONE_S = 5.0
"""How long the kernel may take to end what was killed."""


def python(*arguments: str) -> list[str]:
    """Return the command line of this Python, which imports nothing from the folder.

    What it starts in turn, such as the ranks of a mini, does not either.

    Raises:
        FileNotFoundError: the working folder is gone, where torch ends a process with
            a message of its own that does not say so.
    """
    Path.cwd()
    return [sys.executable, "-P", *arguments]


def end_with_parent(signum: int = signal.SIGKILL) -> None:
    """Between fork and exec: have the kernel end the process when this one ends."""
    if sys.platform == "linux":
        _LIBC.prctl(PR_SET_PDEATHSIG, signum)


def adopt_orphans(adopts: bool = True) -> None:
    """Become the parent of whoever below this process loses its own; Linux alone."""
    if sys.platform == "linux":
        _LIBC.prctl(PR_SET_CHILD_SUBREAPER, int(adopts))


def left_to_parent() -> frozenset[int]:
    """Return what is ignored here only so that a terminal's group is told once.

    Whoever sends such a signal to this process alone means it. What is no number was
    set by somebody else, and says nothing.
    """
    told = os.environ.get(LEFT, "").split()
    return frozenset(int(each) for each in told if each.isdecimal())


def heed_parent_alone() -> None:
    """In a process of a pool: leave what a terminal or a shell sends to the command.

    It ends the pool, or itself; a process that went before would break the pool.
    """
    for signum in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(signum, signal.SIG_IGN)
    end_with_parent()


@contextmanager
def ending_all() -> Iterator[None]:
    """End at last what was started inside, and what has left its parents meanwhile.

    For code that somebody else wrote. A process that forks twice and leaves its session
    is in no group that can be told to end, but stays below one that adopts. On Linux
    alone; two such processes, one below the other, do it even where one is killed.
    """
    if sys.platform != "linux":
        yield
        return
    ours = {*_children()}
    adopt_orphans()
    try:
        yield
    finally:
        _end_below(ours)
        adopt_orphans(False)


def _end_below(spared: Collection[int]) -> None:
    """Kill all below this process, but some children of it and what is below them.

    Again and again: whoever is killed leaves us its children, or has just forked.
    """
    deadline = time.monotonic() + GONE_S
    while time.monotonic() < deadline:
        if not (left := [pid for pid in _children() if pid not in spared]):
            return
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.01)


def _children() -> list[int]:
    """Return the children of this process, whichever of its threads they are of."""
    mine = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            # After the name, which may be anything: its state, then its parent.
            rest = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            if int(rest[1]) == os.getpid():
                mine.append(int(folder.name))
    return mine
