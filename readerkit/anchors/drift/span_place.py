"""Where a span stands in one revision of a file, told from the lines of a match.

Its first and last line decide. One that is gone is between those around it; a
definition that is asked for as a whole stays whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from readerkit.anchors.drift.file_match import FileMatch, PairedLines
from readerkit.anchors.drift.outline import Block
from readerkit.anchors.drift.span_ends import JUMP, Edge, by_statement, has_other_target

_MAX_STATEMENT = 30
_GIVEN = 0.5
"""How alike two lines are taken to be that give a value to the same name."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place where a span may stand; lines from 0, both included."""

    path: str
    first: int
    last: int
    start: Edge
    end: Edge
    share: float
    """How much of the span is there word for word, by weight."""
    kept: float
    """The same with edited lines, each as much as it is alike."""
    weight: float
    """How much the span weighs at all."""
    frame_likeness: float
    by_name: bool
    whole: bool
    """Whether it is a definition that stays whole."""
    around: float
    """How many of the lines just before and behind it are there, 0 to 1."""
    same_length: bool
    elsewhere: bool
    """Whether it was searched for, in other places of the tree."""
    tight: tuple[bool, bool] = (False, False)
    """Whether the line just before, and that just behind, is still right there."""
    taken: float = 0.0
    """How much of the place was something else in the old revision, 0 to 1."""
    file_gone: bool = False
    """Whether the file it was in is no more."""
    path_likeness: float = 1.0
    """How much of the path is the same, 0 to 1."""
    home: float = 1.0
    """How much of the old file's lines is in this one, 0 to 1."""
    other_target: bool = False
    """Whether its first line was edited and gives a value to another name now."""
    stated: float = 0.0
    """How alike the line is that begins what the span ends with; 0 where none is."""
    grown: int = 0
    """How many lines the end of that statement is behind what the lines alone say."""


def place(match: FileMatch, first: int, last: int) -> Candidate | None:
    """Return where the lines of a span stand now; None where nothing is left of it."""
    weigh, keys = match.weight, match.old.text.keys
    weights = {n: weigh(keys[n]) for n in range(first, last + 1)}
    total = sum(weights.values())
    chain = _chain(match, first, last, weights)
    start = _edge(match, first, last, chain, down=True)
    end = _edge(match, first, last, chain, down=False)
    if start is None or end is None:
        return None
    whole = _whole(match, first, last)
    if whole:
        block, other = whole
        head = other.head if first == block.head else other.first
        start = Edge(head, start.exact, start.likeness, 0)
        end = Edge(other.last, end.exact and end.line == other.last, end.likeness, 0)
    stated, grown = 0.0, 0
    if not whole:
        by_lines = end
        end, stated = by_statement(match, first, last, start, end)
        grown = end.line - by_lines.line
    if end.line < start.line:
        return None
    if not whole and not stated:
        end = _closed(match, first, last, start, end)
    frame, _ = match.frame_of.get(first, (None, 0))
    share, kept = _kept(match, weights, start.line, end.line, total)
    return Candidate(
        match.new.path,
        start.line,
        end.line,
        start,
        end,
        share,
        kept,
        total,
        frame.likeness if frame else 0.0,
        frame.by_name if frame else False,
        whole is not None,
        _around(match, first, last, start.line, end.line),
        end.line - start.line == last - first,
        False,
        (
            _is_at(match, first - 1, start.line - 1),
            _is_at(match, last + 1, end.line + 1),
        ),
        other_target=not start.exact and has_other_target(match, first, start.line),
        stated=stated,
        grown=grown,
    )


def _is_at(match: FileMatch, old: int, new: int) -> bool:
    """Tell whether an old line is a new one; both may be beyond the file."""
    if old < 0 or old >= len(match.old.text.lines):
        return new < 0 or new >= len(match.new.text.lines)
    return match.image.get(old) == new


def _chain(
    match: FileMatch, first: int, last: int, weights: dict[int, float]
) -> tuple[int, int] | None:
    """Return the range in new of the heaviest row of lines that stayed together."""
    best, best_weight = None, 0.0
    low = high = -1
    weight = 0.0
    for n in range(first, last + 1):
        image = match.image.get(n)
        if image is None or not weights[n]:
            continue
        if low < 0 or not high < image <= high + JUMP:
            low, weight = image, 0.0
        high, weight = image, weight + weights[n]
        if weight > best_weight:
            best, best_weight = (low, high), weight
    return best


def _edge(
    match: FileMatch,
    first: int,
    last: int,
    chain: tuple[int, int] | None,
    *,
    down: bool,
) -> Edge | None:
    """Return the first line (``down``) or the last one of a span in new."""
    line = first if down else last
    image = match.image.get(line)
    if image is not None and _near(image, chain):
        return Edge(image, True, 1.0, 0)
    if line not in match.frame_of:
        return None
    frame, position = match.frame_of[line]
    if position in frame.exact:  # it moved away from the rest
        return _next_edge(match, first, last, chain, down=down)
    if position in frame.pairs:
        # The head of a pair, whose name or arguments changed.
        new = frame.new[frame.pairs[position]].first
        return Edge(new, False, 0.7, 0) if _near(new, chain) else None
    return _in_gap(match, frame, position, first, last, chain, down=down)


