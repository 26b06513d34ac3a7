"""The text of a pattern as a tree of shapes, which source nodes are compared with.

Reads patterns only; what counts in a comparison is told in ``pattern``. Here are also
the parts of a node that count at all, for patterns and source alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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


@dataclass(slots=True)
class Shape:
    """A pattern's node."""

    kind: str
    text: bytes | None = None
    """Of a leaf with a text of its own; None where the kind says it all."""
    children: tuple[Shape, ...] = ()
    is_gap: bool = False
    is_header: bool = False
    """Whether it ends with the colon of a compound statement's header."""
    is_annotated: bool = False
    """Whether it writes a type annotation, which then counts."""

    @property
    def is_bracketed_gap(self) -> bool:
        """Tell ``(...)``, ``[...]``, ``{...}``: they match whatever has such brackets."""
        inner = self.children
        return (
            len(inner) == 3
            and inner[1].is_gap
            and (inner[0].kind, inner[2].kind) in _BRACKETS
        )


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of a shape whose text can be looked up in source as bytes."""

    text: bytes
    depth: int
    """How many counted levels below the shape's top it stands, the top included."""


def read_pattern(text: str) -> list[list[Shape]]:
    """Return what a pattern can be read as, the first choice first.

    The first choice is an expression, a statement or a header; the second, a piece of
    a list: a keyword argument, an entry of a dictionary, a parameter.

    Raises:
        AnchorError: text that is none of these.
    """
    if len(text.encode()) > MAX_PATTERN_BYTES:
        raise AnchorError(
            f"pattern is too long: got {len(text):,} characters, expected a few "
            f"tokens (at most {MAX_PATTERN_BYTES:,} bytes)"
        )
    code = _TOKEN.sub(_replace, text).strip()
    is_header = code.endswith(":")
    node = _statement(code, is_header)
    choices = [] if node is None else [[_shape(node, is_header=is_header)]]
    if not is_header:
        pieces = (_piece(code, *frame) for frame in _PIECES)
        choices.append([_shape(piece) for piece in pieces if piece is not None])
    if not any(choices):
        raise AnchorError(
            f"pattern {text!r} is not one expression, statement or header of Python"
            " (a range of several has 'from' and 'to')"
        )
    return [choice for choice in choices if choice]


def _replace(match: re.Match[str]) -> str:
    if match["kept"]:
        return match["kept"]
    return f" {_GAP} " if match["dots"] else ""


def _parse(code: str) -> list[Node]:
    """Return the statements of a module; none where it does not parse."""
    root = _PARSER.parse(f"{code}\n".encode()).root_node
    return [] if root.has_error else parts(root)


def _statement(code: str, is_header: bool) -> Node | None:
    """Return the pattern's own node, below module and statement wrappers."""
    word = re.match(r"[a-z]+", code)
    frame, indent = _FRAMES.get(word[0] if word else "", ("", ""))
    body = f" {_GAP}" if is_header else ""
    for whole in (f"{frame}{indent}{code}{body}", *_spellings(code)):
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
    elif node.type == "decorated_definition" and _DECORATED in whole:
        node = parts(node)[0]
    if node.type == "expression_statement":
        inner = parts(node)
        if len(inner) == 1:
            node = inner[0]
    return node


_DECORATED = f"\ndef {_REST}(): {_GAP}"


def _spellings(code: str) -> list[str]:
    """Return other ways to write a pattern, for where the grammar refuses a gap."""
    entries = _with_rest(code)
    case = f"\n case {_REST}: {_GAP}"
    head = code.removesuffix(_GAP).rstrip()
    return [
        *([entries] if entries != code else []),
        *([head + case] if code.startswith("match") and head.endswith(":") else []),
        *([code + _DECORATED] if code.startswith("@") and "\n" not in code else []),
    ]


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
    return pieces[0] if len(pieces) == 1 and pieces[0].type in kinds else None


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
        operator = children[1].type if len(children) == 3 else ""
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


def _shape(node: Node, *, is_header: bool = False, depth: int = 0) -> Shape:
    if depth > MAX_PATTERN_DEPTH:
        raise AnchorError(
            f"pattern is nested deeper than {MAX_PATTERN_DEPTH} levels: "
            "expected a few tokens"
        )
    kind = node.type
    if kind == "parenthesized_expression" and (node.text or b"").strip(b"() \n"):
        inner = ungrouped(node)
        if inner.text != _GAP.encode():
            return _shape(inner, depth=depth)
    children = [] if kind == "string_content" else parts(node)
    if not children:
        return _leaf(node)
    is_decorated = kind == "decorated_definition"
    if is_header and not is_decorated:
        children = header(children)
    shapes = tuple(
        _shape(
            child,
            is_header=is_header and is_decorated and child is children[-1],
            depth=depth + 1,
        )
        for child in children
    )
    if is_decorated:
        shapes = tuple(map(_gap_for_decorators, shapes))
    if _stands_for_anything(kind, shapes):
        return Shape("gap", is_gap=True)
    return Shape(
        kind,
        children=shapes,
        is_header=is_header and not is_decorated,
        is_annotated=any(child.type == "type" for child in children),
    )


def _stands_for_anything(kind: str, shapes: tuple[Shape, ...]) -> bool:
    """Tell whether a node is only a wrapper of a gap."""
    if len(shapes) == 1:
        return shapes[0].is_gap
    is_rest = len(shapes) > 1 and shapes[1].text == _REST.encode()
    return is_rest and kind in ("dictionary_splat", "case_clause")


def _gap_for_decorators(shape: Shape) -> Shape:
    is_gap = shape.kind == "decorator" and shape.children[1].is_gap
    return Shape("gap", is_gap=True) if is_gap else shape


def _leaf(node: Node) -> Shape:
    if node.text == _GAP.encode():
        return Shape("gap", is_gap=True)
    has_text = node.is_named and node.type != "string_end"
    return Shape(node.type, leaf_text(node) if has_text else None)
