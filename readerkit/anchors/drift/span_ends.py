"""An end of a span, and where the statement ends that a span ends with."""

from __future__ import annotations

from dataclasses import dataclass

from readerkit.anchors.drift.file_match import FileMatch
from readerkit.anchors.drift.statement_ends import (
    last_statement,
    statement_end,
    target_of,
)

JUMP = 80
"""So many lines may come between two lines of a span that stay one span."""


@dataclass(frozen=True, slots=True)
class Edge:
    """An end of a span in new, and what it rests on."""

    line: int
    exact: bool
    likeness: float
    """Of the line itself: 1 where it is the same."""
    slack: int
    """How many lines it could as well be."""
    margin: float = 0.0
    """Of an edited line: how much less alike the next best line is."""


def has_other_target(match: FileMatch, old: int, new: int) -> bool:
    """Tell whether an edited line gives a value to another name now."""
    one, other = match.old.text.lines[old], match.new.text.lines[new]
    was, now = target_of(one), target_of(other)
    if not was or not now or was == now:
        return False
    # The same value under another name: it was renamed, and is no sibling.
    return _value_of(one) != _value_of(other)


def _value_of(line: bytes) -> bytes:
    return b"".join(line.partition(b"=")[2].split())


def by_statement(
    match: FileMatch, first: int, last: int, start: Edge, end: Edge
) -> tuple[Edge, float]:
    """Return the end of the statement that a span ends with, where it has a place.

    Its last line may be another now, or one of several like it: where what begins
    further up ends tells more. Also how alike its first line is.
    """
    old, new = match.old, match.new
    begins = last_statement(old.text, first, last, is_python=old.is_python)
    if begins is None or (begins == last and end.exact):
        return end, 0.0
    if begins == first:
        line, like = start.line, start.likeness
    elif begins == last:
        line, like = end.line, end.likeness
    else:
        line, like = _image(match, begins)
    if not like or not start.line <= line <= end.line + JUMP:
        return end, 0.0
    keys, size = match.old.text.keys, last - first
    if end.line - start.line == size and all(
        keys[first + n] == match.new.text.keys[start.line + n] for n in range(size + 1)
    ):
        return end, 0.0  # every line is there, in a row: what came behind is not of it
    stop = statement_end(new.text, line, is_python=new.is_python)
    if stop == end.line:
        return end, like
    exact = match.image.get(last) == stop
    return Edge(stop, exact, 1.0 if exact else like, 0, end.margin), like


def _image(match: FileMatch, line: int) -> tuple[int, float]:
    """Return where a line is, the same or edited, and how alike it is."""
    if line in match.image:
        return match.image[line], 1.0
    if line in match.frame_of:
        frame, position = match.frame_of[line]
        match.gap(frame, position)
        if edit := frame.edits.get(position):
            return frame.new[edit.first].first, edit.likeness
    return -1, 0.0
