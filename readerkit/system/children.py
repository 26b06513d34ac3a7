"""How processes are started: nothing of where one stands is run, and none is left over.

A command is often run in a folder that somebody else has filled: a clone, a download.
Python imports from the working folder first, when it is asked for ``-m`` or ``-c``.
"""

from __future__ import annotations

import ctypes
import signal
import sys

_LIBC = ctypes.CDLL(None)  # not after a fork: a thread of ours may be loading, too
PR_SET_PDEATHSIG = 1
"""Linux prctl: the signal that the kernel sends when the parent dies."""


def python(*arguments: str) -> list[str]:
    """Return the command line of this Python, which imports nothing from the folder.

    What it starts in turn, such as the ranks of a mini, does not either.
    """
    return [sys.executable, "-P", *arguments]


def end_with_parent(signum: int = signal.SIGKILL) -> None:
    """Between fork and exec: have the kernel end the process when this one ends."""
    if sys.platform == "linux":
        _LIBC.prctl(PR_SET_PDEATHSIG, signum)
