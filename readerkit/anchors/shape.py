"""The text of a pattern as a tree of shapes, which source nodes are compared with.

Reads patterns only; what counts in a comparison is told in ``pattern``. Here are also
the parts of a node that count at all, for patterns and source alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tree_sitter import Node, Parser

from readerkit.anchors.source import PYTHON
from readerkit.errors import AnchorError

MAX_PATTERN_BYTES = 2_000
MAX_PATTERN_DEPTH = 100

UNCOUNTED = {
    "binary_operator",
    "boolean_operator",
    "parenthesized_expression",
    "typed_parameter",
}
"""Levels that pattern and source may differ in: a chain of operators is nested to the
left, parentheses may only group, a parameter may have an annotation."""

_GAP = "__gap_0f3b__"
_REST = "__rest_0f3b__"
"""A gap where the grammar wants more than a name: an entry, a case."""
_GAP_BYTES, _REST_BYTES = _GAP.encode(), _REST.encode()
_WITH_REST = {"case_clause", "dictionary_splat", "splat_pattern"}
_PARSER = Parser(PYTHON)
# Strings, comments and the dots of a relative import first: their dots stay dots.
_STRING = r"""'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*\""""
_TOKEN = re.compile(
    rf"(?P<kept>{_STRING}|\bfrom\s+\.+(?=\w)|\bfrom\s+\.{{4,}})"
    r"|(?P<comment>\#[^\n]*)|(?P<dots>\.\.\.)",
    re.DOTALL,
)
_BRACE_OR_GAP = re.compile(
    rf"{_STRING}|[](){{}}[]|(?<=[{{,])\s*{_GAP}\s*(?=[,}}])", re.S
)
_SKIPPED = {"comment", "line_continuation", ","}
_BRACKETS = {("(", ")"), ("[", "]"), ("{", "}")}
# Their parentheses only hold lines together.
_IN_PARENTHESES = {
    "future_import_statement",
    "import_from_statement",
    "with_clause",
}
_CHAINS = {"binary_operator", "boolean_operator"}
_LEVEL_OF = {"-": "+", "/": "*", "//": "*", "%": "*", "@": "*"}
# Headers that are statements only behind another one: (what stands before, indent).
_FRAMES = {
    "elif": (f"if {_GAP}:\n {_GAP}\n", ""),
    "else": (f"if {_GAP}:\n {_GAP}\n", ""),
    "except": (f"try:\n {_GAP}\n", ""),
    "finally": (f"try:\n {_GAP}\n", ""),
    "case": (f"match {_GAP}:\n", " "),
}
# What has a line of its own in formatted source and is no statement: (before, behind,
# the list it stands in, what it may be).
_PIECES = (
    ("f(", ")", "argument_list", {"keyword_argument", "dictionary_splat"}),
    ("{", "}", "dictionary", {"pair"}),
    (
        "def f(",
        "): pass",
        "parameters",
        {"default_parameter", "typed_parameter", "typed_default_parameter"},
    ),
)


@dataclass(slots=True)  # not frozen: that makes each one three times as slow
class Shape:
    """A pattern's node."""

    kind: str
    text: bytes | None = None
    """Of a leaf with a text of its own; None where the kind says it all."""
    children: tuple[Shape, ...] = ()
    is_gap: bool = False
    has_gap: bool = False
    """Whether a gap is among its children."""
    is_bracketed_gap: bool = False
    """Whether it is ``(...)``, ``[...]`` or ``{...}``: any content matches."""
    is_header: bool = False
    """Whether it ends with the colon of a compound statement's header."""

    def has_child(self, kind: str) -> bool:
        """Tell whether a child is of a kind."""
        return any(child.kind == kind for child in self.children)


_ANYTHING = Shape("gap", is_gap=True)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of a shape whose text can be looked up in source as bytes."""

    text: bytes
    depth: int
    """How many counted levels below the shape's top it stands, the top included."""


def read_statement(text: str) -> Shape | None:
    """Return an expression, a statement or a header; None for text that is neither."""
    code = _with_gaps(text)
    is_header = code.endswith(":")
    node = _statement(code, is_header)
    if node is None:
        return None
    return _header_shape(node) if is_header else _shape(node)


