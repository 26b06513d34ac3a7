"""The ledger as a file: the phase's spend record, for people or line by line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from readerkit.budget import Ceilings, Reservation, show_usd
from readerkit.wording.next_command import written


def as_json_lines(entries: Sequence[Reservation]) -> str:
    """Return one JSON object a line, oldest first."""
    return "".join(json.dumps(asdict(entry)) + "\n" for entry in entries)


def as_markdown(entries: Sequence[Reservation], ceilings: Ceilings, spent: int) -> str:
    """Return the record as a page with one table."""
    raised = ceilings.raised_because
    rows = [
        f"# Cloud spend, phase {ceilings.phase}",
        "",
        f"Spent or reserved: {show_usd(spent)} of {show_usd(ceilings.phase_cents)}; a "
        f"lab may cost {show_usd(ceilings.lab_cents)}. Written by "
        f"`{written('budget', 'ledger', '--export')}` from the ledger; a "
        "reservation that is not settled counts in full."
        + (f" The ceilings were raised: {_cell(raised)}" if raised else ""),
        "",
        "| id | reserved at (UTC) | lab | what | command | reserved | actual | seconds "
        "| exit | price of | note |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for entry in entries:
        actual = "open" if entry.actual_cents is None else show_usd(entry.actual_cents)
        cells = [
            str(entry.id),
            entry.reserved_at[:16],
            entry.lab or "",
            entry.what,
            f"`{entry.command}`",
            show_usd(entry.reserved_cents),
            actual,
            "" if entry.seconds is None else f"{entry.seconds:.0f}",
            "" if entry.exit_code is None else str(entry.exit_code),
            entry.price_dated,
            entry.note or "",
        ]
        rows.append("| " + " | ".join(map(_cell, cells)) + " |")
    return "\n".join([*rows, ""])


def _cell(text: str) -> str:
    """Return text that stays inside its cell."""
    return " ".join(text.split()).replace("|", "\\|")
