"""A pipeline schedule as a picture of boxes."""

from __future__ import annotations

from collections.abc import Sequence

from readerkit.estimate.planned_steps import PlannedStep, chunk_name

_UNIT, _ROW, _LEFT = 26, 26, 64
_COLORS = {"F": "#4c78a8", "B": "#59a14f", "W": "#e8a33d"}
_NAMES = {"F": "forward", "B": "backward", "W": "weights' gradient"}


def schedule_svg(bars: Sequence[PlannedStep], ranks: int) -> str:
    """Return an SVG image of a schedule; what a colour means is told below it."""
    width = _LEFT + _UNIT * max(bar.end for bar in bars) + 8
    height = _ROW * ranks + 40
    chunked = any(bar.chunk for bar in bars)
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11" '
        'role="img" aria-label="pipeline schedule">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for rank in range(ranks):
        y = _ROW * rank + 17
        rows.append(f'<text x="4" y="{y}" fill="#333333">rank {rank}</text>')
    rows += [_box(bar, chunked) for bar in bars]
    x = _LEFT
    for kind in sorted({bar.kind for bar in bars}, key="FBW".index):
        y = _ROW * ranks + 12
        rows.append(
            f'<rect x="{x}" y="{y}" width="12" height="12" fill="{_COLORS[kind]}"/>'
        )
        rows.append(
            f'<text x="{x + 17}" y="{y + 10}" fill="#333333">{_NAMES[kind]}</text>'
        )
        x += 130
    return "\n".join([*rows, "</svg>", ""])


def _box(bar: PlannedStep, chunked: bool) -> str:
    """Return one step; a later chunk of the model is paler."""
    x, y = _LEFT + _UNIT * bar.start, _ROW * bar.rank + 2
    width = _UNIT * (bar.end - bar.start) - 2
    letter = chunk_name(bar.chunk) if chunked else ""
    opacity = max(0.45, 1 - 0.25 * bar.chunk)
    return (
        f'<g><rect x="{x}" y="{y}" width="{width}" height="{_ROW - 4}" rx="2" '
        f'fill="{_COLORS[bar.kind]}" fill-opacity="{opacity}"/>'
        f'<text x="{x + width / 2}" y="{y + 15}" text-anchor="middle" '
        f'fill="#ffffff">{bar.microbatch}{letter}</text></g>'
    )
