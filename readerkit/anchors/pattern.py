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

**A call**, ``a.b.c(...)``, is the most common pattern: its bytes settle nearly every
place. Where they do not, because space, a comment or a parenthesis stands between the
names, the syntax trees are compared as for every other pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from keyword import iskeyword, issoftkeyword

from tree_sitter import Node

from readerkit.anchors.pattern_node import Header, PatternNode, same_content, same_kind
from readerkit.anchors.placeholders import read_pieces, read_statement, with_gaps
from readerkit.anchors.search_token import Needle, needle_of, positions
from readerkit.anchors.tree import MAX_DEPTH, UNCOUNTED, check_depth
from readerkit.errors import AnchorError

_CALL = re.compile(r"((?:[A-Za-z_]\w*\.)*)([A-Za-z_]\w*)\(\.\.\.\)", re.ASCII)
_STATEMENTS_ONCE = {"print", "exec"}  # the grammar still knows them
# Behind the last name, or the end of a group around it: the call, or what may hide it.
_CALL_BEHIND = re.compile(rb"[\s)]*[(\\#]")
_NAME_AND_DOT_BEFORE = re.compile(rb"[\w\x80-\xff]\.")
_SPACE_OR_DOT = b" \t\r\n\f\\."


@dataclass(slots=True)
class CallPattern:
    """A call of a name with any arguments."""

    owners: bytes
    """The names before the last one, each with its dot."""
    name: bytes

    def node_at(self, position: int, scope: Node, source: bytes) -> Node | None:
        """Return the call whose last name stands at a position, if there is one.

        Raises:
            LookupError: the bytes do not tell.
        """
        behind = position + len(self.name)
        first = position - len(self.owners)
        if not _CALL_BEHIND.match(source, behind):
            return None
        if not source.endswith(self.owners, 0, position):
            owner = self.owners[self.owners.rfind(b".", 0, -1) + 1 :]
            if _NAME_AND_DOT_BEFORE.match(source, position - 2):
                if not source.endswith(owner, 0, position):
                    return None  # an attribute of another name
            elif source[position - 1] not in _SPACE_OR_DOT:
                return None  # no attribute
            raise LookupError
        if source[behind] != ord("("):
            raise LookupError
        # The smallest node from the first name to the bracket.
        node = scope.descendant_for_byte_range(first, behind + 1)
        is_call = node is not None and node.type == "call" and node.start_byte == first
        return node if is_call else None


def read_call(text: str) -> CallPattern | None:
    """Return the call that the text of a pattern is; None where it is more than one."""
    match = _CALL.fullmatch(text)
    if match is None:
        return None
    owners, name = match[1], match[2]
    names = [*owners.split("."), name]
    if any(map(iskeyword, names)) or issoftkeyword(name) or name in _STATEMENTS_ONCE:
        return None
    return CallPattern(owners.encode(), name.encode())


