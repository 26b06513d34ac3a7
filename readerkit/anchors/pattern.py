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
from readerkit.anchors.tree import (
    MAX_DEPTH,
    UNCOUNTED,
    check_depth,
    header,
    last_row,
    parts,
)
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
        self._is_header = self._code.endswith(":")
        statement = read_statement(self._code)
        self._statement = _with_needles([statement] if statement else [])
        if statement is None and not self._pieces:
            raise AnchorError(
                f"pattern {text!r} is not one expression, statement or header of "
                "Python (a range of several has 'from' and 'to')"
            )
        if statement is not None and not self._statement:
            raise AnchorError(f"pattern {text!r} matches everything: add a name to it")

    @cached_property
    def _pieces(self) -> list[tuple[Node, Needle]]:
        return _with_needles(read_pieces(self._code))

    def find(
        self, scopes: Sequence[Node], source: bytes, begin: int = 0
    ) -> list[Match]:
        """Return every match inside ``scopes``, in source order, the scopes included.

        A match begins at byte ``begin`` or behind it.
        """
        return self._search(self._statement, scopes, source, begin) or self._search(
            self._pieces, scopes, source, begin
        )

    def _search(
        self,
        readings: list[tuple[Node, Needle]],
        scopes: Sequence[Node],
        source: bytes,
        begin: int,
    ) -> list[Match]:
        found = {
            (node.start_byte, node.end_byte): node
            for pattern, needle in readings
            for scope in scopes
            for node in self._find(pattern, needle, scope, source, begin)
        }
        return [self._match(found[key]) for key in sorted(found)]

    def _find(
        self, pattern: Node, needle: Needle, scope: Node, source: bytes, begin: int
    ) -> Iterator[Node]:
        """Yield the nodes of a scope that are like a pattern.

        Only where the needle stands is the tree compared, from the ancestor as far
        above it as in the pattern.
        """
        compared: dict[tuple[int, int], bool] = {}
        start = max(scope.start_byte, begin)
        for position in positions(needle, source, start, scope.end_byte):
            longest = None
            for node in _ancestors(scope, position, needle):
                if not same_kind(pattern, node) or node.start_byte < begin:
                    continue
                key = (node.start_byte, node.end_byte)
                if key not in compared:
                    compared[key] = same_content(
                        pattern, node, is_header=self._is_header
                    )
                if compared[key]:
                    longest = node
            if longest is not None:
                yield longest

    def _match(self, node: Node) -> Match:
        last = last_row(node)
        if self._is_header:
            definition = node.type == "decorated_definition"
            inner = parts(node)[-1] if definition else node
            last = header(parts(inner))[-1].end_point[0]
        return Match(node, node.start_point[0] + 1, last + 1)


def _with_needles(patterns: list[Node]) -> list[tuple[Node, Needle]]:
    needles = ((pattern, needle_of(pattern)) for pattern in patterns)
    return [(pattern, needle) for pattern, needle in needles if needle]


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
