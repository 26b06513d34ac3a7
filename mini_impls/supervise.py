"""How ranks are watched and ended: no rank outlives the run, no run a rank's failure.

`wait` returns what the ranks returned, or says who failed first. It waits for a rank
that may be stuck, stopped or gone, and which signals cannot always reach.
"""

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from torch.distributed.elastic.multiprocessing import PContext, SignalException

from mini_impls import failures
from mini_impls.failures import RankFailedError
from readerkit.system.children import left_to_parent
from readerkit.system.status import Status

PR_SET_PDEATHSIG = 1
"""Linux prctl: the signal that the kernel sends when the parent dies."""

TYPED = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
"""What a terminal sends to everyone in its foreground: ^C, ^\\, and that it closes."""

END_S = 10.0
"""How long, beyond the timeout, ranks may take to leave once all work is done."""


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel end this process when its parent ends, even by SIGKILL."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:  # it died before the line above
        os._exit(1)


@contextmanager
def ending_once() -> Iterator[Callable[[], None]]:
    """Let a signal that would end this process raise SignalException in it, once.

    What is ignored stays so, unless it was left to whoever started this process: what
    is sent to the launcher alone is meant for it. Nobody is told twice: whoever ends a
    whole group (a shell, a terminal that closes) tells the launcher and those it
    answers to, who tell it again, and that must not cut its end short. Nor is it told,
    as elastic would, while ranks are started: those that were there already would be
    nobody's. What came meanwhile is raised by what is yielded. (Blocking signals would
    not do: a thread of a library takes them.)
    """
    before = {s: signal.getsignal(s) for s in (*TYPED, signal.SIGTERM)}
    left = left_to_parent()
    heeded = [s for s, h in before.items() if h is not signal.SIG_IGN or s in left]
    told: list[signal.Signals] = []
    are_known = False

    def end(signum: int, frame: object) -> None:
        # Not SIG_IGN from here on: of a signal that came before that Python complains.
        told.append(signal.Signals(signum))
        if are_known and len(told) == 1:
            raise SignalException("told to end", sigval=told[0])

    def ranks_are_known() -> None:
        nonlocal are_known
        are_known = True
        if told:
            raise SignalException("told to end", sigval=told[0])

    for each in heeded:
        signal.signal(each, end)
    try:
        yield ranks_are_known
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def wait(ranks: PContext, run_dir: Path, timeout_s: float) -> list[Any]:
    """Return what each rank returned, in their order.

    Raises:
        RankFailedError: a rank that raised, died, left early, stays, or stands still.
    """
    children = {child.pid: child for child in multiprocessing.active_children()}
    processes = {rank: children.get(pid) for rank, pid in ranks.pids().items()}
    watched = _Watched(processes, run_dir, timeout_s)
    # Elastic waits without limit for processes whose work is done, so not here.
    over, stayed = threading.Event(), list[int]()
    threading.Thread(
        target=_end_those_that_stay, args=(watched, over, stayed), daemon=True
    ).start()
    status = Status()
    try:
        return _wait_for_values(ranks, watched, status)
    except RankFailedError:
        if not stayed:
            raise
        which = ", ".join(map(str, stayed))
        text = f"still there {timeout_s + END_S:g} s after all work was done"
        raise RankFailedError(f"rank {which} does not end: {text}") from None
    finally:
        status.clear()
        over.set()


@dataclass(slots=True)
class _Watched:
    """The ranks as the launcher sees them: as processes, and by what they leave."""

    processes: Mapping[int, BaseProcess | None]
    run_dir: Path
    timeout_s: float
    _stopped_since: dict[int, float] = field(default_factory=dict)

    def is_done(self, rank: int) -> bool:
        """Tell whether the work of a rank has returned."""
        return (self.run_dir / f"{rank}.done").exists()

    def ended_early(self) -> dict[int, int]:
        """Return the exit codes of those that ended before their work was done."""
        return {
            rank: process.exitcode
            for rank, process in self.processes.items()
            if process is not None and process.exitcode is not None
            if not self.is_done(rank)
        }

    def stopped(self) -> dict[int, float]:
        """Return since when which ranks are stopped, as far as it was looked at."""
        now = time.monotonic()
        self._stopped_since = {
            rank: self._stopped_since.get(rank, now)
            for rank, process in self.processes.items()
            if process is not None and failures.is_stopped(process.pid)
        }
        return self._stopped_since


def _end_those_that_stay(
    watched: _Watched, over: threading.Event, stayed: list[int]
) -> None:
    """Kill the ranks that outlive the work of all, as a thread of their own can."""
    while not all(map(watched.is_done, watched.processes)):
        if over.wait(0.2):
            return
    if over.wait(watched.timeout_s + END_S):
        return
    alive = {
        rank: process
        for rank, process in watched.processes.items()
        if process is not None and process.is_alive()
    }
    stayed += alive
    for process in alive.values():
        process.kill()


def _wait_for_values(ranks: PContext, watched: _Watched, status: Status) -> list[Any]:
    world_size, run_dir = len(watched.processes), watched.run_dir
    up = 0
    while True:
        if up < world_size:
            up = len(list(run_dir.glob("*.stack")))
            status.show(f"starting on {os.cpu_count()} cores, ranks up", up, world_size)
            if up == world_size:
                status.show("1 rank is up" if up == 1 else f"{up} ranks are up")
        # Before elastic looks: it tells of one rank only, and not of one that left with
        # status 0 before the work was done.
        if codes := watched.ended_early():
            stopped = [*watched.stopped()]  # before all of them are ended
            ranks.close(signal.SIGTERM, timeout=2)
            raise failures.explain(run_dir, world_size, codes, stopped)
        if any(run_dir.glob("*.error")):  # that rank is about to leave
            time.sleep(0.05)
            continue
        for rank, since in watched.stopped().items():
            if time.monotonic() - since > watched.timeout_s:
                ranks.close(signal.SIGKILL, timeout=2)
                raise RankFailedError(
                    f"rank {rank} failed first: a signal stopped it, and it did not go "
                    f"on for {watched.timeout_s:g} s",
                    hung=True,
                    missing=[rank],
                )
        # Not once a rank has failed: this ends the others, and waits 30 s for one that
        # does not take SIGTERM.
        result = ranks.wait(timeout=0)
        if result is not None and not result.is_failed():
            return [result.return_values[r] for r in range(world_size)]
        if result is not None:
            codes = {r: f.exitcode for r, f in result.failures.items()}
            raise failures.explain(run_dir, world_size, codes, [*watched.stopped()])
        time.sleep(0.05)
