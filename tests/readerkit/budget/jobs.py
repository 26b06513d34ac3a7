"""Jobs of a given cost, a ledger to hold them, and work that does not end by itself."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from readerkit.budget import Ceilings, Job, Ledger, Price
from tests.terminals import WAIT_S


def job(cents: int, lab: str | None = None, hours: str = "1") -> Job:
    """Return a job that costs so many cents, at a price of today."""
    price = Price.parse(
        {
            "vendor": "here",
            "gpu": "none",
            "kind": "spot",
            "usd_per_hour": f"{cents // 100}.{cents % 100:02}",
            "dated": datetime.now(UTC).date().isoformat(),
            "source": "a test",
        }
    )
    return Job.parse(price, instances=1, hours=hours, lab=lab)


def new_ledger(
    folder: Path, *, raised_because: str | None = None, **ceilings: int
) -> Ledger:
    ledger = Ledger(folder / "budget.sqlite", lock_wait=0.3)
    ledger.create(Ceilings(raised_because=raised_because, **ceilings))
    return ledger


def lasting(pid: Path) -> str:
    """Return a command that runs on, and says in a file which process it is."""
    return f"sh -c 'echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 600'"


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for something that is sure to come, however crowded the machine is."""
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def has_ended(pid: Path) -> bool:
    """Return whether such a command is gone, or was never begun."""
    try:
        stat = Path(f"/proc/{int(pid.read_text())}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"
