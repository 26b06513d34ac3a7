"""Spans carried from one tree to another: every way tried, the likeliest place told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile

from readerkit.anchors.drift.corpus import Corpus, rarity
from readerkit.anchors.drift.file_match import FileMatch, FileSide
from readerkit.anchors.drift.outline import Block
from readerkit.anchors.drift.span_place import Candidate, place
from readerkit.anchors.drift.text import Tree
from readerkit.anchors.drift.verdict import Carried, decide, refuse, renamed, unchanged
from readerkit.model.anchor import Span

_SURE = 0.75
"""Where so much of a span is in its own file, nothing else is searched."""
_AROUND = 6
_MAX_PLACES = 4


def carry(
    spans: Sequence[Span], old: Tree, new: Tree, corpus: Corpus | None = None
) -> list[Carried]:
    """Return where each span of the old tree stands in the new one, in order.

    ``corpus`` is that of the same two trees, where they are asked for once more.
    """
    corpus = corpus or Corpus(old, new)
    here = [_in_place(span, corpus) for span in spans]
    lost = [n for n, found in enumerate(here) if _is_lost(found)]
    wanted: set[bytes] = set()
    for n in lost:
        wanted |= _keys_to_find(spans[n], corpus)
    if wanted:
        corpus.search(wanted)
    searched = set(lost)
    return [
        _verdict(span, found, corpus, search=n in searched)
        for n, (span, found) in enumerate(zip(spans, here, strict=True))
    ]


def _in_place(span: Span, corpus: Corpus) -> Candidate | str | Carried | None:
    """Return where a span stands in the file of the same path.

    A text says why nothing can be said of it; a verdict, that nothing changed.
    """
    side = corpus.old_side(span.path)
    if side is None:
        is_there = span.path in corpus.old
        return "it is a binary file" if is_there else "the old tree has no such file"
    if span.last > len(side.text.lines):
        return f"the file has {len(side.text.lines)} lines"
    if not any(side.text.keys[span.first - 1 : span.last]):
        return "its lines are blank"
    if corpus.is_unchanged(span.path):
        return unchanged(span)
    if other := corpus.same_elsewhere(span.path):
        return renamed(span, other)
    match = corpus.match(span.path, span.path)
    return place(match, span.first - 1, span.last - 1) if match else None


def _is_lost(found: Candidate | str | Carried | None) -> bool:
    if isinstance(found, str | Carried):
        return False
    if found is None:
        return True
    return not found.whole and (found.kept < _SURE or not found.by_name)


def _keys_to_find(span: Span, corpus: Corpus) -> set[bytes]:
    side = corpus.old_side(span.path)
    assert side is not None  # it was found to be there
    keys = side.text.keys
    if corpus.new_side(span.path) is None:
        return {*keys}
    top = _top_block(side, span)
    low, high = span.first - 1 - _AROUND, span.last + _AROUND
    if top is not None:
        low, high = min(low, top.first), max(high, top.last + 1)
    return {*keys[max(0, low) : high]}


def _top_block(side: FileSide, span: Span) -> Block | None:
    """Return the outermost definition around a span."""
    blocks = side.outline.children
    return next((b for b in blocks if b.first <= span.first - 1 <= b.last), None)


def _verdict(
    span: Span,
    found: Candidate | str | Carried | None,
    corpus: Corpus,
    *,
    search: bool,
) -> Carried:
    if isinstance(found, Carried):
        return found
    if isinstance(found, str):
        return refuse(span, found)
    candidates = [found] if found else []
    if search:
        candidates += _elsewhere(span, corpus)
    return decide(span, candidates, corpus)


# --- other places ---------------------------------------------------------------------


def _elsewhere(span: Span, corpus: Corpus) -> list[Candidate]:
    """Return where a span may stand in other definitions or files."""
    side = corpus.old_side(span.path)
    assert side is not None  # it was found to be there
    found: dict[tuple[str, int, int], Candidate] = {}
    for block in _ranges(side, span, corpus):
        key = span.path, block.first, block.last
        if key not in corpus.windows:
            corpus.windows[key] = _windows(block, side, corpus)
        for path, low, high in corpus.windows[key]:
            candidate = _in_window(span, block, side, path, low, high, corpus)
            if candidate is None:
                continue
            at = candidate.path, candidate.first, candidate.last
            known = found.get(at)
            if known is None or known.around < candidate.around:
                found[at] = candidate
    return [*found.values()]


def _ranges(side: FileSide, span: Span, corpus: Corpus) -> Iterable[Block]:
    """Yield what is looked for: the file, each definition around, the span itself."""
    first, last = span.first - 1, span.last - 1
    if corpus.new_side(span.path) is None:
        yield side.outline
    blocks = []
    block: Block | None = side.block_at(first)
    while block is not None and block.parent is not None:
        blocks.append(block)
        block = block.parent
    for each in reversed(blocks):
        if each.first <= first and last <= each.last:
            yield each
    around = Block(b"", -1, max(0, first - _AROUND), first, last + _AROUND, None)
    around.last = min(around.last, len(side.text.lines) - 1)
    yield around


def _windows(
    block: Block, side: FileSide, corpus: Corpus
) -> list[tuple[str, int, int]]:
    """Return where in the new tree many lines of a block stand close together."""
    size = block.last - block.first + 1
    votes: dict[tuple[str, int], float] = defaultdict(float)
    reach: dict[tuple[str, int], list[int]] = {}
    total = 0.0
    width = max(40, size)
    for n in range(block.first, block.last + 1):
        key = side.text.keys[n]
        hits = corpus.hits.get(key)
        total += corpus.weight(key)
        if not hits or not (worth := rarity(len(hits)) * corpus.weight(key)):
            continue
        for path, line in hits:
            for bucket in {(line - (n - block.first)) // width + k for k in (0, 1)}:
                at = path, bucket
                votes[at] += worth
                low_high = reach.setdefault(at, [line, line])
                low_high[0] = min(low_high[0], line)
                low_high[1] = max(low_high[1], line)
    best = sorted(votes, key=lambda at: -votes[at])[: _MAX_PLACES * 2]
    least = max(0.5, 0.06 * total)
    windows: list[tuple[str, int, int]] = []
    for at in best:
        if votes[at] < least:
            continue
        path, (low, high) = at[0], reach[at]
        if any(p == path and low <= b and a <= high for p, a, b in windows):
            continue
        windows.append((path, low, high))
    return windows[:_MAX_PLACES]


def _in_window(
    span: Span,
    block: Block,
    side: FileSide,
    path: str,
    low: int,
    high: int,
    corpus: Corpus,
) -> Candidate | None:
    """Return where a span stands when its block is laid over a part of a file."""
    new = corpus.new_side(path)
    if new is None:
        return None
    if block.parent is None and block is side.outline:
        match = corpus.match(span.path, path)
    else:
        match = _laid_over(block, side, new, low, high, corpus)
    found = place(match, span.first - 1, span.last - 1) if match else None
    if found is None or not found.kept:
        return None
    taken = _taken(found, span, corpus)
    alike = _path_likeness(span.path, path)
    return replace(
        found,
        elsewhere=True,
        taken=taken,
        path_likeness=alike,
        home=corpus.hosts(span.path, path),
        file_gone=corpus.new_side(span.path) is None,
    )


def _path_likeness(one: str, other: str) -> float:
    """Return how many parts of two paths are the same, from both ends: 0 to 1."""
    a, b = one.split("/"), other.split("/")
    shortest = min(len(a), len(b))
    head = sum(1 for _ in takewhile(lambda p: p[0] == p[1], zip(a, b, strict=False)))
    pairs = zip(a[::-1], b[::-1], strict=False)
    tail = sum(1 for _ in takewhile(lambda p: p[0] == p[1], pairs))
    # The top of the tree is a part that all paths share.
    return 2 * (1 + min(shortest, head + tail)) / (len(a) + len(b) + 2)


def _laid_over(
    block: Block, side: FileSide, new: FileSide, low: int, high: int, corpus: Corpus
) -> FileMatch:
    """Match a block with the definition around some lines, or with the lines alone."""
    one = block
    other = new.block_at(low)
    while other.parent is not None and other.last < high:
        other = other.parent
    if other.parent is None or block.parent is None:
        margin = _AROUND * 2
        stop = min(len(new.text.lines) - 1, high + margin)
        other = Block(b"", -1, max(0, low - margin), low, stop, None)
    if block.parent is not None and other.parent is None:
        one = Block(b"", -1, block.first, block.head, block.last, None)
    return corpus.laid_over(side, new, one, other)


def _taken(found: Candidate, span: Span, corpus: Corpus) -> float:
    """Return how much of a place was there before, as something else."""
    if found.path != span.path and corpus.is_unchanged(found.path):
        return 1.0
    match = corpus.match(found.path, found.path)
    if match is None:
        return 0.0
    own: set[int] = set()
    if found.path == span.path:
        mine = range(span.first - 1, span.last)
        own = {match.image[n] for n in mine if n in match.image}
    keys = match.new.text.keys
    lines = [n for n in range(found.first, found.last + 1) if corpus.weight(keys[n])]
    was = sum(n in match.taken and n not in own for n in lines)
    return was / len(lines) if lines else 0.0