@dataclass(slots=True)  # not frozen: that makes each one three times as slow
class PatternMatch:
    """A node that a pattern matched, and the lines that it stands for."""

    node: Node
    first: int
    last: int
    start: int = -1
    """The byte where it begins, if that is not where the node does."""

    @property
    def begin(self) -> int:
        """The byte where it begins."""
        return self.node.start_byte if self.start < 0 else self.start


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
        self.text = text
        self._call = read_call(text)
        if self._call is None and not self._statement and not self._pieces:
            raise AnchorError(
                f"pattern {text!r} is not one expression, statement or header of "
                "Python (a range of several has 'from' and 'to')"
            )

    @cached_property
    def _statement(self) -> list[_Reading]:
        code = with_gaps(self.text)
        node = read_statement(code)
        if node is None:
            return []
        shape = Header(node) if code.endswith(":") else PatternNode(node)
        needle = needle_of(shape.node)
        if needle is None:
            raise AnchorError(
                f"pattern {self.text!r} matches everything: add a name to it"
            )
        return [_Reading(shape, needle)]

    @cached_property
    def _pieces(self) -> list[_Reading]:
        shapes = map(PatternNode, read_pieces(with_gaps(self.text)))
        needles = ((shape, needle_of(shape.node)) for shape in shapes)
        return [_Reading(shape, needle) for shape, needle in needles if needle]

    def may_stand_in(self, source: bytes) -> bool:
        """Tell whether some bytes have a text of it at all, before they are parsed."""
        if self._call is not None:
            return self._call.name in source
        readings = (*self._statement, *self._pieces)
        return any(reading.needle.text in source for reading in readings)

    def find(
        self, scopes: Sequence[Node], source: bytes, begin: int = 0
    ) -> list[PatternMatch]:
        """Return every match inside ``scopes``, in source order, the scopes included.

        A match begins at byte ``begin`` or behind it.
        """
        if self._call is not None:
            return self._find_call(self._call, scopes, source, begin)
        for readings in (self._statement, self._pieces):
            matches = _in_order(
                match
                for reading in readings
                for scope in scopes
                for match in reading.find(scope, source, begin)
            )
            if matches:
                return matches
        return []

    def _find_call(
        self, call: CallPattern, scopes: Sequence[Node], source: bytes, begin: int
    ) -> list[PatternMatch]:
        matches = []
        for scope in scopes:
            start = max(scope.start_byte, begin)
            for position in positions(call.name, source, start, scope.end_byte):
                try:
                    node = call.node_at(position, scope, source)
                except LookupError:
                    [reading] = self._statement
                    height = 2 if call.owners else 1  # the attribute, the call
                    by_name = _Reading(reading.shape, Needle(call.name, height))
                    node = by_name.node_at(position, scope, begin, {})
                if node is not None and node.start_byte >= start:
                    first, last = node.start_point[0] + 1, node.end_point[0] + 1
                    matches.append(PatternMatch(node, first, last))
        return matches


@dataclass(slots=True)
class _Reading:
    """One way to read a pattern."""

    shape: PatternNode
    needle: Needle

    def find(self, scope: Node, source: bytes, begin: int) -> Iterator[PatternMatch]:
        """Yield the matches in a scope.

        Only where the needle stands is the tree compared, from the ancestor as far
        above it as in the pattern.
        """
        start = max(scope.start_byte, begin)
        compared: dict[tuple[int, int], bool] = {}
        for position in positions(self.needle.text, source, start, scope.end_byte):
            node = self.node_at(position, scope, begin, compared)
            if node is not None:
                last = self.shape.last_row_of(node)
                yield PatternMatch(node, node.start_point[0] + 1, last + 1)

    def node_at(
        self,
        position: int,
        scope: Node,
        begin: int,
        compared: dict[tuple[int, int], bool],
    ) -> Node | None:
        """Return the largest match whose needle stands at a position.

        What was compared before is looked up: all names of a chain lead to the chain.
        """
        longest = None
        for node in _ancestors(scope, position, self.needle):
            if not same_kind(self.shape, node.type) or node.start_byte < begin:
                continue
            key = (node.start_byte, node.end_byte)
            if key not in compared:
                compared[key] = same_content(self.shape, node)
            if compared[key]:
                longest = node
        return longest


def _in_order(matches: Iterable[PatternMatch]) -> list[PatternMatch]:
    """Return matches by their place; two needles can stand in one of them."""
    some = list(matches)
    if len(some) < 2:
        return some
    found = {(match.node.start_byte, match.node.end_byte): match for match in some}
    return [found[key] for key in sorted(found)]


def _ancestors(scope: Node, position: int, needle: Needle) -> list[Node]:
    """Return the nodes that a pattern with this needle could be.

    There are several where levels that do not count follow each other.
    """
    cursor = scope.walk()
    go_down, go_up = cursor.goto_first_child_for_byte, cursor.goto_parent
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
        if not go_up():
            return []
        node = cursor.node
        assert node is not None  # a cursor stands on a node
        height -= node.type not in UNCOUNTED
    found = [node]
    while go_up():
        node = cursor.node
        assert node is not None
        if node.type not in UNCOUNTED:
            break
        found.append(node)
    return found
