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

from readerkit.anchors.shape import (
    UNCOUNTED,
    Leaf,
    Shape,
    header,
    leaf_text,
    leaves,
    parts,
    read_pieces,
    read_statement,
    ungrouped,
)
from readerkit.anchors.tree import check_depth, last_row, occurrences
from readerkit.errors import AnchorError

TELLING_LENGTH = 6
MAX_PLACES = 2_000
"""Places of a pattern's rarest word that are looked at in one scope."""

_WORD = frozenset(
    bytes([byte])
    for byte in range(256)
    if byte >= 128 or chr(byte).isalnum() or byte == 95
)
_LISTS = {
    "argument_list",
    "assert_statement",
    "binary_operator",
    "block",
    "boolean_operator",
    "case_clause",
    "class_pattern",
    "comparison_operator",
    "decorated_definition",
    "delete_statement",
    "dict_pattern",
    "dictionary",
    "expression_list",
    "future_import_statement",
    "global_statement",
    "import_from_statement",
    "import_statement",
    "lambda",
    "lambda_parameters",
    "list",
    "list_pattern",
    "match_statement",
    "nonlocal_statement",
    "parameters",
    "pattern_list",
    "raise_statement",
    "set",
    "slice",
    "subscript",
    "tuple",
    "tuple_pattern",
    "type_parameter",
    "union_pattern",
    "with_clause",
}
_ANNOTATED = {
    "assignment",
    "class_definition",
    "default_parameter",
    "function_definition",
}
_PARAMETERS = {"identifier", "list_splat_pattern", "dictionary_splat_pattern"}
_TRAILING_CLAUSES = {
    "elif_clause",
    "else_clause",
    "except_clause",
    "except_group_clause",
    "finally_clause",
}


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
        AnchorError: text that is not one expression, statement, header or piece of a
            list; or that says nothing.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        statement = read_statement(text)
        self._statement = _with_needles([statement] if statement else [])
        if statement is None and not self._pieces:
            raise AnchorError(
                f"pattern {text!r} is not one expression, statement or header of "
                "Python (a range of several has 'from' and 'to')"
            )
        if statement is not None and not self._statement:
            raise AnchorError(f"pattern {text!r} matches everything: add a name to it")

    @cached_property
    def _pieces(self) -> list[tuple[Shape, Leaf]]:
        return _with_needles(read_pieces(self.text))

    def find(
        self, scopes: Sequence[Node], source: bytes, begin: int = 0
    ) -> list[Match]:
        """Return every match inside ``scopes``, in source order, the scopes included.

        A match begins at byte ``begin`` or behind it.
        """
        return _find_all(self._statement, scopes, source, begin) or _find_all(
            self._pieces, scopes, source, begin
        )


def _with_needles(shapes: list[Shape]) -> list[tuple[Shape, Leaf]]:
    return [(shape, _rarest(found)) for shape in shapes if (found := leaves(shape))]


def _find_all(
    shapes: list[tuple[Shape, Leaf]],
    scopes: Sequence[Node],
    source: bytes,
    begin: int,
) -> list[Match]:
    found: dict[tuple[int, int], Match] = {}
    for shape, needle in shapes:
        for scope in scopes:
            for node in _find(shape, needle, scope, source, begin):
                found[node.start_byte, node.end_byte] = _match(shape, node)
    return [found[key] for key in sorted(found)]


def _find(
    shape: Shape, needle: Leaf, scope: Node, source: bytes, begin: int
) -> Iterator[Node]:
    """Yield the nodes of a scope that are like a shape.

    A rare text of the pattern is looked up as bytes; only where it stands is the tree
    compared, from the ancestor as far above it as in the pattern.
    """
    compared: dict[tuple[int, int], bool] = {}
    start = max(scope.start_byte, begin)
    positions = _positions(needle.text, source, start, scope.end_byte)
    for count, position in enumerate(positions):
        if count == MAX_PLACES:
            raise AnchorError(
                f"{needle.text.decode()!r} stands in over {MAX_PLACES:,} places here: "
                "name the symbol around the one that is meant"
            )
        longest = None
        for node in _ancestors(scope, position, len(needle.text), needle.depth):
            if not _is_kind(shape, node) or node.start_byte < begin:
                continue
            key = (node.start_byte, node.end_byte)
            if key not in compared:
                compared[key] = _same_children(shape, node) if shape.children else True
            if compared[key]:
                longest = node
        if longest is not None:
            yield longest


