"""What is said of a span: its likeliest place, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from readerkit.anchors.drift.confidence import (
    chance,
    features,
    gone_chance,
    gone_features,
)
from readerkit.anchors.drift.corpus import Corpus
from readerkit.anchors.drift.remains import left_of
from readerkit.anchors.drift.span_place import Candidate
from readerkit.model.anchor import Span
from readerkit.model.git_names import TreePath

SpanStatus = Literal["same", "moved", "edited", "gone", "unsure"]
"""What may be said of one span; that a note was split is said of its parts together."""
SURE = 0.92
SURELY_GONE = 0.9
"""From these chances on a verdict is given; below, it is said to be unsure."""
_CLEAR = 0.97
"""Nobody asks whether a span is gone that has so likely a place."""
_MAX_CLOSING = 12
"""Lines behind a place in which a bracket that it opens is looked for."""


@dataclass(frozen=True, slots=True)
class Carried:
    """Where a span stands in another revision."""

    span: Span
    status: SpanStatus
    to: Span | None
    """The place; of one that is unsure, the best guess."""
    confidence: float
    """How likely exactly this place is the right one: 0 to 1."""
    reason: str
    candidate: Candidate | None = None
    parts: tuple[Span, ...] = ()
    """Where other parts of it went, where it was split."""


def refuse(span: Span, reason: str) -> Carried:
    """Return that nothing can be said of a span, and why."""
    return Carried(span, "unsure", None, 0.0, reason)


def unchanged(span: Span) -> Carried:
    """Return that a span is where it was, in a file that is byte for byte the same."""
    return Carried(span, "same", span, 1.0, "the file is the same")


def renamed(span: Span, path: str) -> Carried:
    """Return that a span is in a file that has another name, and is the same else."""
    to = Span(TreePath(path), span.first, span.last)
    return Carried(span, "moved", to, 0.99, f"the whole file is {path} now")


def decide(span: Span, candidates: list[Candidate], corpus: Corpus) -> Carried:
    """Return the likeliest of some places, or that there is none."""
    scored = [(features(each, candidates), each) for each in candidates]
    ranked = sorted(
        ((chance(found), found, each) for found, each in scored),
        key=lambda row: (-row[0], -row[2].path_likeness),
    )
    best, marks, found = ranked[0] if ranked else (0.0, None, None)
    gone = 0.0
    if best <= _CLEAR:
        gone = gone_chance(gone_features(best, marks, left_of(span, corpus)))
    if found is not None and (best >= SURE or (gone < SURELY_GONE and best >= gone)):
        to = _closed(span, found, corpus)
        status = _status(span, to, corpus) if best >= SURE else "unsure"
        parts = _parts(found, candidates)
        return Carried(span, status, to, best, _why(found), found, parts)
    status = "gone" if gone >= SURELY_GONE else "unsure"
    said = (
        "nothing like it is left"
        if found is None
        else "what is like it was there before, as something else, or is too unlike"
    )
    return Carried(span, status, None, gone, said, None)


def _closed(span: Span, found: Candidate, corpus: Corpus) -> Span:
    """Return a place as lines; brackets that were closed in it are closed there too."""
    last = found.last
    old, new = corpus.old_side(span.path), corpus.new_side(found.path)
    if old is not None and new is not None:
        more = new.text.balance(found.first, last)
        if more > 0 and old.text.balance(span.first - 1, span.last - 1) == 0:
            ends = range(last + 1, min(len(new.text.lines), last + 1 + _MAX_CLOSING))
            for end in ends:
                more += new.text.balance(end, end)
                if more <= 0:
                    last = end if more == 0 else last
                    break
    return Span(TreePath(found.path), found.first + 1, last + 1)


def _status(span: Span, to: Span, corpus: Corpus) -> SpanStatus:
    """Return whether a span is the same there: white space does not count."""
    old, new = corpus.old_side(span.path), corpus.new_side(to.path)
    assert old is not None and new is not None  # a place was found between them
    was = b"".join(old.text.keys[span.first - 1 : span.last])
    now = b"".join(new.text.keys[to.first - 1 : to.last])
    if was != now:
        return "edited"
    return "same" if span == to else "moved"


def _parts(found: Candidate, candidates: list[Candidate]) -> tuple[Span, ...]:
    """Return the places of what a place lacks, each of them new there."""
    if found.kept > 0.85:
        return ()
    parts = [
        each
        for each in candidates
        if each.share >= 0.2
        and each.taken < 0.2
        and each.share + found.share < 1.15
        and (each.path != found.path or not _overlap(each, found))
    ]
    apart: list[Candidate] = []
    for each in sorted(parts, key=lambda each: -each.share):
        if not any(each.path == p.path and _overlap(each, p) for p in apart):
            apart.append(each)
    return tuple(Span(TreePath(p.path), p.first + 1, p.last + 1) for p in apart)


def _overlap(one: Candidate, other: Candidate) -> bool:
    return one.first <= other.last and other.first <= one.last


def _why(found: Candidate) -> str:
    """Return in words what a place rests on."""
    kept = f"{found.share:.0%} of it is there word for word"
    if found.kept - found.share > 0.005:
        kept += f", {found.kept - found.share:.0%} like it"
    ends = [
        f"its {name} line {'was edited' if edge.likeness else 'is gone'}"
        for name, edge in (("first", found.start), ("last", found.end))
        if not edge.exact
    ]
    around = f"{found.around:.0%} of what stood beside it still does"
    return "; ".join([kept, *ends, around])
