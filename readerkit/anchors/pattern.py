"""Code patterns: a few tokens of Python in which ``...`` stands for anything.

A pattern is one expression, one statement, or the header of a compound statement
(``def f(...):``, ``elif x:``, ``except E:``, ``case 1:``), which stands for the lines
up to its colon; a decorator may stand alone or before a header. It is parsed with the
language's own grammar after ``...`` became a placeholder (a gap), and compared node by
node with the source.

**What a pattern writes must be there, and what it does not write must not**:
``raise E(...)`` is no ``raise E(...) from e``, ``with f():`` no ``with f() as g:``,
``class A:`` no ``class A(B):``, ``def f():`` no ``async def f():``, and the order of
keyword arguments counts. Left out of this, because two people write it differently and
mean the same:

- white space, line breaks, comments, a comma at the end;
- parentheses that only group (``x = (\\n    y\\n)``) or only hold lines together
  (``from a import (b)``), and the kind of quotes around a string;
- type annotations and type parameters, where the pattern writes none: ``x = ...``
  finds ``x: int = 3``, ``def f(a, b=...):`` finds ``def f(a: int, b: str = "") -> T:``.

**A gap** stands for one node; where nodes come in a list (arguments, parameters,
elements, entries, names, decorators, cases, statements of a body, operands of a chain
of operators) for any number of them, none included: ``f(..., b)`` finds ``f(b)``, and
``a or ...`` finds ``a or b or c``. ``(...)``, ``[...]`` and ``{...}`` stand for
whatever is in such brackets. A body that is a gap (``if x: ...``, ``try: ...``) takes
the clauses behind it along. Dots inside a string stay dots, also in the braces of an
f-string.

**Readings.** ``group=...`` is first read as a statement. Only where no such statement
stands in the scope it is read as a keyword argument, an entry of a dictionary
(``key: ...``) or a parameter: the pieces that have lines of their own in formatted
code. Of matches that contain each other in one chain of operators, the longest counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tree_sitter import Node

from readerkit.anchors.compare import same_content, same_kind
from readerkit.anchors.gaps import read_pieces, read_statement, with_gaps
from readerkit.anchors.needle import Needle, needle_of, positions
from readerkit.anchors.shape import Header, Shape
from readerkit.anchors.tree import MAX_DEPTH, UNCOUNTED, check_depth, last_row
from readerkit.errors import AnchorError


@dataclass(slots=True)  # not frozen: that makes each one three times as slow
class Match:
    """A node that a pattern matched, and the lines that it stands for."""

    node: Node
    first: int
    last: int


@lru_cache(maxsize=4096)
def compile_pattern(text: str) -> Pattern:
    """Return the compiled pattern, the same one for the same text.

    Raises:
        AnchorError: see ``Pattern``.
    """
    return Pattern(text)


class Pattern:
    """A compiled pattern.

    Raises:
        AnchorError: text that is not one expression, statement, header or piece of a
            list; or that says nothing.
    """

    def __init__(self, text: str) -> None:
        self._code = with_gaps(text)
        node = read_statement(self._code)
        is_header = self._code.endswith(":")
        self._statement = _with_needles([node] if node else [], is_header)
        if node is None and not self._pieces:
            raise AnchorError(
                f"pattern {text!r} is not one expression, statement or header of "
                "Python (a range of several has 'from' and 'to')"
            )
        if node is not None and not self._statement:
            raise AnchorError(f"pattern {text!r} matches everything: add a name to it")

    @cached_property
    def _pieces(self) -> list[tuple[Shape, Needle]]:
        return _with_needles(read_pieces(self._code))

    def find(
        self, scopes: Sequence[Node], source: bytes, begin: int = 0
    ) -> list[Match]:
        """Return every match inside ``scopes``, in source order, the scopes included.

        A match begins at byte ``begin`` or behind it.
        """
        return _find_all(self._statement, scopes, source, begin) or _find_all(
            self._pieces, scopes, source, begin
        )


def _with_needles(
    nodes: list[Node], is_header: bool = False
) -> list[tuple[Shape, Needle]]:
    shapes = [Header(node) if is_header else Shape(node) for node in nodes]
    return [(shape, needle) for shape in shapes if (needle := needle_of(shape.node))]


def _find_all(
    shapes: list[tuple[Shape, Needle]],
    scopes: Sequence[Node],
    source: bytes,
    begin: int,
) -> list[Match]:
    found = {
        (node.start_byte, node.end_byte): _match(shape, node)
        for shape, needle in shapes
        for scope in scopes
        for node in _find(shape, needle, scope, source, begin)
    }
    return [found[key] for key in sorted(found)]


def _match(shape: Shape, node: Node) -> Match:
    last = shape.last_row_of(node) if isinstance(shape, Header) else last_row(node)
    return Match(node, node.start_point[0] + 1, last + 1)


def _find(
    shape: Shape, needle: Needle, scope: Node, source: bytes, begin: int
) -> Iterator[Node]:
    """Yield the nodes of a scope that are like a shape.

    Only where the needle stands is the tree compared, from the ancestor as far above
    it as in the pattern.
    """
    compared: dict[tuple[int, int], bool] = {}
    start = max(scope.start_byte, begin)
    for position in positions(needle, source, start, scope.end_byte):
        longest = None
        for node in _ancestors(scope, position, needle):
            if not same_kind(shape, node.type) or node.start_byte < begin:
                continue
            key = (node.start_byte, node.end_byte)
            if key not in compared:
                compared[key] = same_content(shape, node)
            if compared[key]:
                longest = node
        if longest is not None:
            yield longest


def _ancestors(scope: Node, position: int, needle: Needle) -> list[Node]:
    """Return the nodes that a pattern with this needle could be.

    There are several where levels that do not count follow each other.
    """
    cursor = scope.walk()
    go_down = cursor.goto_first_child_for_byte
    for _ in range(MAX_DEPTH + 1):
        if go_down(position) is None:
            break
    else:
        check_depth(scope, MAX_DEPTH + 1)
    node = cursor.node
    end = position + len(needle.text)
    if node is None or node.start_byte != position or node.end_byte != end:
        return []
    height = needle.height
    while height:
        if not cursor.goto_parent():
            return []
        node = cursor.node
        assert node is not None  # a cursor stands on a node
        height -= node.type not in UNCOUNTED
    found = [node]
    while cursor.goto_parent():
        node = cursor.node
        assert node is not None
        if node.type not in UNCOUNTED:
            break
        found.append(node)
    return found