def _positions(text: bytes, source: bytes, start: int, end: int) -> Iterator[int]:
    """Yield where a text stands and is not a piece of a longer name."""
    size = len(text)
    starts_word, ends_word = text[:1] in _WORD, text[-1:] in _WORD
    for at in occurrences(text, source, start, end):
        if not (starts_word and source[at - 1 : at] in _WORD) and not (
            ends_word and source[at + size : at + size + 1] in _WORD
        ):
            yield at


def _rarest(found: list[Leaf]) -> Leaf:
    """Return the leaf that is likely to stand in the fewest places.

    The last name of a chain tells most: of ``torch.distributed.all_reduce`` the last.
    """
    words = [leaf for leaf in found if leaf.text[-1:] in _WORD]
    telling = [leaf for leaf in words if len(leaf.text) >= TELLING_LENGTH]
    if telling:
        return telling[-1]
    return max(words or found, key=lambda leaf: len(leaf.text))


def _ancestors(scope: Node, start: int, size: int, height: int) -> list[Node]:
    """Return the nodes ``height`` counted levels above the leaf at ``start``.

    There are several where levels that do not count follow each other.
    """
    cursor = scope.walk()
    levels = 0
    while cursor.goto_first_child_for_byte(start) is not None:
        levels += 1
        check_depth(scope, levels)
    node = cursor.node
    if node is None or node.start_byte != start or node.end_byte != start + size:
        return []
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


def _match(shape: Shape, node: Node) -> Match:
    last = last_row(node)
    inner = node
    if shape.kind == "decorated_definition":
        shape, inner = shape.children[-1], parts(node)[-1]
    if shape.is_header:
        last = header(parts(inner))[-1].end_point[0]
    return Match(node, node.start_point[0] + 1, last + 1)


# --- comparing ---


def _is_kind(shape: Shape, node: Node) -> bool:
    return shape.kind == node.type or (
        shape.kind == "default_parameter" and node.type == "typed_default_parameter"
    )


def _same(shape: Shape, node: Node) -> bool:
    if shape.is_gap:
        return True
    if shape.is_bracketed_gap:
        return _has_brackets(shape, node)
    if node.type != shape.kind:
        node = ungrouped(node)
        if node.type == "typed_parameter" and shape.kind in _PARAMETERS:
            node = node.children[0]
        if not _is_kind(shape, node):
            return False
    if shape.children:
        return _same_children(shape, node)
    return shape.text is None or shape.text == leaf_text(node)


def _has_brackets(shape: Shape, node: Node) -> bool:
    ends = node.children[:1] + node.children[-1:]
    return [end.type for end in ends] == [shape.children[i].kind for i in (0, 2)]


def _same_children(shape: Shape, node: Node) -> bool:
    if shape.is_bracketed_gap:
        return _has_brackets(shape, node)
    shapes, nodes = shape.children, parts(node)
    if shape.is_header:
        nodes = header(nodes)
    if shape.kind in _ANNOTATED:
        nodes = _without_annotations(shape, nodes)
    if shapes[-1].is_gap and shape.kind.endswith(("_statement", "_definition")):
        # A body that may be anything takes the clauses behind it along.
        while len(nodes) > len(shapes) and nodes[-1].type in _TRAILING_CLAUSES:
            nodes = nodes[:-1]
    if not shape.has_gap or shape.kind not in _LISTS:
        return len(shapes) == len(nodes) and all(map(_same, shapes, nodes))
    return _same_list(shapes, nodes)


def _without_annotations(shape: Shape, nodes: list[Node]) -> list[Node]:
    """Return the parts without the types that a pattern does not write."""
    has_type = shape.has_child("type") or shape.has_child("->")
    if shape.kind == "assignment":
        has_type = shape.has_child(":")
    has_parameters = shape.has_child("type_parameter")
    kept: list[Node] = []
    for node in nodes:
        if node.type == "type" and not has_type:
            kept.pop()  # the colon or arrow before it
        elif node.type != "type_parameter" or has_parameters:
            kept.append(node)
    return kept


def _same_list(shapes: Sequence[Shape], nodes: list[Node]) -> bool:
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