def _next_edge(
    match: FileMatch,
    first: int,
    last: int,
    chain: tuple[int, int] | None,
    *,
    down: bool,
) -> Edge | None:
    if chain is None:
        return None
    return Edge(chain[0] if down else chain[1], False, 0.0, 3)


def _near(line: int, chain: tuple[int, int] | None) -> bool:
    return chain is None or chain[0] - JUMP <= line <= chain[1] + JUMP


def _in_gap(
    match: FileMatch,
    frame: PairedLines,
    position: int,
    first: int,
    last: int,
    chain: tuple[int, int] | None,
    *,
    down: bool,
) -> Edge | None:
    line = first if down else last
    a, b, c, d = match.gap(frame, position)
    edit = frame.edits.get(position)
    if edit:
        item = frame.new[edit.first if down else edit.last]
        new = item.first if down else item.last
        if _near(new, chain):
            return Edge(new, False, edit.likeness, 0, edit.likeness - edit.rival)
    again = match.out_of_order(frame, position)
    if again >= 0 and _near(new := frame.new[again].first, chain):
        is_same = match.old.text.keys[line] == match.new.text.keys[new]
        return Edge(new, False, 1.0 if is_same else _GIVEN, 0)
    step = 1 if down else -1
    # Inwards: the next line of the span that has a place, or the end of the gap.
    inner = position
    while a <= inner < b and inner not in frame.edits:
        inner += step
    outer = position - step
    while a <= outer < b and outer not in frame.edits:
        outer -= step
    inside = frame.old[inner] if 0 <= inner < len(frame.old) else None
    is_inside = inside is not None and first <= inside.first and inside.last <= last
    # Positions in new between the two, both left out.
    if down:
        low = frame.edits[outer].last + 1 if a <= outer < b else c
        high = frame.edits[inner].first if a <= inner < b else d
    else:
        low = frame.edits[inner].last + 1 if a <= inner < b else c
        high = frame.edits[outer].first if a <= outer < b else d
    inner_count = abs(inner - position)
    outer_count = abs(position - outer) - 1
    size = high - low
    if size <= 0:
        if not is_inside:
            return None
        at = high if down else low - 1
        return _edge_at(frame, at, 0.0, 0, down=down)
    if not is_inside and not size:
        return None
    # The lines between are of the span, as far as no line before it lost its own.
    mine = size if not outer_count else min(size, max(1, inner_count))
    at = high - mine if down else low + mine - 1
    slack = size - 1 if outer_count else max(0, size - inner_count)
    if not is_inside:
        slack += 2
        at = low if down else high - 1
        if outer_count:
            return None
    return _edge_at(frame, at, 0.0, slack, down=down)


def _edge_at(
    frame: PairedLines, at: int, likeness: float, slack: int, *, down: bool
) -> Edge | None:
    if not 0 <= at < len(frame.new):
        return None
    item = frame.new[at]
    return Edge(item.first if down else item.last, False, likeness, slack)


def _whole(match: FileMatch, first: int, last: int) -> tuple[Block, Block] | None:
    """Return the paired definition that a span is, with its lines or decorators."""
    block = match.old.block_at(first)
    if block.last != last or first not in (block.first, block.head):
        return None
    found = match.pair_of.get(id(block))
    return (block, found[0]) if found and block.parent else None


def _closed(match: FileMatch, first: int, last: int, start: Edge, end: Edge) -> Edge:
    """Return the end moved down to where brackets close that the span opens now.

    A call whose arguments went to lines of their own is still the whole call.
    """
    old, new = match.old.text, match.new.text
    if end.exact and match.image.get(last) == end.line:
        return end
    if old.balance(first, last) > 0:
        return end
    open_now = new.balance(start.line, end.line)
    line = end.line
    while open_now > 0 and line - end.line < _MAX_STATEMENT:
        line += 1
        if line >= len(new.lines) or line in match.taken:
            return end
        open_now += new.balance(line, line)
    if open_now > 0 or line == end.line:
        return end
    return replace(end, line=line, slack=end.slack + 1)


def _kept(
    match: FileMatch, weights: dict[int, float], low: int, high: int, total: float
) -> tuple[float, float]:
    """Return how much of a span is in a range of new: exact, and with edits."""
    share = kept = 0.0
    for n, weight in weights.items():
        image = match.image.get(n)
        if image is not None and low <= image <= high:
            share += weight
            kept += weight
        elif n in match.frame_of:
            frame, position = match.frame_of[n]
            if edit := frame.edits.get(position):
                if low <= frame.new[edit.first].first <= high:
                    kept += weight * edit.likeness
            elif position in frame.pairs and position not in frame.exact:
                kept += weight * 0.7
    return (share / total, kept / total) if total else (0.0, 0.0)


def _around(match: FileMatch, first: int, last: int, low: int, high: int) -> float:
    """Return how many lines beside a span are still beside it."""
    keys = match.old.text.keys
    found = []
    for start, step, edge in ((first - 1, -1, low), (last + 1, 1, high)):
        n, seen = start, 0
        while 0 <= n < len(keys) and seen < 3:
            if match.weight(keys[n]):
                seen += 1
                image = match.image.get(n)
                near = image is not None and abs(image - edge) <= 12
                found.append(near)
            n += step
    return sum(found) / len(found) if found else 0.5
