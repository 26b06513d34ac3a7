"""The guard: reserve the worst case, run the command within its time, record it."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from math import isfinite

from readerkit.budget.ledger import Ledger
from readerkit.budget.money import MAX_AGE_DAYS, Job
from readerkit.errors import BudgetError

GRACE_SECONDS = 10.0
"""Between asking a command to end and ending it; inside the time that was paid for."""

TIMED_OUT = 124
"""The watchdog's exit code at the limit."""

_WATCH = "import sys; from readerkit.budget.watchdog import main; sys.exit(main())"

Step = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a run cost, and how it ended."""

    entry: int
    reserved_cents: int
    actual_cents: int
    seconds: float
    exit_code: int
    """Of the command; 128 + n: signal n ended it; 124: the time limit."""
    timed_out: bool


class BudgetGuard:
    """The one way to start what costs money, from the command line and from scripts.

    >>> guard = BudgetGuard(Ledger(path))                   # doctest: +SKIP
    >>> guard.run(job, ["sky", "launch", "task.yaml"])      # doctest: +SKIP
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
            raise BudgetError(f"grace: got {grace_seconds} s, expected 0 or more")
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
        self.ledger.check(job)

    def run(self, job: Job, command: Sequence[str]) -> Receipt:
        """Reserve the cost, run the command for no longer than it was priced, settle.

        A command that outlasts its time is asked to end, then killed with all of its
        children, so that it is over when the time is; that holds even when this process
        is killed. The reservation then stays until someone settles it.

        Raises:
            BudgetError: the job must not start, or there is no such command.
        """
        if not command:
            raise BudgetError("command: got none, expected what to run after --")
        if shutil.which(command[0]) is None:
            raise BudgetError(
                f"command: got '{command[0]}', expected a program that can be found; "
                "nothing was reserved"
            )
        self.check(job)
        self._tell("checked")
        entry = self.ledger.reserve(job, shlex.join(command))
        self._tell("reserved")
        started = time.monotonic()
        times = [repr(float(job.limit_seconds)), repr(float(self._grace))]
        watched = [sys.executable, "-c", _WATCH, *times, "--", *command]
        # The watchdog holds it too: a killed guard does not make the run look ended.
        held = self.ledger.hold(entry)
        process = subprocess.Popen(watched, start_new_session=True, pass_fds=[held])
        self._tell("started")
        note = None
        try:
            process.wait()
        except BaseException:
            # Interrupted: what costs money must not go on behind our back.
            process.terminate()
            process.wait()
            note = "interrupted"
            raise
        finally:
            self.ledger.release(entry, held)
            self._tell("ended")
            receipt = self._settle(job, entry, process, started, note)
        self._tell("settled")
        return receipt

    def _settle(
        self,
        job: Job,
        entry: int,
        process: subprocess.Popen[bytes],
        started: float,
        note: str | None,
    ) -> Receipt:
        seconds = time.monotonic() - started
        near_end = seconds >= job.limit_seconds - min(
            self._grace, job.limit_seconds / 2
        )
        timed_out = process.returncode == TIMED_OUT and near_end
        actual = job.cents_for(seconds)
        self.ledger.settle(
            entry,
            actual,
            seconds=round(seconds, 3),
            exit_code=process.returncode,
            note="ended at its time limit" if timed_out else note,
        )
        return Receipt(
            entry=entry,
            reserved_cents=job.cost_cents,
            actual_cents=actual,
            seconds=seconds,
            exit_code=process.returncode,
            timed_out=timed_out,
        )
