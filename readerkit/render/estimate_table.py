"""Estimates as text: each number with its unit, then how it comes about."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import click

from readerkit.estimate.item import Estimate, Item
from readerkit.estimate.quantity import Number
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
_NUMBER_COLUMN = 34


def both_bytes(value: Number) -> str:
    """Return bytes in 10^3n, and beside it in 2^10n."""
    decimal, binary = format_bytes(value, 2), format_binary(value, 2)
    return decimal if abs(value) < 1000 else f"{decimal:>12}  {binary:>12}"


def format_value(item: Item) -> str:
    """Return an item's number as a person reads it."""
    if item.unit == "bytes":
        return both_bytes(item.value)
    text, also = number_texts(item)
    return f"{text}  ({also})" if also else text


def number_texts(item: Item) -> tuple[str, str]:
    """Return a number with its unit, and the same in another where there is one."""
    value = item.value
    if item.unit == "bytes" and abs(value) >= 1000:
        return format_bytes(value, 2), format_binary(value, 2)
    if item.unit == "parameters":
        return f"{value:,.0f}", format_billions(value)
    return _with_unit(value, item.unit), ""


def plain_number(value: Number) -> str:
    """Return a number whose unit is said elsewhere."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _with_unit(value: Number, unit: str) -> str:
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
    return f"{plain_number(value)} {unit}"


def estimate_table(estimates: Sequence[Estimate], *, brief: bool = False) -> str:
    """Return estimates as text of 80 columns: numbers, formulas, sources, notes."""
    blocks = []
    for estimate in estimates:
        lines = [click.style(visible_line(estimate.title), bold=True)]
        last = source = ""
        for item in estimate.items:
            lines.append(f"{item.name + ' ':<{_NUMBER_COLUMN}}{format_value(item)}")
            if brief:
                continue
            lines += _dim_formulas(item)
            if item.convention and item.convention != last:
                lines += _dim(item.convention)
            last = item.convention
            if item.source and item.source != source:
                lines += _dim(f"from {item.source}")
            source = item.source
        if estimate.symbols and not brief:
            meanings = (f"{name} {means}" for name, means in estimate.symbols.items())
            lines += _dim(f"({', '.join(meanings)})")
        for note in estimate.notes:
            lines += textwrap.wrap(
                note, WIDTH, initial_indent="- ", subsequent_indent="  "
            )
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _dim_formulas(item: Item) -> list[str]:
    """Return the formula, where it is more than a name, and its substitution."""
    texts = (item.formula, item.substitution)
    shown = [text for text in dict.fromkeys(texts) if text != item.name]
    return [row for text in shown for row in _dim(f"= {text}")]


def _dim(text: str) -> list[str]:
    indent = "    "
    rows = textwrap.wrap(
        visible_line(text),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_on_hyphens=False,
    )
    return [click.style(row, dim=True) for row in rows]
