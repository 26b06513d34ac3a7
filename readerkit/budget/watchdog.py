"""Runs a command for a limited time: ``main`` reads SECONDS GRACE AFTER -- COMMAND.

It is a process of its own, so that the limit holds even when the guard that started it
is killed. It ends with the command's code, 128 + n for a signal, or 124 at the limit.
``AFTER``, where there is one, is run when the command is over, however that came.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from readerkit.system.children import adopt_orphans

TIMED_OUT = 124
NOT_STARTED = 127
AFTER_TRIES = 3
AFTER_SECONDS = 120.0


class _Asked(BaseException):
    """Someone asked the watchdog to end."""


def _ask(number: int, frame: FrameType | None) -> None:
    raise _Asked


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing; unlike SIG_IGN, that is not inherited by what is run after."""


def _on_signals(handler: Callable[[int, FrameType | None], None]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, handler)


def run_limited(
    command: Sequence[str], limit: float, grace: float, after: Sequence[str] = ()
) -> int:
    """Run a command no longer than ``limit`` seconds and return its exit code.

    It is asked to end ``grace`` seconds before, and killed with all its children then.
    """
    started = time.monotonic()
    adopt_orphans()
    # One that comes while the command starts waits until there is something to end.
    early: list[int] = []
    _on_signals(lambda number, frame: early.append(number))
    grace = min(grace, limit / 2)
    try:
        process = subprocess.Popen(command, start_new_session=True)
    except OSError as error:
        print(f"cannot start '{command[0]}': {error.strerror}", file=sys.stderr)
        return NOT_STARTED
    try:
        _on_signals(_ask)
        if early:
            raise _Asked
        code = process.wait(max(0.0, started + limit - grace - time.monotonic()))
        code = code if code >= 0 else 128 - code
    except subprocess.TimeoutExpired:
        _end(process, grace)
        code = TIMED_OUT
    except _Asked:
        _end(process, grace)
        code = 128 + signal.SIGTERM
    _on_signals(_ignore)  # what is left is short, and must be done
    _kill_all(process)  # children that it left behind
    if after:
        _run_after(after)
        _kill_all(process)
    return code


def _end(process: subprocess.Popen[bytes], grace: float) -> None:
    """Ask a command and its children to end, then make it."""
    with contextlib.suppress(_Asked):
        _signal_all(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace)
    _signal_all(process, signal.SIGKILL)
    process.wait()


def _run_after(after: Sequence[str]) -> None:
    for _ in range(AFTER_TRIES):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            if not subprocess.run(after, timeout=AFTER_SECONDS, check=False).returncode:
                return
    print(
        f"'{' '.join(after)}' failed {AFTER_TRIES} times: what it ends may still cost "
        "money; run it yourself, now",
        file=sys.stderr,
    )


# --- every descendant, also one that left for a session of its own ---


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name before it is in brackets, and may hold anything.
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                children.setdefault(int(parent), []).append(int(path.parent.name))
    found, wanted = [], [os.getpid()]
    while wanted:
        of_one = children.get(wanted.pop(), [])
        found += of_one
        wanted += of_one
    return found


def _signal_all(process: subprocess.Popen[bytes], number: int) -> None:
    # The command leads a session of its own, so its id is its group's.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
    for child in _descendants():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(child, number)


def _kill_all(process: subprocess.Popen[bytes]) -> None:
    """Kill until nothing is left: one that was forking may have missed a round."""
    deadline = time.monotonic() + 5
    _signal_all(process, signal.SIGKILL)
    while _descendants() and time.monotonic() < deadline:
        _signal_all(process, signal.SIGKILL)
        time.sleep(0.01)


def main() -> int:
    """Run the command that follows limit, grace, what is for after it, and ``--``."""
    end = sys.argv.index("--")
    limit, grace, *after = sys.argv[1:end]
    return run_limited(sys.argv[end + 1 :], float(limit), float(grace), after)
