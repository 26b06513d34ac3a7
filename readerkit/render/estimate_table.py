"""Estimates as text: each number with its unit, then how it comes about."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from functools import partial

import click

from readerkit.estimate.item import Estimate, Item
from readerkit.estimate.quantity import Number
from readerkit.model.language import Say, Told, english
from readerkit.render.terminal_safe import visible_line
from readerkit.wording.numbers import (
    format_billions,
    format_binary,
    format_bytes,
    format_flop_rate,
    format_flops,
    format_rate,
    format_seconds,
    format_share,
)

WIDTH = 80
ONE_OF = {
    "microbatches": "microbatch",
    "sequences": "sequence",
    "buckets": "bucket",
    "tokens": "token",
    "steps": "step",
    "years": "year",
    "months": "month",
    "weeks": "week",
    "days": "day",
    "hours": "hour",
    "minutes": "minute",
}
"""What one of a unit is called."""
_NUMBER_COLUMN = 34


def both_bytes(value: Number) -> str:
    """Return bytes in 10^3n, and beside it in 2^10n."""
    decimal, binary = format_bytes(value, 2), format_binary(value, 2)
    return decimal if abs(value) < 1000 else f"{decimal:>12}  {binary:>12}"


def format_value(item: Item, say: Say = english) -> str:
    """Return an item's number as a person reads it."""
    if item.unit == "bytes":
        return both_bytes(item.value)
    text, also = number_texts(item, say)
    return f"{text}  ({also})" if also else text


def number_texts(item: Item, say: Say = english) -> tuple[str, str]:
    """Return a number with its unit, and the same in another where there is one."""
    value = item.value
    if item.unit == "bytes" and abs(value) >= 1000:
        return format_bytes(value, 2), format_binary(value, 2)
    if item.unit == "parameters":
        return f"{value:,.0f}", format_billions(value)
    return _with_unit(value, item.unit, say), ""


def plain_number(value: Number) -> str:
    """Return a number whose unit is said elsewhere."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _with_unit(value: Number, unit: str, say: Say) -> str:
    if unit == "bytes":
        return format_bytes(value, 2)
    if unit == "bytes/s":
        return format_rate(value, 2)
    if unit == "fraction":
        return format_share(value)
    if unit == "times":
        return f"{value:,.4g}x"
    if unit == "seconds":
        return format_seconds(value)
    if unit == "FLOPs":
        return format_flops(value)
    if unit == "FLOP/s":
        return format_flop_rate(value, 2)
    if unit == "USD":
        return f"${value:,.2f}"
    named = ONE_OF.get(unit, unit) if value == 1 else unit
    return f"{plain_number(value)} {say(named)}"


def estimate_table(
    estimates: Sequence[Estimate],
    *,
    brief: bool = False,
    say: Say = english,
    width: int = WIDTH,
) -> str:
    """Return estimates as text: numbers, formulas, sources, notes."""
    dim = partial(_dim, width=width)
    blocks = []
    for named in estimates:
        estimate = named if say is english else named.said(say)
        lines = [click.style(visible_line(estimate.title), bold=True)]
        last = source = ""
        for item in estimate.items:
            lines.append(
                f"{item.name + ' ':<{_NUMBER_COLUMN}}{format_value(item, say)}"
            )
            if brief:
                continue
            for text in _formulas(item):
                lines += dim(f"= {text}")
            if item.convention and item.convention != last:
                lines += dim(say(item.convention))
            last = item.convention
            if item.source and item.source != source:
                lines += dim(say(Told("from {source}", source=item.source)))
            source = item.source
        if estimate.symbols and not brief:
            meanings = (f"{name} {means}" for name, means in estimate.symbols.items())
            lines += dim(f"({', '.join(meanings)})")
        for note in estimate.notes:
            lines += _wrap(say(note), width, "- ")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _formulas(item: Item) -> list[str]:
    """Return the formula, where it is more than a name, and its substitution."""
    texts = (item.formula, item.substitution)
    return [text for text in dict.fromkeys(texts) if text != item.name]


def _dim(text: str, width: int) -> list[str]:
    return [click.style(row, dim=True) for row in _wrap(visible_line(text), width)]


def _wrap(text: str, width: int, start: str = "    ") -> list[str]:
    """Return rows of whole words, each but the first further in."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=start,
        subsequent_indent="  " if start.strip() else start + "  ",
        break_on_hyphens=False,
        break_long_words=False,
    )
