"""The catalog as text: models, GPUs, clusters and prices, each row with its source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from textwrap import fill, indent
from typing import Any

import click

from readerkit.model.language import Say, english
from readerkit.wording.numbers import format_bytes, format_flop_rate, format_rate

Plain = Mapping[str, Any]
Cells = tuple[str, ...]
HEADS: dict[str, Cells] = {
    "models": ("model", "parameters", "active for a token"),
    "gpus": ("GPU", "memory", "peak 16-bit", "link per direction"),
    "clusters": ("cluster", "GPUs of a node", "in a node", "between, a GPU's share"),
    "prices": ("GPU", "vendor and terms", "an hour", "by two sources"),
}
"""By table: what is said of a row, its name first; source and day come last."""
_CELLS: dict[str, Callable[[Plain], Cells]] = {
    "models": lambda row: (
        f"{row['parameters']:,}",
        f"{row['active_parameters']:,}"
        if row["active_parameters"] < row["parameters"]
        else "all",
    ),
    "gpus": lambda row: (
        format_bytes(row["memory_bytes"]),
        format_flop_rate(row["flops_per_s"]),
        format_rate(row["link_bytes_per_s"]),
    ),
    "clusters": lambda row: (
        f"{row['gpus_per_node']} × {row['gpu']}",
        format_rate(row["inside_bytes_per_s"]),
        format_rate(row["between_bytes_per_s"]),
    ),
}


def listed_cells(table: str, listed: Mapping[str, Plain]) -> list[Cells]:
    """Return a row of texts for each entry, its source and day at the end."""
    return [
        (name, *_CELLS[table](row), row["source"], row["dated"] or "-")
        for name, row in listed.items()
    ]


def price_cells(prices: Sequence[Plain]) -> list[Cells]:
    """Return a row of texts for each price."""
    return [
        (
            row["gpu"],
            f"{row['vendor']}, {row['terms']}",
            f"${row['usd_per_hour']:.2f}",
            "unconfirmed: one" if row["unconfirmed"] else "yes",
            row["source"],
            row["dated"],
        )
        for row in prices
    ]


def catalog_table(
    known: Mapping[str, Mapping[str, Plain]], say: Say = english, width: int = 80
) -> Iterator[str]:
    """Yield lines of so many columns: each table under what its columns say."""
    for table, listed in known.items():
        heads = ", ".join(map(say, HEADS[table][1:]))
        yield click.style(f"{say(table)}: {heads}", bold=True)
        for name, *cells, source, dated in listed_cells(table, listed):
            said = ", ".join(say("all") if cell == "all" else cell for cell in cells)
            yield f"{name:<20}{said}"
            yield _source(f"{source}, {dated}" if dated != "-" else source, say, width)
        yield ""


def price_table(
    prices: Sequence[Plain], say: Say = english, width: int = 80
) -> Iterator[str]:
    """Yield lines of so many columns: each price with its age, and who says so."""
    for row in prices:
        doubt = "; " + say("unconfirmed: one source") if row["unconfirmed"] else ""
        days = row["age_days"]
        many = say("{count} days old").format(count=days)
        age = say("1 day old") if days == 1 else many
        what = f"{row['gpu']:<12}{row['vendor']}, {row['terms']}"
        yield f"{what:<44}${row['usd_per_hour']:.2f} {say('an hour')}"
        yield f"    {row['dated']}, {age}{doubt}"
        yield _source(row["source"], say, width)


def _source(text: str, say: Say, width: int) -> str:
    told = say("from {source}").format(source=text)
    rows = fill(told, width - 4, break_on_hyphens=False, break_long_words=False)
    return click.style(indent(rows, "    "), dim=True)
