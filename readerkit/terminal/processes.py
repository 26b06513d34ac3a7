"""Processes that share the terminal with a command: minis, labs, editors, pagers.

They stay in the command's process group, so that they may ask at the terminal, and ^Z
and fg reach all of it at once.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

from readerkit.system.children import LEFT, end_with_parent, ending_all
from readerkit.system.status import STARTED, Status

_TYPED = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
"""What a terminal sends to everyone in its foreground: ^C, ^\\, and that it closes."""
_ENDING = (*_TYPED, signal.SIGTERM)
END_S = 30.0
"""How long a process that was told to end may take to clear up behind itself."""


def run_to_its_end(
    arguments: Sequence[str], command: str, doing: str = "", *, ends_all: bool = False
) -> int:
    """Run a process to its end, and return its exit code.

    ``doing`` is what it does before it can say anything by itself. With ``ends_all``
    what it has started is ended with it, even what has left its parents.

    What a terminal sends to end a group is answered here alone: an interrupt in the
    middle of importing torch prints a traceback. `command` is what was typed, for the
    messages of the process. It is told by SIGTERM and waited for, while it ends its
    ranks and takes its files away; what has not ended after END_S is killed.
    """
    process: subprocess.Popen[bytes] | None = None
    told: list[int] = []

    def end(signum: int, _: object) -> None:
        told.append(signum)
        if process is not None:
            _tell_to_end(process)

    def kill(signum: int, _: object) -> None:
        if process is not None:
            process.kill()

    # What we were started to ignore (by nohup, by `&` in a script) stays ignored.
    heeded = [s for s in _ENDING if signal.getsignal(s) is not signal.SIG_IGN]
    before = {signum: signal.signal(signum, end) for signum in heeded}
    before[signal.SIGALRM] = signal.signal(signal.SIGALRM, kill)
    speaks, started = os.pipe()
    told_by = {STARTED: str(started)} if doing else {}
    told_by[LEFT] = " ".join(str(int(s)) for s in heeded if s in _TYPED)
    try:
        with ending_all() if ends_all else nullcontext():
            process = subprocess.Popen(
                arguments,
                env={**os.environ, "READERKIT_COMMAND": command, **told_by},
                pass_fds=[started],
                preexec_fn=_prepare,
            )
            os.close(started)
            if told:
                _tell_to_end(process)
            if doing:
                with Status().waiting(doing, clears=False):
                    os.read(speaks, 1)  # until nobody holds the other end
            code = process.wait()
    finally:
        os.close(speaks)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for name, handler in before.items():
            signal.signal(name, handler)
    if told and (code or told[0] == signal.SIGINT):
        signal.raise_signal(told[0])  # the command ends as it does without a process
    return code


def _tell_to_end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.send_signal(signal.SIGCONT)  # one that somebody stopped hears it too
    # No thread: one that is being started when a signal comes holds the lock for it.
    signal.setitimer(signal.ITIMER_REAL, END_S)


def _prepare() -> None:
    """Between fork and exec: leave the terminal's signals to the command.

    A process that is ready for them may heed them then: LEFT names them.
    It must not outlive the command either, even where that is killed: the kernel ends
    it then, and it ends its ranks, as the launcher has the kernel do if it is killed.
    """
    for signum in _TYPED:
        signal.signal(signum, signal.SIG_IGN)
    end_with_parent(signal.SIGTERM)


@contextmanager
def lent_terminal() -> Iterator[list[int]]:
    """Leave ^C and ^\\ to what runs inside, an editor or a pager: keys are theirs.

    Yields the signals that came nevertheless, which were not heeded here.
    """
    came: list[int] = []
    # A handler, and not SIG_IGN, which the editor would inherit.
    keys = [s for s in _TYPED[:2] if signal.getsignal(s) is not signal.SIG_IGN]
    before = {s: signal.signal(s, lambda number, _: came.append(number)) for s in keys}
    try:
        yield came
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
