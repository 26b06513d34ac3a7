"""Where a pattern can stand at all: a text of it that is looked up as bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from readerkit.anchors.placeholders import GAP_TEXTS, PLACEHOLDERS
from readerkit.anchors.tree import UNCOUNTED, parts, ungrouped
from readerkit.errors import AnchorError

TELLING_LENGTH = 6
MAX_PLACES = 2_000
"""Places of a needle that are looked at in one scope."""

_WORDS = re.compile(rb"[\w\x80-\xff]+")
# A name and the names that it is an attribute of.
_CHAINS = re.compile(rb"(?:[\w\x80-\xff]+\.)*([\w\x80-\xff]{3,})")
_WORD = frozenset(b for b in range(256) if b >= 128 or chr(b).isalnum() or b == 95)
_NOTHING: frozenset[int] = frozenset()


@dataclass(slots=True)  # not frozen: that makes each one three times as slow
class Needle:
    """The text of a leaf that is likely to stand in few places."""

    text: bytes
    height: int
    """How many counted levels above it the pattern's top is."""


def needle_of(pattern: Node) -> Needle | None:
    """Return the needle of a pattern; None where all of it is a gap."""
    leaf = _telling_leaf(pattern) or max(
        filter(_is_sure, _leaves(pattern)),
        key=lambda leaf: leaf.end_byte - leaf.start_byte,
        default=None,
    )
    if leaf is None or not leaf.text:
        return None
    height, above = 0, leaf
    while above != pattern and above.parent is not None:
        above = above.parent
        height += above.type not in UNCOUNTED
    return Needle(leaf.text, height)


def _telling_leaf(pattern: Node) -> Node | None:
    """Return the leaf of the last long name, else of the longest word.

    The last name of a chain tells most: of ``torch.distributed.all_reduce`` the last.
    """
    text = pattern.text or b""
    for chain in reversed(list(_CHAINS.finditer(text))):
        start, end = chain.span(1)
        is_telling = end - chain.start() >= TELLING_LENGTH
        if is_telling and chain[1] not in PLACEHOLDERS:
            leaf = _leaf_at(pattern, start, end)
            if leaf is not None:
                return leaf
    words = [word.span() for word in _WORDS.finditer(text)]
    for start, end in sorted(words, key=lambda word: word[0] - word[1]):
        leaf = _leaf_at(pattern, start, end)
        if leaf is not None:
            return leaf
    return None


def _leaf_at(pattern: Node, start: int, end: int) -> Node | None:
    """Return the leaf that is a word of a pattern, or a string that holds it."""
    first = pattern.start_byte
    leaf = pattern.descendant_for_byte_range(first + start, first + end)
    if leaf is None or not _is_sure(leaf) or leaf.text in PLACEHOLDERS:
        return None
    is_word = leaf.end_byte - leaf.start_byte == end - start
    return leaf if is_word or leaf.type == "string_content" else None


def _leaves(node: Node) -> Iterator[Node]:
    if node.text in GAP_TEXTS:
        return
    inner = ungrouped(node)
    if inner.text not in GAP_TEXTS:
        node = inner
    if not node.child_count:
        yield node
    for part in parts(node):
        yield from _leaves(part)


def _is_sure(leaf: Node) -> bool:
    """Tell whether source that is like a leaf has its very bytes.

    No leaf in the source holds all of a string with escapes, and quotes or the space
    of ``not in`` can be others.
    """
    text = leaf.text or b""
    if leaf.child_count or b"\\" in text:
        return False
    return leaf.type == "string_content" or not (
        b" " in text or leaf.type.startswith("string_")
    )


def positions(text: bytes, source: bytes, start: int, end: int) -> list[int]:
    """Return where a text stands in a scope and is not a piece of a longer word.

    Raises:
        AnchorError: more places than anyone means.
    """
    size, last, find = len(text), len(source) - 1, source.find
    before = _WORD if text[0] in _WORD else _NOTHING
    behind = _WORD if text[-1] in _WORD else _NOTHING
    found = []
    at = find(text, start, end)
    while at >= 0:
        next_at = at + size
        if (at == 0 or source[at - 1] not in before) and (
            next_at > last or source[next_at] not in behind
        ):
            found.append(at)
            if len(found) > MAX_PLACES:
                raise AnchorError(
                    f"{text.decode()!r} stands in over {MAX_PLACES:,} places here: "
                    "name the symbol around the one that is meant"
                )
        at = find(text, next_at, end)
    return found
