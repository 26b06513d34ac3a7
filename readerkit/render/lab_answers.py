"""What a lab measured of what was asked, with the guesses beside it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from readerkit.labs.answers import Answer


def print_answers(answers: Sequence[Answer], screen: Console) -> None:
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


def times(ratio: float) -> str:
    """Return a ratio with three digits.

    >>> times(65536), times(0.4271), times(2)
    ('65,536x', '0.427x', '2x')
    """
    return f"{ratio:,.0f}x" if ratio >= 100 else f"{ratio:.3g}x"
