"""Code patterns: a few tokens of Python in which ``...`` stands for anything.

A pattern is parsed with the language's own grammar after ``...`` became a placeholder
(a gap), and compared node by node. White space, comments and separating commas do not
count. A gap stands for one node, or for any number of them where nodes come in a list
(arguments, elements, statements of a body).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node, Parser

from readerkit.anchors.source import PYTHON
from readerkit.anchors.tree import last_row, occurrences
from readerkit.errors import AnchorError

MAX_PATTERN_BYTES = 2_000
TELLING_LENGTH = 6
MAX_DEPTH = 1_000
"""Levels of nesting that a search descends before it gives up on a place."""

_GAP = "__gap_0f3b__"
_GAP_BYTES = _GAP.encode()
_PARSER = Parser(PYTHON)
_WORD = frozenset(
    bytes([byte])
    for byte in range(256)
    if byte >= 128 or chr(byte).isalnum() or byte == 95
)
# A string first, so that three dots inside one stay three dots.
_STRING_OR_DOTS = re.compile(
    r"""('''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|\#[^\n]*)|(\.\.\.)""",
    re.DOTALL,
)
_SKIPPED = {"comment", "line_continuation", ","}
_LISTS = {
    "argument_list",
    "assert_statement",
    "block",
    "delete_statement",
    "dictionary",
    "expression_list",
    "import_from_statement",
    "import_statement",
    "lambda_parameters",
    "list",
    "list_pattern",
    "parameters",
    "pattern_list",
    "raise_statement",
    "set",
    "subscript",
    "tuple",
    "tuple_pattern",
    "type_parameter",
    "with_clause",
}
_BRACKETS = {("(", ")"), ("[", "]"), ("{", "}")}
_TRAILING_CLAUSES = {
    "elif_clause",
    "else_clause",
    "except_clause",
    "except_group_clause",
    "finally_clause",
}
# Headers that are statements only behind another one: (what stands before, indent).
_FRAMES = {
    "elif": (f"if {_GAP}:\n {_GAP}\n", ""),
    "else": (f"if {_GAP}:\n {_GAP}\n", ""),
    "except": (f"try:\n {_GAP}\n", ""),
    "finally": (f"try:\n {_GAP}\n", ""),
    "case": (f"match {_GAP}:\n", " "),
}


@dataclass(slots=True)
class _Shape:
    """A pattern's node."""

    kind: str
    text: bytes | None
    """Of a leaf with a text of its own; None where the kind says it all."""
    children: list[_Shape]
    is_gap: bool = False


@dataclass(frozen=True, slots=True)
class _Needle:
    """The text of one leaf of a pattern, which can be looked up as bytes."""

    text: bytes
    depth: int
    """How many levels below the pattern's top it stands."""
    is_word: bool

    def positions(self, source: bytes, start: int, end: int) -> Iterator[int]:
        """Yield where the text stands and is not a piece of a longer name."""
        size = len(self.text)
        for at in occurrences(self.text, source, start, end):
            if not self.is_word or (
                source[at - 1 : at] not in _WORD
                and source[at + size : at + size + 1] not in _WORD
            ):
                yield at


@dataclass(frozen=True, slots=True)
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
        AnchorError: text that is not one expression, statement or header.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text.encode()) > MAX_PATTERN_BYTES:
            raise AnchorError(
                f"pattern is too long: got {len(text):,} characters, expected a few "
                f"tokens (at most {MAX_PATTERN_BYTES:,} bytes)"
            )
        stripped = text.strip()
        self.is_header = stripped.endswith(":")
        leaves: list[_Needle] = []
        top = _parse(stripped, self.is_header)
        self._shape = _shape(top, 0, leaves, self.is_header)
        if not leaves:
            raise AnchorError(f"pattern {text!r} matches everything: add a name to it")
        self._needle = _rarest(leaves)

    def find(self, scope: Node, source: bytes) -> list[Match]:
        """Return every match inside ``scope``, in source order, the scope included.

        A rare text of the pattern is looked up as bytes; only where it stands is
        the tree compared, from the ancestor as far above it as in the pattern.
        """
        start, end = scope.start_byte, scope.end_byte
        size, depth, kind = len(self._needle.text), self._needle.depth, self._shape.kind
        found: dict[tuple[int, int], Match] = {}
        for position in self._needle.positions(source, start, end):
            node = _ancestor_of_leaf(scope, position, size, depth)
            if node is not None and node.type == kind:
                key = (node.start_byte, node.end_byte)
                if key not in found and self._matches(node):
                    found[key] = self._match(node)
        return [found[key] for key in sorted(found)]

    def _matches(self, node: Node) -> bool:
        children = _significant(node)
        if self.is_header:
            children = _header(children)
        return _same_children(self._shape, children)

    def _match(self, node: Node) -> Match:
        last = last_row(node)
        if self.is_header:
            last = _header(_significant(node))[-1].end_point[0]
        return Match(node, node.start_point[0] + 1, last + 1)


def _parse(text: str, is_header: bool) -> Node:
    """Return the pattern's own node, below module and statement wrappers."""
    code = _STRING_OR_DOTS.sub(lambda m: m[1] or f" {_GAP} ", text).strip()
    word = re.match(r"[a-z]+", code)
    frame, indent = _FRAMES.get(word[0] if word else "", ("", ""))
    body = f" {_GAP}" if is_header else ""
    root = _PARSER.parse(f"{frame}{indent}{code}{body}\n".encode()).root_node
    statements = _significant(root)
    if root.has_error or len(statements) != 1:
        raise AnchorError(
            f"pattern {text!r} is not one expression, statement or header of Python"
        )
    node = statements[0]
    if frame:
        node = _significant(node)[-1]
        if node.type == "block":  # a case clause stands in a match statement's block
            node = _significant(node)[-1]
    elif is_header and node.type == "decorated_definition":
        node = _significant(node)[-1]
    if node.type == "expression_statement":
        inner = _significant(node)
        if len(inner) == 1:
            node = inner[0]
    return node


def _significant(node: Node) -> list[Node]:
    return [child for child in node.children if child.type not in _SKIPPED]


def _header(children: list[Node]) -> list[Node]:
    """Return the children of a compound statement up to the colon of its header."""
    for index, child in enumerate(children):
        if child.type == ":":
            return children[: index + 1]
    return children


def _shape(
    node: Node, depth: int, leaves: list[_Needle], is_header: bool = False
) -> _Shape:
    """Return a pattern's shape and collect the texts of its leaves.

    The recursion is bounded by the pattern's size.
    """
    kind = node.type
    children = [] if kind == "string_content" else _significant(node)
    if is_header:
        children = _header(children)
    if not children:
        return _leaf(node, depth, leaves)
    shapes = [_shape(child, depth + 1, leaves) for child in children]
    if len(shapes) == 1 and shapes[0].is_gap:
        return shapes[0]
    return _Shape(kind, None, shapes)


def _leaf(node: Node, depth: int, leaves: list[_Needle]) -> _Shape:
    text = node.text or b""
    if text == _GAP_BYTES:
        return _Shape("gap", None, [], is_gap=True)
    # In a string's text an escape is a node of its own: no leaf holds all of it.
    if text and (node.type != "string_content" or b"\\" not in text):
        is_word = text[:1] in _WORD and text[-1:] in _WORD
        leaves.append(_Needle(text, depth, is_word))
    return _Shape(node.type, text if node.is_named else None, [])


def _rarest(leaves: list[_Needle]) -> _Needle:
    """Return the leaf that is likely to stand in the fewest places.

    The last name of a chain tells most: of ``torch.distributed.all_reduce`` the last.
    """
    for leaf in reversed(leaves):
        if leaf.is_word and len(leaf.text) >= TELLING_LENGTH:
            return leaf
    return max(leaves, key=lambda leaf: (leaf.is_word, len(leaf.text)))


def _ancestor_of_leaf(scope: Node, start: int, size: int, height: int) -> Node | None:
    """Return the node ``height`` levels above the leaf at ``start``, if any."""
    cursor = scope.walk()
    levels = 0
    while cursor.goto_first_child_for_byte(start) is not None:
        levels += 1
        if levels > MAX_DEPTH:
            row = scope.start_point[0] + 1
            raise AnchorError(
                f"code nested deeper than {MAX_DEPTH:,} levels at or after line {row}: "
                "expected source that a person wrote; anchor another place"
            )
    leaf = cursor.node
    if leaf is None or leaf.start_byte != start or leaf.end_byte != start + size:
        return None
    if height > levels:
        return None
    for _ in range(height):
        cursor.goto_parent()
    return cursor.node


def _same(shape: _Shape, node: Node) -> bool:
    if shape.is_gap:
        return True
    if shape.children:
        if shape.kind != node.type and not _is_bracketed_gap(shape):
            return False
        return _same_children(shape, _significant(node))
    if shape.kind != node.type:
        return False
    return shape.text is None or shape.text == node.text


def _is_bracketed_gap(shape: _Shape) -> bool:
    """Tell ``(...)``, ``[...]``, ``{...}``: they match whatever has such brackets."""
    inner = shape.children
    return (
        len(inner) == 3
        and inner[1].is_gap
        and (inner[0].kind, inner[2].kind) in _BRACKETS
    )


def _same_children(shape: _Shape, nodes: list[Node]) -> bool:
    shapes = shape.children
    if not shapes:
        return not nodes
    if _is_bracketed_gap(shape):
        ends = len(nodes) >= 2
        return ends and _same(shapes[0], nodes[0]) and _same(shapes[2], nodes[-1])
    if shapes[-1].is_gap and shape.kind.endswith(("_statement", "_definition")):
        # A body that may be anything takes the clauses behind it along.
        while len(nodes) > len(shapes) and nodes[-1].type in _TRAILING_CLAUSES:
            nodes = nodes[:-1]
    if shape.kind not in _LISTS or not any(s.is_gap for s in shapes):
        return len(shapes) == len(nodes) and all(map(_same, shapes, nodes))
    return _same_list(shapes, nodes)


def _same_list(shapes: list[_Shape], nodes: list[Node]) -> bool:
    """Compare a list whose gaps take any number of nodes, as ``*`` does in a glob."""
    s = n = 0
    retry: tuple[int, int] | None = None
    while n < len(nodes):
        if s < len(shapes) and shapes[s].is_gap:
            retry = (s, n)
            s += 1
        elif s < len(shapes) and _same(shapes[s], nodes[n]):
            s, n = s + 1, n + 1
        elif retry is not None:
            retry = (retry[0], retry[1] + 1)
            s, n = retry[0] + 1, retry[1]
        else:
            return False
    return all(shape.is_gap for shape in shapes[s:])
