"""``readerkit budget``: what a job costs at worst, running it, and the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from readerkit.commands.job_options import job_options
from readerkit.commands.options import json_option
from readerkit.terminal.as_json import print_json
from readerkit.terminal.folded import tell
from readerkit.terminal.group import NamingGroup
from readerkit.wording.next_command import typed

if TYPE_CHECKING:
    from readerkit.budget import Ceilings, Job, Reservation

DEFAULT_RECORD = Path("experiments") / "35-cloud-budget.md"


@click.group(
    cls=NamingGroup, short_help="Nothing that costs money starts past its ceiling."
)
def budget() -> None:
    """Price a job, run it under a ceiling and a time limit, and keep the ledger.

    Ceilings are $5 for the phase and $3 for a lab, or less where the ledger was made
    so; higher ones need a recorded reason. The tighter one rules.

    \b
    Example:
        readerkit budget ledger --create
        readerkit budget estimate --gpu rtx-4090 --instances 2 --hours 3 --lab 02 \\
            --confirm-price 0.35
        readerkit lab 02 --task > lab-02.yaml
        readerkit budget run --gpu rtx-4090 --instances 2 --hours 1 --lab 02 \\
            --confirm-price 0.35 -- sky launch -c lab-02 --yes --down lab-02.yaml
        readerkit budget ledger --export
    """


def _today() -> date:
    return datetime.now(UTC).date()


def _take_job(given: dict[str, Any]) -> Job:
    """Return the job that the options describe, with a price that is not too old."""
    from dataclasses import replace

    from readerkit.app.catalog import load_prices
    from readerkit.app.own_rows import OwnRows
    from readerkit.budget import Job
    from readerkit.budget.money import MAX_AGE_DAYS, find_price, parse_decimal

    price = find_price(
        load_prices(given["prices"], OwnRows()),
        vendor=given["vendor"],
        gpu=given["gpu"],
        kind=given["kind"],
        cloud=given["cloud"] or "",
    )
    confirmed, old = given["confirm_price"], price.age_days(_today()) > MAX_AGE_DAYS
    if confirmed is None and (old or price.unconfirmed) and _is_terminal():
        why = "too old" if old else "unconfirmed"
        confirmed = click.prompt(
            f"The price of {price.dated} is {why} (${float(price.usd_per_hour):g}/h, "
            f"{price.source}).\nDollars that {price.gpu} costs for an hour today",
            err=True,
        )
    if confirmed is not None:
        price = replace(
            price,
            usd_per_hour=parse_decimal("confirmed price", confirmed.removeprefix("$")),
            dated=_today(),
            source="confirmed by hand",
            unconfirmed=False,
        )
    return Job.parse(
        price,
        instances=given["instances"],
        hours=given["hours"],
        setup_hours=given["setup_hours"],
        lab=given["lab"],
    )


def _is_terminal() -> bool:
    import sys

    return sys.stdin.isatty() and sys.stderr.isatty()


@budget.command(short_help="What a job costs at worst, and what is left after it.")
@job_options
@json_option
def estimate(as_json: bool, **given: Any) -> None:
    """Print the sentence that every paid job begins with; exit 1 where it must not.

    \b
    Example:
        readerkit budget estimate --gpu rtx-4090 --instances 2 --hours 3 --lab 02 \\
            --confirm-price 0.35
    """
    from readerkit.app.folders import open_ledger
    from readerkit.budget import BudgetGuard, show_usd

    job, ledger = _take_job(given), open_ledger()
    BudgetGuard(ledger).check(job)
    rooms = ledger.rooms(job.lab)
    if as_json:
        print_json(
            {
                "cost_cents": job.cost_cents,
                "limit_seconds": job.limit_seconds,
                "sentence": job.sentence(),
                "price_dated": job.price.dated.isoformat(),
                "price_source": job.price.source,
                "ceilings": [
                    {
                        "name": room.name,
                        "ceiling_cents": room.ceiling_cents,
                        "left_cents": room.left_cents,
                        "left_after_cents": room.left_cents - job.cost_cents,
                    }
                    for room in rooms
                ],
            }
        )
        return
    tell(job.sentence())
    for place, room in enumerate(rooms):
        rules = (
            " (the tighter one, which rules)" if place == 0 and len(rooms) > 1 else ""
        )
        tell(
            f"Ceiling of {room.name}: {show_usd(room.ceiling_cents)}, of which "
            f"{show_usd(room.left_cents)} are left; after it "
            f"{show_usd(room.left_cents - job.cost_cents)}{rules}."
        )
    tell(f"Price of {job.price.dated}, from {job.price.source}.")


@budget.command(
    short_help="Reserve a job's cost, run it within its time, record what it was.",
)
@job_options
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(command: tuple[str, ...], **given: Any) -> None:
    """Run COMMAND, which is what costs money, if its worst case fits the ceilings.

    It is ended when the hours are over. The exit code is the command's; 124 at the
    limit. A task of sky launch must rent what the options say; its cluster is taken
    down when the command ends, three minutes before the hours are over at the latest,
    and all of the reservation counts until you settle what was billed.

    \b
    Example:
        readerkit lab 02 --task > lab-02.yaml
        readerkit budget run --gpu rtx-4090 --instances 2 --hours 1 --lab 02 \\
            --confirm-price 0.35 -- sky launch -c lab-02 --yes --down lab-02.yaml
    """
    from readerkit.app.folders import open_ledger
    from readerkit.app.library import warn
    from readerkit.budget import BudgetGuard, show_usd

    job = _take_job(given)
    receipt = BudgetGuard(open_ledger()).run(job, command)
    how = receipt.note or "ended"
    said = f"entry {receipt.entry}: {how} after {receipt.seconds:.0f} s; "
    reserved = show_usd(receipt.reserved_cents)
    if receipt.actual_cents is None:
        warn(
            f"{said}all {reserved} stay reserved until you settle what was billed: "
            + typed("budget", "ledger", "--settle", str(receipt.entry), "--cost", "USD")
        )
    else:
        warn(f"{said}{show_usd(receipt.actual_cents)} of {reserved}")
    if receipt.exit_code:
        raise click.exceptions.Exit(receipt.exit_code)


@budget.command(short_help="What is reserved and spent; make, settle, export.")
@click.option("--create", is_flag=True, help="Make an empty ledger.")
@click.option("--phase-ceiling", default="5", help="Of a new ledger, in dollars (5).")
@click.option("--lab-ceiling", default="3", help="Of a new ledger, in dollars (3).")
@click.option(
    "--raise-because",
    metavar="REASON",
    help="Why a ceiling of a new ledger is above $5 and $3; it is recorded.",
)
@click.option(
    "--settle", type=int, metavar="ID", help="Record or correct what an entry cost."
)
@click.option("--cost", metavar="USD", help="What it cost; 0 where nothing started.")
@click.option("--note", help="Why, beside it.")
@click.option(
    "--export",
    is_flag=False,
    flag_value=str(DEFAULT_RECORD),
    type=click.Path(path_type=Path),
    help=f"Write the spend record: a .md (default {DEFAULT_RECORD}), a .jsonl, or a "
    "folder for spend.jsonl.",
)
@json_option
def ledger(
    create: bool,
    phase_ceiling: str,
    lab_ceiling: str,
    raise_because: str | None,
    settle: int | None,
    cost: str | None,
    note: str | None,
    export: Path | None,
    as_json: bool,
) -> None:
    """Show the ledger, and what the ceilings leave.

    \b
    Example:
        readerkit budget ledger --create
        readerkit budget ledger
        readerkit budget ledger --settle 3 --cost 0.80 --note "killed by hand"
        readerkit budget ledger --export
    """
    from readerkit.app.folders import open_ledger
    from readerkit.budget import Ceilings, parse_usd

    if sum((create, settle is not None, export is not None)) > 1:
        raise click.UsageError("--create, --settle and --export exclude each other")
    if (settle is None) != (cost is None):
        raise click.UsageError("--settle ID and --cost USD belong together")
    book = open_ledger()
    if create:
        book.create(
            Ceilings(
                phase_cents=parse_usd("phase ceiling", phase_ceiling),
                lab_cents=parse_usd("lab ceiling", lab_ceiling),
                raised_because=raise_because,
            )
        )
        click.echo(f"made {book.path}")
        return
    if settle is not None and cost is not None:
        book.settle(settle, parse_usd("cost", cost, or_zero=True), note=note)
    entries, ceilings = book.entries(), book.ceilings()
    spent = sum(entry.counted_cents for entry in entries)
    if export is not None:
        _export(export, entries, ceilings, spent)
        return
    if as_json:
        print_json(
            {
                "path": str(book.path),
                "ceilings": asdict(ceilings),
                "counted_cents": spent,
                "left_cents": ceilings.phase_cents - spent,
                "entries": [asdict(entry) for entry in entries],
            }
        )
        return
    _print_entries(entries, ceilings, spent)


def _print_entries(
    entries: Sequence[Reservation], ceilings: Ceilings, spent: int
) -> None:
    from readerkit.budget import show_usd

    for entry in entries:
        lab = f"lab {entry.lab}, " if entry.lab else ""
        tell(
            f"{entry.id:>3}  {entry.reserved_at[:16]}  "
            f"{show_usd(entry.counted_cents):>7} of {show_usd(entry.reserved_cents)}  "
            f"{lab}{entry.what}: {_state(entry)}"
        )
        click.secho(f"     {entry.command}", dim=True)
    tell(
        f"{show_usd(spent)} of {show_usd(ceilings.phase_cents)} are spent or reserved "
        f"in phase {ceilings.phase}; {show_usd(ceilings.phase_cents - spent)} left. "
        f"A lab may cost {show_usd(ceilings.lab_cents)}."
    )
    if ceilings.raised_because:
        tell(f"The ceilings were raised: {ceilings.raised_because}")


def _state(entry: Reservation) -> str:
    """Return how far an entry is, and its note."""
    parts = [] if entry.seconds is None else [f"{entry.seconds:.0f} s"]
    if entry.actual_cents is None:
        parts.append("reserved, not settled")
    elif entry.seconds is None:
        parts.append("settled by hand")
    return "; ".join(filter(None, [*parts, entry.note]))


def _export(path: Path, entries: Sequence[Any], ceilings: Any, spent: int) -> None:
    from readerkit.budget.ledger_export import as_json_lines, as_markdown
    from readerkit.upstreams.store import write_atomically

    if path.is_dir():
        path /= "spend.jsonl"
    if path.suffix == ".jsonl":
        text = as_json_lines(entries)
    else:
        text = as_markdown(entries, ceilings, spent)
    write_atomically(path, text.encode(), private=True)
    click.echo(f"wrote {path}")
