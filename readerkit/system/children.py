"""How processes are started: nothing of where one stands is run, and none is left over.

A command is often run in a folder that somebody else has filled: a clone, a download.
Python imports from the working folder first, when it is asked for ``-m`` or ``-c``.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from pathlib import Path

_LIBC = ctypes.CDLL(None)  # not after a fork: a thread of ours may be loading, too
PR_SET_PDEATHSIG = 1
"""Linux prctl: the signal that the kernel sends when the parent dies."""


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


def heed_parent_alone() -> None:
    """In a process of a pool: leave what a terminal or a shell sends to the command.

    It ends the pool, or itself; a process that went before would break the pool.
    """
    for signum in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(signum, signal.SIG_IGN)
    end_with_parent()
