"""What a lab measured: a picture that stands alone, and a table beside the guesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from rich.console import Console
from rich.table import Table

from readerkit.labs.generation_curve import WidthCurve
from readerkit.labs.predictions import PredictedRatio
from readerkit.wording.numbers import format_digits, format_seconds

_WIDTH, _LEFT, _RIGHT, _TOP = 640, 150, 90, 46
_BAR, _GAP = 18, 14
_STYLE = """
svg { background: #ffffff; font: 13px system-ui, sans-serif; }
text { fill: #24292f; } .quiet { fill: #59636e; }
.b0 { fill: #8c959f; } .b1 { fill: #0969da; }
@media (prefers-color-scheme: dark) {
  svg { background: #0d1117; } text { fill: #e6edf3; } .quiet { fill: #9198a1; }
  .b0 { fill: #6e7681; } .b1 { fill: #4493f8; }
}
"""


@dataclass(frozen=True, slots=True)
class Bars:
    """One row of a plot: a value for each series."""

    label: str
    values: tuple[float, ...]


def bar_plot(title: str, note: str, series: Sequence[str], rows: Sequence[Bars]) -> str:
    """Return grouped bars from zero on, each with its value; the text alternative too.

    >>> bar_plot("t", "n", ["one"], [Bars("a", (1.0,))]).startswith("<svg")
    True
    """
    most = max(value for row in rows for value in row.values) or 1.0
    step = _BAR * len(series) + _GAP
    height = _TOP + step * len(rows) + 30
    parts = [
        _text(16, 20, title, "title"),
        *(
            _box(_LEFT + 130 * i, 28, 10, 10, i) + _text(_LEFT + 16 + 130 * i, 37, name)
            for i, name in enumerate(series)
        ),
    ]
    for index, row in enumerate(rows):
        top = _TOP + step * index + _GAP / 2
        middle = top + _BAR * len(series) / 2 + 4
        parts.append(_text(_LEFT - 10, middle, row.label, "end"))
        for i, value in enumerate(row.values):
            width = (_WIDTH - _LEFT - _RIGHT) * value / most
            y = top + _BAR * i
            parts.append(_box(_LEFT, y, max(width, 0.5), _BAR - 3, i))
            parts.append(_text(_LEFT + width + 6, y + 12, f"{value:,.0f}", "quiet"))
    parts.append(_text(16, height - 10, note, "quiet"))
    words = "; ".join(
        f"{row.label}: "
        + ", ".join(
            f"{name} {value:,.0f}"
            for name, value in zip(series, row.values, strict=True)
        )
        for row in rows
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" '
        f'role="img" aria-labelledby="t d"><title id="t">{escape(title)}</title>'
        f'<desc id="d">{escape(words)}</desc><style>{_STYLE}</style>'
        f"{''.join(parts)}</svg>\n"
    )


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    anchor = ' text-anchor="end"' if kind == "end" else ""
    weight = ' font-weight="600"' if kind == "title" else ""
    quiet = ' class="quiet"' if kind == "quiet" else ""
    tag = f'<text x="{x:.1f}" y="{y:.1f}"{anchor}{weight}{quiet}>'
    return f"{tag}{escape(text)}</text>"


def _box(x: float, y: float, width: float, height: float, series: int) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" '
        f'class="b{series % 2}"/>'
    )


def print_predictions(answers: Sequence[PredictedRatio], screen: Console) -> None:
    """Print, of each question, the guess, what size predicts, and the measure."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("asked")
    columns = ["by size alone", "measured"]
    if any(answer.guess is not None for answer in answers):
        columns.insert(0, "you said")
    for name in columns:
        table.add_column(name, justify="right")
    for answer in answers:
        cells = [times(answer.expected), times(answer.measured)]
        if len(columns) == 3:
            cells.insert(0, "-" if answer.guess is None else times(answer.guess))
        table.add_row(answer.question, *cells)
    screen.print(table)


def print_curves(curves: Sequence[WidthCurve], screen: Console) -> None:
    """Print, of each width, a token on one rank and how many times as quick on more."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("width", "ranks", "a token", "of it all-reduces", "as quick"):
        table.add_column(name, justify="right")
    for curve in curves:
        for row in (curve.alone, *curve.on_more):
            table.add_row(
                f"{curve.hidden_size:,}",
                f"{row.world_size}",
                format_seconds(row.token_s),
                format_seconds(row.all_reduces_s) if row.world_size > 1 else "-",
                times(curve.speed_up(row)),
            )
    screen.print(table)


def times(ratio: float) -> str:
    """Return a ratio with three digits.

    >>> times(65536), times(0.4271), times(2)
    ('65,536x', '0.427x', '2x')
    """
    return f"{format_digits(ratio)}x"
