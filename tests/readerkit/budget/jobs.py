"""Jobs of a given cost, and a ledger to hold them."""

from datetime import UTC, datetime
from pathlib import Path

from readerkit.budget import Ceilings, Job, Ledger, Price


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
