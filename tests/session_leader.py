"""The shell of a terminal: one job in its foreground, with job control as a shell has.

Run as ``session_leader.py CONTROL REPORT COMMAND...`` in a session of its own, with the
terminal on stdin. Told "fg" on the descriptor CONTROL it continues a stopped job; on
REPORT it says, a JSON object a line, that the job started, each stop, and how it ended.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

CONTROL, REPORT = map(int, sys.argv[1:3])
PR_SET_CHILD_SUBREAPER = 36
GONE_S = 60.0
"""What processes that were told to end may take on a crowded machine."""
FOR_JOBS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTOU)
"""What a shell ignores, so that it can always take the terminal back."""


def report(**what: object) -> None:
    os.write(REPORT, json.dumps(what).encode() + b"\n")


def become_foreground() -> None:
    """Between fork and exec: the job, in a group of its own, takes the terminal."""
    os.tcsetpgrp(0, os.getpid())
    for signum in (*FOR_JOBS, signal.SIGHUP):
        signal.signal(signum, signal.SIG_DFL)


def wait_for(pid: int) -> int:
    """Return the exit code of the job, negative for a signal, once it has ended."""
    while True:
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            return os.waitstatus_to_exitcode(status)
        with contextlib.suppress(OSError):  # hung up: there is no terminal to take
            os.tcsetpgrp(0, os.getpgrp())
        report(stopped=signal.Signals(os.WSTOPSIG(status)).name)
        if os.read(CONTROL, 16):
            os.tcsetpgrp(0, pid)
        os.killpg(pid, signal.SIGCONT)
        report(continued=pid)


def left_behind() -> list[str]:
    """Return the command lines of what outlived the job; all of it comes to us."""
    deadline = time.monotonic() + GONE_S
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.02)
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
        return [command(pid) for pid in children.split()]
    return []


def command(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return pid


def main() -> None:
    for descriptor in (CONTROL, REPORT):
        os.set_inheritable(descriptor, False)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    for signum in FOR_JOBS:
        signal.signal(signum, signal.SIG_IGN)
    before = termios.tcgetattr(0)
    job = subprocess.Popen(sys.argv[3:], process_group=0, preexec_fn=become_foreground)

    def hang_up(signum: int, frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGHUP)
            os.killpg(job.pid, signal.SIGCONT)

    signal.signal(signal.SIGHUP, hang_up)
    report(started=job.pid)
    code = wait_for(job.pid)
    try:
        tidy = termios.tcgetattr(0) == before
    except termios.error:  # hung up
        tidy = True
    report(ended=code, left=left_behind(), tidy=tidy)


if __name__ == "__main__":
    main()
