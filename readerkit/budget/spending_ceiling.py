"""What may be spent, what was reserved of it, and the room that is left."""

from __future__ import annotations

from dataclasses import dataclass

from readerkit.budget.money import Job, show_usd
from readerkit.errors import OVER_CEILING, CeilingError


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What may be spent, in cents: in the phase, and in each of its labs."""

    phase: str = "35"
    phase_cents: int = 500
    lab_cents: int = 300
    raised_because: str | None = None
    """Why a ceiling is above the default; without a reason none is."""

    @property
    def are_raised(self) -> bool:
        """Whether more may be spent than by default."""
        default = Ceilings()
        return (
            self.phase_cents > default.phase_cents or self.lab_cents > default.lab_cents
        )


@dataclass(frozen=True, slots=True)
class Reservation:
    """One reservation, and what became of it."""

    id: int
    lab: str | None
    what: str
    command: str
    price_source: str
    price_dated: str
    limit_seconds: int
    reserved_cents: int
    reserved_at: str
    actual_cents: int | None
    """None: not settled; the whole reservation counts."""
    seconds: float | None
    exit_code: int | None
    settled_at: str | None
    note: str | None

    @property
    def counted_cents(self) -> int:
        """What it takes of a ceiling."""
        return self.reserved_cents if self.actual_cents is None else self.actual_cents


@dataclass(frozen=True, slots=True)
class Room:
    """What a ceiling leaves; the tighter of two rules."""

    name: str
    ceiling_cents: int
    counted_cents: int

    @property
    def left_cents(self) -> int:
        """What may still be reserved; below zero where a run cost more than planned."""
        return self.ceiling_cents - self.counted_cents


def check_room(job: Job, tightest: Room) -> None:
    """Raise where a job costs more than a ceiling leaves.

    Raises:
        CeilingError: it does; the ceiling is named.
    """
    if job.cost_cents <= tightest.left_cents:
        return
    raise CeilingError(
        f"{OVER_CEILING} of {tightest.name}: got a cost of "
        f"{show_usd(job.cost_cents)}, expected at most "
        f"{show_usd(max(0, tightest.left_cents))} "
        f"({show_usd(tightest.ceiling_cents)}, of which "
        f"{show_usd(tightest.counted_cents)} are spent or reserved)"
    )
