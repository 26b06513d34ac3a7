"""The guard: reserve the worst case, run the command within its time, record it."""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from math import isfinite
from types import FrameType

from readerkit.budget.cloud import Launch, check_task, read_launch
from readerkit.budget.ledger import Ledger
from readerkit.budget.money import MAX_AGE_DAYS, Job
from readerkit.budget.running_entries import hold, release
from readerkit.errors import BudgetError, JobError
from readerkit.system.children import python

GRACE_SECONDS = 10.0
"""Between asking a command to end and ending it; inside the time that was paid for."""

DOWN_SECONDS = 180.0
"""For taking a rented machine down; inside the time that was paid for."""

TIMED_OUT = 124
"""The watchdog's exit code at the limit."""

_BILL = "the machine's cost is known from the vendor's bill alone"
_WATCH = "import sys; from readerkit.budget.watchdog import main; sys.exit(main())"

Step = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a run cost, and how it ended."""

    entry: int
    reserved_cents: int
    actual_cents: int | None
    """None: a rented machine, whose whole reservation counts until it is settled."""
    seconds: float
    exit_code: int
    """Of the command; 128 + n: signal n ended it; 124: the time limit."""
    timed_out: bool
    note: str | None = None


class BudgetGuard:
    """The one way to start what costs money, from the command line and from scripts.

    >>> guard = BudgetGuard(Ledger(path))                   # doctest: +SKIP
    >>> guard.run(job, ["sky", "launch", "-c", "lab", "task.yaml"])  # doctest: +SKIP
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        today: date | None = None,
        on_step: Step | None = None,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        """Guard with a ledger.

        ``on_step`` is told of ``checked``, ``reserved``, ``started``, ``ended`` and
        ``settled`` as each has happened.
        """
        if not isfinite(grace_seconds) or grace_seconds < 0:
            raise JobError(f"grace: got {grace_seconds} s, expected 0 or more")
        self.ledger = ledger
        self._today = today
        self._tell: Step = on_step or (lambda step: None)
        self._grace = grace_seconds

    def check(self, job: Job) -> None:
        """Raise where a job must not start; nothing is reserved.

        Raises:
            BudgetError: a price too old to be used unseen, a cost over a ceiling, or
                a ledger that cannot say.
        """
        today = self._today or datetime.now(UTC).date()
        days = job.price.age_days(today)
        if days > MAX_AGE_DAYS:
            raise BudgetError(
                f"price of {job.price.gpu} at {job.price.vendor}: got one of "
                f"{job.price.dated}, {days} days old, expected at most {MAX_AGE_DAYS}; "
                "look it up and give today's: --confirm-price 0.35"
            )
        if job.price.unconfirmed:
            raise BudgetError(
                f"price of {job.price.gpu} at {job.price.vendor}: got one that only "
                f"{job.price.source} tells, expected a second source; look it up and "
                "give today's: --confirm-price 0.35"
            )
        self.ledger.check(job)

    def run(self, job: Job, command: Sequence[str]) -> Receipt:
        """Reserve the cost, run the command for no longer than it was priced, settle.

        A command that outlasts its time is asked to end, then killed with all of its
        children, so that it is over when the time is; that holds even when this process
        is killed. The reservation then stays until someone settles it. So it does after
        ``sky launch``, whose cluster is taken down when the command is over; SIGTERM,
        SIGHUP and SIGQUIT end the job, and the receipt says so.

        Raises:
            BudgetError: the job must not start, there is no such command, or its task
                would rent something else than the job says.
        """
        launch = _launch_of(command, job)
        self.check(job)
        self._tell("checked")
        entry = self.ledger.reserve(job, shlex.join(command))
        self._tell("reserved")
        started = time.monotonic()
        limit, after = _limit(job, launch), [] if launch is None else launch.down
        times = [repr(limit), repr(self._grace)]
        watched = python("-c", _WATCH, *times, *after, "--", *command)
        # The watchdog holds it too: a killed guard does not make the run look ended.
        held = hold(self.ledger.path, entry)
        note = None
        with _heed() as heeded:
            process = subprocess.Popen(watched, start_new_session=True, pass_fds=[held])
            self._tell("started")
            try:
                heeded.wait(process)
                note = heeded.note
            except BaseException:
                # Interrupted: what costs money must not go on behind our back.
                process.terminate()
                process.wait()
                note = "interrupted"
                raise
            finally:
                release(self.ledger.path, entry, held)
                self._tell("ended")
                seconds = time.monotonic() - started
                near = seconds >= limit - min(self._grace, limit / 2)
                code = process.returncode
                timed_out = code == TIMED_OUT and near
                receipt = Receipt(
                    entry=entry,
                    reserved_cents=job.cost_cents,
                    actual_cents=job.cents_for(seconds) if launch is None else None,
                    seconds=seconds,
                    exit_code=code if code >= 0 else 128 - code,
                    timed_out=timed_out,
                    note="ended at its time limit" if timed_out else note,
                )
                self._record(receipt)
            self._tell("settled")
        return receipt

    def _record(self, receipt: Receipt) -> None:
        seconds = round(receipt.seconds, 3)
        if receipt.actual_cents is None:
            said = "; ".join(filter(None, [receipt.note, _BILL]))
            self.ledger.leave_open(
                receipt.entry, seconds=seconds, exit_code=receipt.exit_code, note=said
            )
            return
        self.ledger.settle(
            receipt.entry,
            receipt.actual_cents,
            seconds=seconds,
            exit_code=receipt.exit_code,
            note=receipt.note,
        )


def _launch_of(command: Sequence[str], job: Job) -> Launch | None:
    """Return what a command rents; None: it is no launch.

    Raises:
        BudgetError: no such command, or one that rents something else than the job.
    """
    if not command:
        raise JobError("command: got none, expected what to run after --")
    if shutil.which(command[0]) is None:
        raise JobError(
            f"command: got '{command[0]}', expected a program that can be found; "
            "nothing was reserved"
        )
    launch = read_launch(command)
    if launch is not None:
        check_task(launch, job)
    return launch


def _limit(job: Job, launch: Launch | None) -> float:
    """Return the seconds of a command: a machine goes inside the time paid for."""
    limit = float(job.limit_seconds)
    return limit if launch is None else max(limit / 2, limit - DOWN_SECONDS)


class _Heeded:
    """The signals that came, which end the job rather than this process."""

    def __init__(self) -> None:
        self.note: str | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def take(self, number: int, frame: FrameType | None) -> None:
        self.note = f"ended by {signal.Signals(number).name}"
        if self._process is not None:
            self._process.terminate()

    def wait(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        if self.note is not None:  # it came before there was a process
            process.terminate()
        process.wait()


@contextmanager
def _heed() -> Iterator[_Heeded]:
    heeded = _Heeded()
    if threading.current_thread() is not threading.main_thread():
        yield heeded  # only the main thread may take signals
        return
    ends = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    # Under nohup the job goes on when the terminal closes.
    taken = [n for n in ends if signal.getsignal(n) is not signal.SIG_IGN]
    before = {n: signal.signal(n, heeded.take) for n in taken}
    try:
        yield heeded
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
