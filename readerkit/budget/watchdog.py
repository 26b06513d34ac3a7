"""Runs one command for a limited time: ``main`` reads SECONDS GRACE -- COMMAND.

It is a process of its own, so that the limit holds even when the guard that started it
is killed. It ends with the command's code, 128 + n for a signal, or 124 at the limit.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType

TIMED_OUT = 124
NOT_STARTED = 127


class _Asked(BaseException):
    """Someone asked the watchdog to end."""


def _ask(number: int, frame: FrameType | None) -> None:
    raise _Asked


def run_limited(command: Sequence[str], limit: float, grace: float) -> int:
    """Run a command no longer than ``limit`` seconds and return its exit code.

    It is asked to end ``grace`` seconds before, and killed with all its children then.
    """
    started = time.monotonic()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _ask)
    grace = min(grace, limit / 2)
    try:
        process = subprocess.Popen(command, start_new_session=True)
    except OSError as error:
        print(f"cannot start '{command[0]}': {error.strerror}", file=sys.stderr)
        return NOT_STARTED
    try:
        code = process.wait(max(0.0, started + limit - grace - time.monotonic()))
    except subprocess.TimeoutExpired:
        _end(process, grace)
        return TIMED_OUT
    except _Asked:
        _end(process, grace)
        return 128 + signal.SIGTERM
    _kill_group(process, signal.SIGKILL)  # children that it left behind
    return code if code >= 0 else 128 - code


def _end(process: subprocess.Popen[bytes], grace: float) -> None:
    """Ask a command and its children to end, then make them."""
    with contextlib.suppress(_Asked):
        _kill_group(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace)
    _kill_group(process, signal.SIGKILL)
    process.wait()


def _kill_group(process: subprocess.Popen[bytes], number: int) -> None:
    # The command leads a session of its own, so its id is its group's.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def main() -> int:
    """Run the command that follows limit, grace and ``--`` on the command line."""
    limit, grace, _, *command = sys.argv[1:]
    return run_limited(command, float(limit), float(grace))
