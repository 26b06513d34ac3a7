"""Plots as SVG: colours come from the page's theme, so one drawing serves both.

Each has a title and a sentence that says in words what it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from markupsafe import Markup

from readerkit.render.html.escape import shown
from readerkit.wording.numbers import format_bytes, format_number

_WIDTH, _HEIGHT = 640, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 12, 12, 38
_LETTER = 8.8
"""How wide one is, at most on average: on a phone the style sheet makes them larger."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A box in a Gantt chart."""

    row: int
    start: float
    end: float
    text: str
    kind: Literal["F", "B", "W"]
    chunk: int = 0


@dataclass(frozen=True, slots=True)
class MemoryStack:
    """Bytes that are held at once, one on the other."""

    name: str
    parts: tuple[tuple[str, float], ...]


def _frame(name: str, title: str, text: str, height: int, inner: Markup) -> Markup:
    opening = (
        '<svg class="chart" role="img" lang="en" viewBox="0 0 {w} {h}" '
        'aria-labelledby="{n}-t {n}-d"><title id="{n}-t">{t}</title>'
        '<desc id="{n}-d">{d}</desc>'
    )
    start = Markup(opening).format(
        w=_WIDTH, h=height, n=name, t=shown(title), d=shown(text)
    )
    return start + inner + Markup("</svg>")


def _room(labels: Iterable[str]) -> float:
    """Return what labels that end before a chart take up, with a gap at either end."""
    return 16 + _LETTER * max(map(len, labels))


def label(x: float, y: float, kind: str, text: str) -> Markup:
    """Return words at a place; how they stand there, their kind says."""
    tag = '<text x="{:g}" y="{:g}" class="{}">{}</text>'
    return Markup(tag).format(round(x, 1), round(y, 1), kind, shown(text))


