"""Where a pattern can stand at all: a text of it that is looked up as bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from readerkit.anchors.gaps import GAP_TEXTS, PLACEHOLDERS
from readerkit.anchors.tree import UNCOUNTED, occurrences, parts, ungrouped
from readerkit.errors import AnchorError

TELLING_LENGTH = 6
MAX_PLACES = 2_000
"""Places of a needle that are looked at in one scope."""

_WORDS = re.compile(rb"[\w\x80-\xff]+")
_ALL = frozenset(range(256))
_WORD = frozenset(b for b in _ALL if b >= 128 or chr(b).isalnum() or b == ord("_"))
_SPACE = b" \t\r\n\f\\"  # a backslash joins lines
_DOT = ord(".")
_NO_WORD_OR_DOT = _WORD | {_DOT}
_ONLY_DOT = _ALL.difference(_SPACE, b".")
# Behind a name that is followed by one of these there is it, space, a comment, the
# end of a group or type parameters.
_NOT_BEHIND = {bytes([b]): _ALL.difference(_SPACE, b")#[", [b]) for b in b"(.["}


@dataclass(frozen=True, slots=True)
class Needle:
    """The text of a leaf that is likely to stand in few places."""

    text: bytes
    height: int
    """How many counted levels above it the pattern's top is."""
    not_before: frozenset[int]
    """Bytes that stand before it only where the pattern does not match."""
    not_behind: frozenset[int]
    owner: bytes
    """The name that it is an attribute of, if it is one: of ``a.b.c``, ``b``."""


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
    text = leaf.text
    not_before = _WORD if text[0] in _WORD else frozenset()
    not_behind = _WORD if text[-1] in _WORD else frozenset()
    if leaf.type == "identifier" and height and pattern.text:
        start = leaf.start_byte - pattern.start_byte
        before = pattern.text[:start].rstrip(_SPACE)
        # The dot of an attribute stands there or does not, as in the pattern.
        not_before = _ONLY_DOT if before.endswith(b".") else _NO_WORD_OR_DOT
        not_behind = _NOT_BEHIND.get(pattern.text[start + len(text) :][:1], _WORD)
    return Needle(text, height, not_before, not_behind, _owner(leaf))


def _owner(leaf: Node) -> bytes:
    attribute = leaf.parent
    if attribute is None or attribute.type != "attribute":
        return b""
    owner = attribute.child_by_field_name("object")
    if owner is not None and owner.type == "attribute":
        owner = owner.child_by_field_name("attribute")
    if owner is None or owner == leaf or owner.type != "identifier":
        return b""
    return b"" if owner.text in PLACEHOLDERS else owner.text or b""


def _telling_leaf(pattern: Node) -> Node | None:
    """Return the leaf of the last long word, else of the longest.

    The last name of a chain tells most: of ``torch.distributed.all_reduce`` the last.
    """
    words = [
        (word.start(), len(word[0]))
        for word in _WORDS.finditer(pattern.text or b"")
        if word[0] not in PLACEHOLDERS
    ]
    telling = [word for word in words if word[1] >= TELLING_LENGTH]
    words.sort(key=lambda word: (-word[1], -word[0]))
    for start, size in (*reversed(telling), *words):
        first = pattern.start_byte + start
        leaf = pattern.descendant_for_byte_range(first, first + size)
        if leaf is not None and _is_sure(leaf):
            is_word = leaf.end_byte - leaf.start_byte == size
            if is_word or leaf.type == "string_content":
                return leaf
    return None


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


def positions(needle: Needle, source: bytes, start: int, end: int) -> Iterator[int]:
    """Yield where a needle can stand in a scope.

    Raises:
        AnchorError: more places than anyone means.
    """
    text, size = needle.text, len(needle.text)
    not_before, not_behind, owner = needle.not_before, needle.not_behind, needle.owner
    count = 0
    for at in occurrences(text, source, start, end):
        if at and source[at - 1] in not_before:
            continue
        if at + size < len(source) and source[at + size] in not_behind:
            continue
        if owner and _has_other_owner(owner, source, at):
            continue
        count += 1
        if count > MAX_PLACES:
            raise AnchorError(
                f"{text.decode()!r} stands in over {MAX_PLACES:,} places here: "
                "name the symbol around the one that is meant"
            )
        yield at


def _has_other_owner(owner: bytes, source: bytes, at: int) -> bool:
    """Tell whether another name stands before the dot; space or a bracket may be it."""
    dot = at - 1
    begin = dot - len(owner)
    if dot < 1 or source[dot] != _DOT or source[dot - 1] not in _WORD:
        return False
    return not source.endswith(owner, 0, dot) or (
        begin > 0 and source[begin - 1] in _WORD
    )