def read_pieces(text: str) -> list[Shape]:
    """Return the pieces of lists that a text can be.

    A keyword argument, an entry of a dictionary, a parameter.
    """
    code = _with_gaps(text)
    pieces = (_piece(code, *frame) for frame in _PIECES)
    return [_shape(piece) for piece in pieces if piece is not None]


def _with_gaps(text: str) -> str:
    if len(text.encode()) > MAX_PATTERN_BYTES:
        raise AnchorError(
            f"pattern is too long: got {len(text):,} characters, expected a few "
            f"tokens (at most {MAX_PATTERN_BYTES:,} bytes)"
        )
    return _TOKEN.sub(_replace, text).strip()


def _replace(match: re.Match[str]) -> str:
    if match["kept"]:
        return match["kept"]
    # Indentation stays as it is; ``....f()`` becomes a name and an attribute.
    before = match.string[: match.start()]
    space = "" if before[-1:].isspace() else " "
    return f"{space}{_GAP} " if match["dots"] else ""


def _parse(code: str) -> list[Node]:
    """Return the statements of a module; none where it does not parse."""
    root = _PARSER.parse(f"{code}\n".encode()).root_node
    return [] if root.has_error else parts(root)


def _statement(code: str, is_header: bool) -> Node | None:
    """Return the pattern's own node, below module and statement wrappers."""
    word = re.match(r"[a-z]+", code)
    frame, indent = _FRAMES.get(word[0] if word else "", ("", ""))
    for whole in _spellings(f"{frame}{indent}", code, is_header):
        statements = _parse(whole)
        if len(statements) == 1:
            break
    else:
        return None
    node = statements[0]
    if frame:
        node = parts(node)[-1]
        if node.type == "block":  # a case clause stands in a match statement's block
            node = parts(node)[-1]
    elif whole.endswith(_DECORATED):
        decorators = parts(node)[:-1]
        if len(decorators) != 1:
            return None
        node = decorators[0]
    if node.type == "expression_statement":
        inner = parts(node)
        if len(inner) == 1:
            node = inner[0]
    return node


_DECORATED = f"\ndef {_REST}(): {_GAP}"


def _spellings(before: str, code: str, is_header: bool) -> Iterator[str]:
    """Yield a pattern as it is, then in ways that the grammar accepts its gaps."""
    body = f" {_GAP}" if is_header else ""
    yield f"{before}{code}{body}"
    yield f"{before}{_with_rest(code)}{body}"
    head = code.removesuffix(_GAP).rstrip()
    if code.startswith("match") and head.endswith(":"):
        yield f"{head}\n case {_REST}: {_GAP}"
    if code.startswith("@"):
        yield code + _DECORATED


def _with_rest(code: str) -> str:
    """Write the gaps between entries of a dictionary as what the grammar accepts."""
    opened: list[str] = []

    def replace(match: re.Match[str]) -> str:
        token = match[0]
        if token in "([{":
            opened.append(token)
        elif token in ")]}" and opened:
            opened.pop()
        elif token.strip() == _GAP and opened[-1:] == ["{"]:
            return f"**{_REST}"
        return token

    return _BRACE_OR_GAP.sub(replace, code)


def _piece(
    code: str, before: str, behind: str, within: str, kinds: set[str]
) -> Node | None:
    """Return the pattern's node in a list; None where it is no single piece of it."""
    statements = _parse(f"{before}{code}{behind}")
    lists = [node for node in _below(statements) if node.type == within]
    pieces = [node for node in lists[0].children if node.is_named] if lists else []
    if len(pieces) != 1 or pieces[0].type not in kinds:
        return None
    is_all = (pieces[0].text or b"").decode() == code.rstrip(", \n")
    return pieces[0] if is_all else None


def _below(nodes: list[Node]) -> list[Node]:
    """Return the nodes down to the first list of a frame, which is never deep."""
    level, seen = nodes, list(nodes)
    for _ in range(3):
        level = [child for node in level for child in node.children]
        seen += level
    return seen


# --- the parts that count, of patterns and of source ---


