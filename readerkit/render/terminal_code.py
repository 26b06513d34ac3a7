"""Lines of code in a terminal: numbered, coloured, folded to its width."""

from __future__ import annotations

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from readerkit.anchors import SourceFile, Span
from readerkit.anchors.highlight import Mark, highlight
from readerkit.render.terminal_safe import visible, visible_line

Shown = SourceFile | str
"""A file, or why it cannot be read here."""

_STYLES = {
    "comment": "italic dim",
    "string": "green",
    "escape": "green",
    "number": "cyan",
    "constant": "cyan",
    "keyword": "magenta",
    "operator": "",
    "function": "blue",
    "constructor": "yellow",
    "type": "yellow",
}
MAX_SHOWN_CHARACTERS = 2_000
"""Of one line; generated source has lines of a megabyte."""


def code_lines(source: Shown, span: Span, width: int | None) -> Table | Text:
    """Return the numbered, highlighted lines of a span, folded to fit ``width``.

    Without a width no line is folded, so that what is copied is the code. Of a file
    that cannot be read, why is told in its place.
    """
    if isinstance(source, str):
        return Text(visible_line(source), "yellow")
    marks: dict[int, list[tuple[int, int, str]]] = {}
    for mark in _marks(source, span):
        style = _STYLES.get(mark.kind.split(".")[0])
        if style:
            marks.setdefault(mark.line, []).append((mark.start, mark.end, style))
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right", style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for number in range(span.first, span.last + 1):
        line = _line(source, number, marks.get(number, []))
        if width is not None:
            line = _folded(line, max(width - len(str(span.last)) - 2, 1))
        grid.add_row(str(number), line)
    return grid


def indented_code(
    source: SourceFile, span: Span, width: int, indent: int
) -> RenderableType:
    """Return the same, set off by some columns."""
    return Padding(code_lines(source, span, width - indent), (0, 0, 0, indent))


def _marks(source: SourceFile, span: Span) -> list[Mark]:
    """Return what to colour: nothing where lines are too long to be read at all."""
    lines = source.raw_lines[span.first - 1 : span.last]
    if max(map(len, lines)) > MAX_SHOWN_CHARACTERS:
        return []
    return highlight(source, span.first, span.last)


def _line(source: SourceFile, number: int, marks: list[tuple[int, int, str]]) -> Text:
    raw = source.raw_lines[number - 1].removesuffix(b"\r")

    def column(offset: int) -> int:
        before = raw[:offset].decode("utf-8", "replace")
        return len(visible(before).expandtabs(4))

    text = source.line(number)
    if len(text) > MAX_SHOWN_CHARACTERS:
        rest = len(text) - MAX_SHOWN_CHARACTERS
        shown = visible(text[:MAX_SHOWN_CHARACTERS]).expandtabs(4)
        return Text.assemble(shown, (f" … {rest:,} more characters", "dim"))
    line = Text(visible(text).expandtabs(4), style="default")
    for start, end, style in marks:
        line.stylize(style, column(start), column(end))
    return line


def _folded(line: Text, width: int) -> Text:
    """Return a line of code broken to fit, what follows a break indented below it."""
    text = line.plain
    lead = len(text) - len(text.lstrip())
    indent = min(lead + 4, width // 2)
    cuts: list[int] = []
    start, room = 0, width
    while len(text) - start > room:
        low = max(start + room // 3, lead)
        breaks = (
            max(text.rfind(mark, low, start + room) for mark in marks)
            for marks in (" (,=", ".[", "_")  # a word is broken only where it has parts
        )
        end = next((each for each in breaks if each > 0), 0)
        start = end + 1 if end > 0 else start + room
        cuts.append(start)
        room = width - indent
    first, *rest = line.divide(cuts)
    parts = (part[len(part) - len(part.plain.lstrip()) :] for part in rest)
    return Text("\n").join([first, *(Text(" " * indent) + part for part in parts)])
