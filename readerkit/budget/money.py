"""Prices and jobs: whole cents, exact fractions, and the worst case rounded up."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from math import ceil
from typing import Any

from readerkit.errors import JobError

MAX_AGE_DAYS = 30
MAX_USD = 1_000_000
_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


def parse_decimal(name: str, text: str) -> Fraction:
    """Return an amount above zero from its decimal digits, exactly.

    Raises:
        JobError: NaN, infinity, a sign, an exponent, zero, or no number.
    """
    if not _DECIMAL.fullmatch(text.strip()):
        raise JobError(
            f"{name}: got {text!r}, expected a decimal above zero, such as 0.35"
        )
    amount = Fraction(text.strip())
    if not 0 < amount <= MAX_USD:
        raise JobError(f"{name}: got {text}, expected more than 0, at most {MAX_USD}")
    return amount


def parse_usd(name: str, text: str, *, or_zero: bool = False) -> int:
    """Return whole cents from dollars such as ``5`` or ``0.35``.

    Raises:
        JobError: no amount above zero (or zero, where that will do), or one with
            a part of a cent.
    """
    digits = text.strip().removeprefix("$")
    if or_zero:
        if not _DECIMAL.fullmatch(digits):
            raise JobError(
                f"{name}: got {text!r}, expected dollars, 0 or more, such as 0.80"
            )
        if Fraction(digits) == 0:
            return 0
    cents = parse_decimal(name, digits) * 100
    if cents.denominator != 1:
        raise JobError(f"{name}: got {text}, expected whole cents")
    return cents.numerator


def show_usd(cents: int) -> str:
    """Return cents as dollars."""
    sign = "-" if cents < 0 else ""
    return f"{sign}${abs(cents) // 100:,}.{abs(cents) % 100:02}"


@dataclass(frozen=True, slots=True)
class Price:
    """What one GPU costs for an hour, seen on a day at a place."""

    vendor: str
    gpu: str
    kind: str
    usd_per_hour: Fraction
    dated: date
    source: str
    cloud: str = ""
    """``community`` or ``secure``, where the vendor tells them apart."""
    unconfirmed: bool = False
    """Whether one source alone says so."""

    @property
    def terms(self) -> str:
        """How it is rented: ``on-demand, secure``."""
        return ", ".join(filter(None, (self.kind, self.cloud)))

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Price:
        """Return a price from its entry in a file.

        Raises:
            JobError: a price of zero or less, or a day that there is not.
        """
        name = f"price of {values['gpu']} at {values['vendor']}"
        try:
            day = date.fromisoformat(str(values["dated"]))
        except ValueError:
            raise JobError(
                f"{name}: got the date '{values['dated']}', expected YYYY-MM-DD"
            ) from None
        return cls(
            str(values["vendor"]),
            str(values["gpu"]),
            str(values["kind"]),
            parse_decimal(name, str(values["usd_per_hour"])),
            day,
            "; ".join(filter(None, (str(values["source"]), values.get("also")))),
            str(values.get("cloud") or ""),
            bool(values.get("unconfirmed")),
        )

    def age_days(self, today: date) -> int:
        """Return how old the price is.

        Raises:
            JobError: it is from the future.
        """
        days = (today - self.dated).days
        if days < 0:
            raise JobError(
                f"price of {self.gpu} at {self.vendor}: got the date {self.dated}, "
                f"expected one up to today, {today}"
            )
        return days


def find_price(
    prices: Sequence[Price], *, vendor: str, gpu: str, kind: str, cloud: str = ""
) -> Price:
    """Return the newest price of a GPU at a vendor; of several, the highest.

    Raises:
        JobError: there is none; the message names those there are.
    """
    found = [
        price
        for price in prices
        if (price.vendor, price.gpu, price.kind) == (vendor, gpu, kind)
        and cloud in ("", price.cloud)
    ]
    if found:
        return max(found, key=lambda price: (price.dated, price.usd_per_hour))
    known = ", ".join(sorted({f"{p.vendor} {p.gpu} {p.terms}" for p in prices}))
    raise JobError(
        f"no price: got {vendor} {gpu} {kind}, expected one of {known or 'none'}; add "
        "it to a file with its date and source, and name that with --prices"
    )


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be rented, for how long, and what it is for."""

    price: Price
    instances: int
    """How many GPUs at that price."""
    hours: Fraction
    """All that is paid for, set-up included; the command is ended after it."""
    setup_hours: Fraction = Fraction(0)
    lab: str | None = None

    @classmethod
    def parse(
        cls,
        price: Price,
        *,
        instances: int,
        hours: str,
        setup_hours: str = "0",
        lab: str | None = None,
    ) -> Job:
        """Return a job whose numbers can be.

        Raises:
            JobError: no instances, no hours, or a set-up longer than all of them.
        """
        if isinstance(instances, bool) or not 1 <= instances <= 10_000:
            raise JobError(f"instances: got {instances}, expected 1 to 10,000")
        whole = parse_decimal("hours", hours)
        setup = Fraction(0)
        if setup_hours.strip("0.") or not setup_hours.strip():
            setup = parse_decimal("setup hours", setup_hours)
        if whole > 24 * 30:
            raise JobError(f"hours: got {hours}, expected at most 720")
        if setup >= whole:
            raise JobError(
                f"setup hours: got {setup_hours}, expected less than all {hours} "
                "hours, which include it"
            )
        if lab is not None and not re.fullmatch(r"[A-Za-z0-9_-]{1,20}", lab):
            raise JobError(f"lab: got {lab!r}, expected a short name, such as 02")
        return cls(price, instances, whole, setup, lab)

    @property
    def cents_per_hour(self) -> Fraction:
        """What all instances cost for an hour, exactly."""
        return self.price.usd_per_hour * 100 * self.instances

    @property
    def cost_cents(self) -> int:
        """The worst case: every hour of every instance, rounded up to a cent."""
        return ceil(self.cents_per_hour * self.hours)

    @property
    def limit_seconds(self) -> int:
        """The time that the cost was computed for."""
        return int(self.hours * 3600)

    def cents_for(self, seconds: float) -> int:
        """Return the price of so many seconds, rounded up to a cent."""
        return ceil(self.cents_per_hour * Fraction(max(0.0, seconds)) / 3600)

    def sentence(self) -> str:
        """Return the planned spending as one sentence."""
        each = self.price.usd_per_hour
        setup = f" (set-up: {float(self.setup_hours):g} h)" if self.setup_hours else ""
        return (
            f"This will rent {self.instances} × {self.price.gpu} ({self.price.terms}) "
            f"at {self.price.vendor} for {_rate(each)} each = "
            f"{_rate(self.cents_per_hour / 100)}, for {float(self.hours):g} h"
            f"{setup} = {show_usd(self.cost_cents)} at worst."
        )


def _rate(usd: Fraction) -> str:
    """Return dollars an hour, with more than cents only where there is more."""
    digits = 2 if (usd * 100).denominator == 1 else 4
    return f"${float(usd):.{digits}f}/h"
