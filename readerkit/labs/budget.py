"""Lab 00: prices looked up, a worst case that fits, and a guard that refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from readerkit.budget import BudgetGuard, Job, Price, show_usd
from readerkit.budget.money import MAX_AGE_DAYS
from readerkit.errors import OVER_CEILING, BudgetError, CeilingError, ContentError
from readerkit.labs.lab import ChecklistItem
from readerkit.wording.numbers import counted

if TYPE_CHECKING:
    from readerkit.content.strict_yaml import YamlFile

MIN_VENDORS = 3
PREFLIGHT = ("ends_by_itself", "set_up_minutes", "data_out", "keys", "smallest_first")
_SHAPE = {"vendors": list, "plan": dict, "refused": str, "preflight": dict}


def read_hand_in(document: YamlFile) -> Mapping[str, Any]:
    """Return a hand-in whose parts are of the right kind.

    Raises:
        ContentError: every part that is not as the lab's page shows it.
    """
    value = document.value
    if document.faults:
        raise ContentError(document.faults)
    if not isinstance(value, dict) or value.keys() != _SHAPE.keys():
        got = ", ".join(value) if isinstance(value, dict) else "no such keys"
        expected = ", ".join(_SHAPE)
        raise ContentError([document.fault((), "not a hand-in", got, expected)])
    wrong = [
        document.fault((key,), key, type(value[key]).__name__, kind.__name__)
        for key, kind in _SHAPE.items()
        if not isinstance(value[key], kind)
    ]
    if wrong:
        raise ContentError(wrong)
    return value


def check_budget(
    hand_in: Mapping[str, Any], guard: BudgetGuard, today: date
) -> list[ChecklistItem]:
    """Return the checklist of lab 00 for a hand-in; the guard itself is asked."""
    return [
        _vendors(hand_in["vendors"], today),
        _plan(hand_in["plan"], hand_in["vendors"], guard, today),
        _refusal(guard, today),
        ChecklistItem.of(
            "what the guard said to a plan beyond the ceiling, written down",
            OVER_CEILING in hand_in["refused"],
            " ".join(hand_in["refused"].split())[:120] or "nothing",
        ),
        _preflight(hand_in["preflight"]),
    ]


def _vendors(rows: Sequence[Any], today: date) -> ChecklistItem:
    what = f"{MIN_VENDORS} vendors, each price with its source, {MAX_AGE_DAYS} days old"
    names, wrong = set(), []
    for number, row in enumerate(rows, 1):
        try:
            price = Price.parse(
                {
                    "vendor": str(row["vendor"]).lower(),
                    "gpu": str(row["gpu"]).lower(),
                    "kind": "on-demand",
                    "usd_per_hour": str(row["usd_per_hour"]),
                    "dated": str(row["date"]),
                    "source": str(row["source"]),
                }
            )
            age = price.age_days(today)
            if not price.source.strip():
                wrong.append(f"row {number}: no source")
            elif age > MAX_AGE_DAYS:
                wrong.append(f"row {number}: {age} days old")
            else:
                names.add(price.vendor)
        except (BudgetError, KeyError, TypeError) as error:
            said = f"no {error}" if isinstance(error, KeyError) else str(error)
            wrong.append(f"row {number}: {said}")
    evidence = "; ".join([counted(len(names), "vendor"), *wrong[:2]])
    return ChecklistItem.of(what, len(names) >= MIN_VENDORS and not wrong, evidence)


def _plan(
    plan: Mapping[str, Any], rows: Sequence[Any], guard: BudgetGuard, today: date
) -> ChecklistItem:
    what = "a plan at a price of the table, whose worst case fits under the ceilings"
    seen = [str(row.get("usd_per_hour")) for row in rows if isinstance(row, dict)]
    if str(plan.get("usd_per_hour")) not in seen:
        got = plan.get("usd_per_hour")
        return ChecklistItem.of(what, False, f"{got} an hour is no price of the table")
    try:
        job = _job(
            today, str(plan["usd_per_hour"]), plan["instances"], str(plan["hours"])
        )
        guard.check(job)
    except BudgetError as error:
        return ChecklistItem.of(what, False, str(error))
    except (KeyError, TypeError) as error:
        return ChecklistItem.of(what, False, f"instances, usd_per_hour, hours: {error}")
    return ChecklistItem.of(what, True, f"{show_usd(job.cost_cents)} at worst")


def _refusal(guard: BudgetGuard, today: date) -> ChecklistItem:
    what = "the guard refuses a plan beyond the ceilings"
    try:
        guard.check(_job(today, "100", 100, "100"))
    except BudgetError as error:
        said = str(error).splitlines()[0]
        return ChecklistItem.of(what, isinstance(error, CeilingError), said)
    return ChecklistItem.of(what, False, "it let $1,000,000 pass")


def _job(today: date, usd_per_hour: str, instances: Any, hours: str) -> Job:
    price = Price.parse(
        {
            "vendor": "plan",
            "gpu": "gpu",
            "kind": "on-demand",
            "usd_per_hour": usd_per_hour,
            "dated": today.isoformat(),
            "source": "hand-in",
        }
    )
    return Job.parse(price, instances=instances, hours=hours, lab="00")


def _preflight(answers: Mapping[str, Any]) -> ChecklistItem:
    # A word is no answer; the minutes are a number.
    missing = [
        name
        for name in PREFLIGHT
        if len(str(answers.get(name) or "").split()) < (1 if "minutes" in name else 2)
    ]
    return ChecklistItem.of(
        "every line of the pre-flight list answered",
        not missing,
        f"missing: {', '.join(missing)}" if missing else f"{len(PREFLIGHT)} lines",
    )