def parts(node: Node) -> list[Node]:
    """Return a node's children that count: no comments, no commas, a chain as a list.

    ``a or b or c`` has the parts ``a``, ``or``, ``b``, ``or``, ``c``.
    """
    kind = node.type
    if kind in _CHAINS:
        return _chain(node)
    kept = [child for child in node.children if child.type not in _SKIPPED]
    if kind in _IN_PARENTHESES:
        return [child for child in kept if child.type not in ("(", ")")]
    return kept


def _chain(node: Node) -> list[Node]:
    tail: list[Node] = []
    level = None
    while node.type in _CHAINS:
        children = [child for child in node.children if child.type not in _SKIPPED]
        operator = children[1].type
        if level not in (None, _LEVEL_OF.get(operator, operator)):
            break
        level = _LEVEL_OF.get(operator, operator)
        tail += reversed(children[1:])
        node = ungrouped(children[0])
    return [node, *reversed(tail)]


def ungrouped(node: Node) -> Node:
    """Return what stands in parentheses that only group, or the node itself."""
    while node.type == "parenthesized_expression":
        inner = [child for child in node.named_children if child.type != "comment"]
        if len(inner) != 1:
            break
        node = inner[0]
    return node


def header(children: list[Node]) -> list[Node]:
    """Return the parts of a compound statement up to the colon of its header."""
    for index, child in enumerate(children):
        if child.type == ":":
            return children[: index + 1]
    return children


def leaf_text(node: Node) -> bytes:
    """Return a leaf's text; the kind of quotes around a string does not count."""
    text = node.text or b""
    return text.rstrip(b"'\"").lower() if node.type == "string_start" else text


# --- shapes ---


def _shape(node: Node, depth: int = 0) -> Shape:
    if not node.child_count:
        return _leaf(node)
    if depth > MAX_PATTERN_DEPTH:
        raise AnchorError(
            f"pattern is nested deeper than {MAX_PATTERN_DEPTH} levels: "
            "expected a few tokens"
        )
    kind = node.type
    if kind == "string_content":
        return _leaf(node)
    if kind == "parenthesized_expression" and ungrouped(node).text != _GAP_BYTES:
        return _shape(ungrouped(node), depth)
    children = parts(node)
    if kind in _WITH_REST and children[1].text == _REST_BYTES:
        return _ANYTHING
    return _parent(kind, [_shape(child, depth + 1) for child in children])


def _header_shape(node: Node) -> Shape:
    """Return the shape of a compound statement up to its colon, decorators included."""
    *others, last = parts(node)
    if node.type == "decorated_definition":
        return _parent(node.type, [*map(_shape, others), _header_shape(last)])
    shape = _parent(node.type, [_shape(child) for child in header([*others, last])])
    return replace(shape, is_header=True)


def _parent(kind: str, shapes: list[Shape]) -> Shape:
    if kind == "decorated_definition":
        shapes = [_ANYTHING if _is_any_decorator(shape) else shape for shape in shapes]
    gaps = [shape.is_gap for shape in shapes]
    if gaps == [True]:  # only a wrapper
        return _ANYTHING
    ends = (shapes[0].kind, shapes[-1].kind)
    is_bracketed_gap = gaps == [False, True, False] and ends in _BRACKETS
    return Shape(kind, None, tuple(shapes), False, True in gaps, is_bracketed_gap)


def _is_any_decorator(shape: Shape) -> bool:
    return shape.kind == "decorator" and shape.children[1].is_gap


def _leaf(node: Node) -> Shape:
    text = leaf_text(node)
    if text == _GAP_BYTES:
        return _ANYTHING
    has_text = node.is_named and node.type != "string_end"
    return Shape(node.type, text if has_text else None)


def leaves(shape: Shape, depth: int = 0) -> list[Leaf]:
    """Return the leaves whose text can be looked up, in order."""
    if shape.children:
        depth += shape.kind not in UNCOUNTED
        return [leaf for child in shape.children for leaf in leaves(child, depth)]
    # A word of the grammar has its text as its kind. No leaf in the source holds all
    # of a string with escapes, and quotes or the space of ``not in`` can be others.
    text = shape.kind.encode() if shape.text is None else shape.text
    is_content = shape.kind == "string_content"
    unsure = b"\\" in text if is_content else b" " in text or "string_" in shape.kind
    return [] if shape.is_gap or unsure or not text else [Leaf(text, depth)]
