"""Estimates as text: each number with its unit, then how it comes about."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import click

from readerkit.estimate.quantity import Estimate, Item, Number
from readerkit.render.visible import visible_line

WIDTH = 80
_DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_NUMBER_COLUMN = 34


def format_bytes(value: Number) -> str:
    """Return bytes in 10^3n, and beside it in 2^10n."""
    decimal, binary = _scaled(value, 1000, _DECIMAL), _scaled(value, 1024, _BINARY)
    return decimal if abs(value) < 1000 else f"{decimal:>12}  {binary:>12}"


def _scaled(value: Number, step: int, units: Sequence[str]) -> str:
    size, power = float(abs(value)), 0
    while size >= step * 0.9995 and power < len(units) - 1:
        size, power = size / step, power + 1
    sign = "-" if value < 0 else ""
    digits = 0 if power == 0 and size == int(size) else 2
    return f"{sign}{size:,.{digits}f} {units[power]}"


def format_seconds(value: Number) -> str:
    """Return a time in the unit that shows it best."""
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:,.2f} {unit}"
    return f"{value / 1e-9:,.2f} ns"


def format_value(item: Item) -> str:
    """Return an item's number as a person reads it."""
    value, unit = item.value, item.unit
    if unit == "bytes":
        return format_bytes(value)
    if unit == "bytes/s":
        return f"{value / 1e9:,.2f} GB/s"
    if unit == "fraction":
        return f"{value:.2%}"
    if unit == "times":
        return f"{value:,.4g}x"
    if unit == "seconds":
        return format_seconds(value)
    if unit in ("FLOPs", "FLOP/s"):
        return f"{value:.4g} {unit}"
    if unit == "parameters":
        return f"{value:,.0f}  ({value / 1e9:,.2f} B)"
    if unit == "USD":
        return f"${value:,.2f}"
    shown = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
    return f"{shown} {unit}"


def estimate_table(estimates: Sequence[Estimate], *, brief: bool = False) -> str:
    """Return estimates as text of 80 columns: numbers, formulas, sources, notes."""
    blocks = []
    for estimate in estimates:
        lines = [click.style(visible_line(estimate.title), bold=True)]
        last = source = ""
        for item in estimate.items:
            lines.append(f"{item.name:<{_NUMBER_COLUMN}}{format_value(item)}")
            if brief:
                continue
            lines += _dim(f"= {item.formula}")
            if item.convention and item.convention != last:
                lines += _dim(item.convention)
            last = item.convention
            if item.source and item.source != source:
                lines += _dim(f"from {item.source}")
            source = item.source
        for note in estimate.notes:
            lines += textwrap.wrap(
                note, WIDTH, initial_indent="- ", subsequent_indent="  "
            )
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _dim(text: str) -> list[str]:
    indent = "    "
    rows = textwrap.wrap(
        visible_line(text),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
    )
    return [click.style(row, dim=True) for row in rows]
