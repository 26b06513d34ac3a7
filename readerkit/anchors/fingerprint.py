"""What identifies code after its lines moved: hashes of tokens, and no text.

White space and comments do not count. A drifted anchor can be found again by the
fingerprints of its lines, of its neighbours and of its symbol.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from tree_sitter import Node

from readerkit.anchors.source import SourceFile
from readerkit.model.anchor import Fingerprint, Span
from readerkit.model.code_languages import COMMENTS

NEIGHBOUR_LINES = 3
_OPAQUE = {"string_content"}
_OPEN, _CLOSE = b"\1", b"\2"  # no token holds these


def fingerprint(span: Span, source: SourceFile) -> Fingerprint:
    """Return the fingerprints of ``span`` in ``source``."""
    around = 40  # lines looked at for neighbours: enough to cross a long comment
    first = max(1, span.first - around)
    last = min(len(source.raw_lines), span.last + around)
    tokens = _tokens_by_line(source, first, last)
    inside = [tokens.get(number, []) for number in range(span.first, span.last + 1)]
    before = [tokens[n] for n in range(first, span.first) if n in tokens]
    after = [tokens[n] for n in range(span.last + 1, last + 1) if n in tokens]
    symbol = source.symbol_around(span.first, span.last)
    symbol_tokens = _tokens_by_line(source, symbol.first, symbol.last) if symbol else {}
    return Fingerprint(
        code=_digest([_code_tokens(span, source)]),
        lines=tuple(_digest([line])[:8] if line else "" for line in inside),
        before=_digest(before[-NEIGHBOUR_LINES:]),
        after=_digest(after[:NEIGHBOUR_LINES]),
        symbol=_digest([[t for n in sorted(symbol_tokens) for t in symbol_tokens[n]]]),
    )


def is_same_of_equals(
    span: Span, equals: Iterable[Span], was: Fingerprint, source: SourceFile
) -> bool:
    """Tell whether a place is that of a fingerprint, and not one of its equals.

    Their code is the same, so the lines around them tell: more of those of the
    fingerprint are around it than around any other.
    """
    mine = _sides(fingerprint(span, source), was)
    if mine in (0, 2):
        return mine == 2
    others = (fingerprint(each, source) for each in equals if each != span)
    return all(_sides(other, was) < mine for other in others if other.code == was.code)


def _sides(now: Fingerprint, was: Fingerprint) -> int:
    return (now.before == was.before) + (now.after == was.after)


def _digest(lines: list[list[bytes]]) -> str:
    if not any(lines):
        return ""
    text = b"\n".join(b"\0".join(line) for line in lines)
    return hashlib.sha256(text).hexdigest()[:16]


def _code_tokens(span: Span, source: SourceFile) -> list[bytes]:
    """Return the tokens of a span, wherever its lines break.

    Blocks that open inside it are marked at both ends: indentation is syntax without a
    text of its own, and a statement that leaves its ``if`` has changed.
    """
    tokens: list[bytes] = []
    layout = _Layout() if source.language.is_laid_out else None
    for step, node in _steps(source.root, span.first - 1, span.last - 1):
        if layout is not None and not step:
            tokens += layout.marks(node)
        if step:
            if layout is None and node.start_point[0] >= span.first:
                tokens.append(_OPEN if step > 0 else _CLOSE)
            continue
        row = node.start_point[0] + 1
        parts = source.data[node.start_byte : node.end_byte].split(b"\n")
        tokens += [
            part.strip()
            for offset, part in enumerate(parts)
            if span.first <= row + offset <= span.last and part.strip()
        ]
    # What follows the span, a comment say, decides whether its last blocks end there.
    while tokens and tokens[-1] == _CLOSE:
        tokens.pop()
    return tokens


class _Layout:
    """The indentation of a language in which it is syntax, as marks between tokens.

    Inside of brackets it is none.
    """

    def __init__(self) -> None:
        self._row, self._depth = -1, 0
        self._columns: list[int] = []

    def marks(self, token: Node) -> Iterator[bytes]:
        """Yield a mark for each block that opens or ends before a token."""
        row, column = token.start_point
        is_first, self._row = row != self._row, token.end_point[0]
        if is_first and not self._depth:
            while len(self._columns) > 1 and column < self._columns[-1]:
                self._columns.pop()
                yield _CLOSE
            if not self._columns:
                self._columns.append(column)
            elif column > self._columns[-1]:
                self._columns.append(column)
                yield _OPEN
        text = token.text or b""
        if len(text) == 1:
            self._depth += (text in b"([{") - (text in b")]}")
            self._depth = max(0, self._depth)


def _tokens_by_line(
    source: SourceFile, first: int, last: int
) -> dict[int, list[bytes]]:
    """Return the tokens on each line of a range; lines without any are absent.

    A token of several lines (a docstring) gives each of its lines a part.
    """
    tokens: dict[int, list[bytes]] = {}
    for step, leaf in _steps(source.root, first - 1, last - 1):
        if step:
            continue
        row = leaf.start_point[0] + 1
        text = source.data[leaf.start_byte : leaf.end_byte]
        for offset, part in enumerate(text.split(b"\n")):
            if first <= row + offset <= last and part.strip():
                tokens.setdefault(row + offset, []).append(part.strip())
    return tokens


def _steps(root: Node, first_row: int, last_row: int) -> Iterator[tuple[int, Node]]:
    """Walk what touches rows of a range, comments left out.

    Yields:
        0 and a leaf; 1 and a block that the walk enters, -1 and one that it leaves.
    """
    cursor = root.walk()
    while True:
        node = cursor.node
        assert node is not None  # a cursor stands on a node
        if node.start_point[0] > last_row:
            return
        touches = node.end_point[0] >= first_row and node.type not in COMMENTS
        if touches and node.type not in _OPAQUE and cursor.goto_first_child():
            if node.type == "block":
                yield 1, node
            continue
        if touches and node.end_byte > node.start_byte:
            yield 0, node
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
            parent = cursor.node
            if parent is not None and parent.type == "block":
                yield -1, parent
