"""What each part of a line is (keyword, string, name), from the anchors' own tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tree_sitter import QueryCursor

from readerkit.anchors.grammars import chosen_marks, marks_query
from readerkit.anchors.source import SourceFile

MAX_LINE_BYTES = 5_000
"""A query over one endless line takes minutes: lines are then shown without marks."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A stretch of one line, and what it is."""

    line: int
    start: int
    """Byte offset in the line."""
    end: int
    """Byte offset after it; past the line's length where it runs on."""
    kind: str
    """A capture name of the grammar's own highlight query: ``keyword``, ``string``."""


def highlight(source: SourceFile, first: int, last: int) -> list[Mark]:
    """Return the marks on lines ``first`` to ``last``, outer before inner ones.

    Where two patterns of the query name one node, the later pattern rules, as the
    grammar's authors mean it.
    """
    if any(len(line) > MAX_LINE_BYTES for line in source.raw_lines[first - 1 : last]):
        return []
    cursor = QueryCursor(marks_query(source.language))
    cursor.set_point_range((first - 1, 0), (last, 0))
    kinds: dict[tuple[int, int], tuple[int, str]] = {}
    spans = {}
    for pattern, captures in cursor.matches(source.root):
        for kind, nodes in captures.items():
            for node in nodes:
                key = (node.start_byte, node.end_byte)
                if key not in kinds or kinds[key][0] <= pattern:
                    kinds[key] = (pattern, kind)
                    spans[key] = (node.start_point, node.end_point)
    marks = []
    for key in sorted(kinds, key=lambda key: (key[0], -key[1])):
        (row, column), (end_row, end_column) = spans[key]
        for line in range(max(row, first - 1), min(end_row, last - 1) + 1):
            start = column if line == row else 0
            end = end_column if line == end_row else 1 << 30
            marks.append(Mark(line + 1, start, end, kinds[key][1]))
    return marks


def stretches(
    source: SourceFile, kind_of: Callable[[str], str | None]
) -> Iterator[tuple[int, int, str]]:
    """Yield the bytes of a file that are of a kind, and the kind; none crosses a line.

    ``kind_of`` tells what of a capture's name is wanted, if anything. Patterns without
    any are not looked for, as most are (each name, each bracket): a seventh of the time
    of all marks. Where such a one comes later for the same bytes, it changes nothing.
    """
    raw, starts = source.raw_lines, source.line_starts
    if any(len(line) > MAX_LINE_BYTES for line in raw):
        return
    kinds: dict[tuple[int, int], tuple[int, str]] = {}
    query = chosen_marks(source.language, kind_of)
    for pattern, captures in QueryCursor(query).matches(source.root):
        for kind, nodes in captures.items():
            for node in nodes:
                key = (node.start_byte, -node.end_byte)
                if key not in kinds or kinds[key][0] <= pattern:
                    kinds[key] = (pattern, kind)
    for begin, end in sorted(kinds):
        if not (wanted := kind_of(kinds[begin, end][1])):
            continue
        for row in range(source.row(begin), source.row(max(begin, -end - 1)) + 1):
            first = max(begin, starts[row])
            last = min(-end, starts[row] + len(raw[row]))
            if first < last:
                yield first, last, wanted