def box(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    """Return a rectangle; what it looks like, its kind says."""
    tag = '<rect x="{:g}" y="{:g}" width="{:g}" height="{:g}" class="{}"/>'
    sizes = (round(size, 2) for size in (x, y, width, height))
    return Markup(tag).format(*sizes, kind)


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    tag = '<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>'
    return Markup(tag).format(x1, y1, x2, y2, kind)


def loss_chart(name: str, series: Mapping[str, Sequence[float]]) -> Markup:
    """Return the losses of both sides by step, on one plot."""
    # A side that went wrong may have no number for a loss: it has no point either.
    values = [v for line in series.values() for v in line if isfinite(v)] or [0.0]
    low, high = min(values), max(values)
    room = (high - low) or 1.0
    low, high = low - 0.05 * room, high + 0.05 * room
    steps = max(map(len, series.values()))
    across = (_WIDTH - _LEFT - _RIGHT) / max(steps - 1, 1)

    def place(step: int, value: float) -> tuple[float, float]:
        share = (value - low) / (high - low)
        return _LEFT + across * step, _HEIGHT - _BOTTOM - share * (
            _HEIGHT - _TOP - _BOTTOM
        )

    parts = list(_axis(low, high))
    for step in range(0, steps, max(1, steps // 6)):
        parts.append(label(place(step, low)[0], _HEIGHT - 18, "tick mid", str(step)))
    parts.append(label(_WIDTH / 2, _HEIGHT - 3, "tick mid", "step"))
    for index, (side, line) in enumerate(series.items()):
        known = [at for at in enumerate(line) if isfinite(at[1])]
        points = " ".join("{:.1f},{:.1f}".format(*place(*at)) for at in known)
        drawn = '<polyline points="{}" class="series s{}"/>'
        parts.append(Markup(drawn).format(points, index))
        for at in known:
            x, y = place(*at)
            dot = '<circle cx="{:.1f}" cy="{:.1f}" r="{}" class="dot s{}"/>'
            parts.append(Markup(dot).format(x, y, 4.5 if index == 0 else 2.2, index))
        x = _LEFT + 100 * index  # below the plot, where no line can run
        parts.append(box(x, _HEIGHT - 12, 10, 10, f"key s{index}"))
        parts.append(label(x + 16, _HEIGHT - 3, "tick", side))
    ends = "; ".join(
        f"{side} from {format_number(line[0])} to {format_number(line[-1])}"
        for side, line in series.items()
    )
    text = f"Loss over {steps} steps: {ends}."
    return _frame(name, "Losses of both sides", text, _HEIGHT, Markup("").join(parts))


def _axis(low: float, high: float) -> Iterator[Markup]:
    for index in range(5):
        value = low + (high - low) * index / 4
        y = _HEIGHT - _BOTTOM - index / 4 * (_HEIGHT - _TOP - _BOTTOM)
        yield _line(_LEFT, y, _WIDTH - _RIGHT, y, "grid")
        yield label(_LEFT - 8, y + 4, "tick end", f"{value:.3g}")


def memory_chart(name: str, rows: Sequence[tuple[str, str, int]]) -> Markup:
    """Return bytes by side and category as bars: (category, side, bytes) each."""
    most = max(count for _, _, count in rows) or 1
    left, step = _room(f"{category}, {side}" for category, side, _ in rows), 22
    height = step * len(rows) + 8
    parts = []
    for index, (category, side, count) in enumerate(rows):
        y = 4 + step * index
        parts.append(label(left - 8, y + 13, "tick end", f"{category}, {side}"))
        width = (_WIDTH - left - 90) * count / most
        kind = "key s0" if side == "mini" else "key s1"
        parts.append(box(left, y + 2, max(width, 0.5), step - 7, kind))
        parts.append(label(left + width + 6, y + 13, "tick", format_bytes(count)))
    words = "; ".join(
        f"{category}, {side}: {format_bytes(n)}" for category, side, n in rows
    )
    text = f"Bytes that one rank holds: {words}."
    return _frame(name, "Memory by category", text, height, Markup("").join(parts))


def stack_chart(
    name: str, title: str, stacks: Sequence[MemoryStack], limit: float
) -> Markup:
    """Return bars of bytes held at once, and a line at what there is room for."""
    kinds = [*dict.fromkeys(part for stack in stacks for part, _ in stack.parts)]
    totals = [sum(count for _, count in stack.parts) for stack in stacks]
    left, step, top = 66, 34, 20
    foot = top + step * len(stacks)
    scale = (_WIDTH - left - 78) / max(*totals, limit, 1)
    at = left + limit * scale
    parts = []
    for index, (stack, total) in enumerate(zip(stacks, totals, strict=True)):
        y, x = top + step * index, float(left)
        parts.append(label(left - 8, y + 18, "tick end", stack.name))
        for part, count in stack.parts:
            width = count * scale
            kind = f"part p{kinds.index(part)}"
            parts.append(box(x, y + 3, max(width - 0.8, 0.4), step - 12, kind))
            x += width
        # The figure stands clear of the line.
        x = max(x, at) if x + 60 > at else x
        parts.append(label(x + 6, y + 18, "tick", format_bytes(total)))
    parts.append(_line(at, top - 4, at, foot, "limit"))
    parts.append(label(at, top - 8, "tick mid", f"usable: {format_bytes(limit)}"))
    for index, kind in enumerate(kinds):
        x, y = left + 190 * (index % 3), foot + 12 + 18 * (index // 3)
        parts.append(box(x, y, 10, 10, f"part p{index}"))
        parts.append(label(x + 15, y + 9, "tick", kind))
    height = foot + 16 + 18 * -(-len(kinds) // 3)
    words = "; ".join(
        f"{stack.name}: {format_bytes(total)}, of it "
        + ", ".join(f"{part} {format_bytes(count)}" for part, count in stack.parts)
        for stack, total in zip(stacks, totals, strict=True)
    )
    text = f"Bytes held at once, with {format_bytes(limit)} usable. {words}."
    return _frame(name, title, text, height, Markup("").join(parts))


def gantt(name: str, title: str, rows: Sequence[str], cells: Sequence[Cell]) -> Markup:
    """Return who works on what and when: a row for each rank, a box for each step."""
    end = max(cell.end for cell in cells)
    begin = min(cell.start for cell in cells)
    left, step = _room(rows), 30
    height = step * len(rows) + 24
    scale = (_WIDTH - left - 6) / (end - begin)
    parts = []
    for index, row in enumerate(rows):
        y = step * index + 4
        parts.append(label(left - 8, y + 18, "tick end", row))
        parts.append(box(left, y, _WIDTH - left - 6, step - 4, "idle"))
    for cell in cells:
        x, y = left + (cell.start - begin) * scale, step * cell.row + 4
        width = (cell.end - cell.start) * scale
        kind = f"work {cell.kind} chunk{cell.chunk % 4}"
        parts.append(box(x, y, max(width - 0.8, 0.6), step - 4, kind))
        if width > 7 * len(cell.text):
            parts.append(label(x + width / 2, y + 17, "in mid", cell.text))
    parts.append(label(left, height - 4, "tick", "time →"))
    orders = "; ".join(
        f"{row}: " + " ".join(cell.text for cell in cells if cell.row == index)
        for index, row in enumerate(rows)
    )
    halves = any(cell.kind == "W" for cell in cells)
    backward = (
        "B its inputs' half of a backward, W the weights'"
        if halves
        else ("B a backward")
    )
    text = f"F is a forward, {backward} of a microbatch. {orders}."
    return _frame(name, title, text, height, Markup("").join(parts))
