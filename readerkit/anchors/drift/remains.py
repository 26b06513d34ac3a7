"""What is left around a span that may be gone: its file, its definition, its words."""

from __future__ import annotations

from collections.abc import Iterable

from readerkit.anchors.drift.corpus import Corpus
from readerkit.anchors.drift.text import FileText
from readerkit.model.anchor import Span

_SHORT = 4
_MAX_LINES = 400


def left_of(span: Span, corpus: Corpus) -> dict[str, float]:
    """Return features of what surrounds a span, whether or not it has a place."""
    old = corpus.old_side(span.path)
    if old is None:
        return {}
    first, last = span.first - 1, min(span.last, span.first + _MAX_LINES) - 1
    weight = sum(corpus.weight(key) for key in old.text.keys[first : last + 1])
    found = {"small": 1 / (1 + weight), "one line": float(first == last)}
    match = corpus.match(span.path, span.path)
    if match is None:
        return {**found, "no file": 1.0}
    block = old.block_at(first)
    while block.parent is not None and id(block) not in match.pair_of:
        block = block.parent
    there, by_name = match.pair_of.get(id(block), (match.new.outline, False))
    inside = block.parent is not None
    words = _words(old.text, range(first, last + 1))
    held = _words(match.new.text, range(there.first, there.last + 1))
    left = len(words & held) / len(words) if words else 0.0
    return {
        **found,
        "definition there": float(inside and by_name),
        "words left": left,
        "words left, inside": left * inside,
        "no word left": float(not left),
    }


def _words(text: FileText, numbers: Iterable[int]) -> set[bytes]:
    """Return the names on some lines that are no short ones."""
    words: set[bytes] = set()
    for number in numbers:
        words |= text.token_set(number)
    return {word for word in words if len(word) >= _SHORT and word[:1].isalpha()}
