"""How ``...`` gets through the grammar: the text of a pattern as syntax nodes.

Before the text is parsed, each gap becomes a name that nobody writes. What counts when
such nodes are compared with source is told in ``pattern``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node, Parser

from readerkit.anchors.grammars import python_grammar
from readerkit.anchors.tree import parts, ungrouped
from readerkit.errors import AnchorError

MAX_PATTERN_BYTES = 2_000
MAX_PATTERN_DEPTH = 100

_GAP = "__gap_0f3b__"
_REST = "__rest_0f3b__"
"""A gap where the grammar wants more than a name: an entry, a case."""
PLACEHOLDERS = {_GAP.encode(), _REST.encode()}
GAP_TEXTS = {
    *PLACEHOLDERS,
    f"**{_REST}".encode(),
    f"case {_REST}: {_GAP}".encode(),
}
"""The text of a node that is a gap, or that holds nothing else."""
GAP_DECORATORS = {f"@{_GAP}".encode(), f"@ {_GAP}".encode()}
_PARSER = Parser(python_grammar())
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
# Headers that are statements only behind another one: (what stands before, indent).
_FRAMES = {
    "elif": (f"if {_GAP}:\n {_GAP}\n", ""),
    "else": (f"if {_GAP}:\n {_GAP}\n", ""),
    "except": (f"try:\n {_GAP}\n", ""),
    "finally": (f"try:\n {_GAP}\n", ""),
    "case": (f"match {_GAP}:\n", " "),
}
_NO_FRAME = ("", "")
_FIRST_WORD = re.compile(r"[a-z]+")
_DECORATED = f"\ndef {_REST}(): {_GAP}"
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


def read_statement(code: str) -> Node | None:
    """Return an expression, a statement or a header; None for text that is neither.

    A header has a body that is a gap.
    """
    word = _FIRST_WORD.match(code)
    frame, indent = _FRAMES.get(word[0], _NO_FRAME) if word else _NO_FRAME
    for whole in _spellings(frame + indent, code):
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
    return _checked(node)


def read_pieces(code: str) -> list[Node]:
    """Return the pieces of lists that a text can be.

    A keyword argument, an entry of a dictionary, a parameter.
    """
    pieces = (_piece(code, *frame) for frame in _PIECES)
    return [_checked(piece) for piece in pieces if piece is not None]


def with_gaps(text: str) -> str:
    """Return the text of a pattern without comments, its gaps made names.

    Raises:
        AnchorError: a text that is too long for an address.
    """
    if 4 * len(text) > MAX_PATTERN_BYTES < len(text.encode(errors="replace")):
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
    root = _PARSER.parse(f"{code}\n".encode(errors="replace")).root_node
    return [] if root.has_error else parts(root)


def _checked(node: Node) -> Node:
    """Return the node of a pattern, once it is known that comparing can follow it."""
    if node.end_byte - node.start_byte > MAX_PATTERN_DEPTH:  # a byte a level at least
        _check_depth(node, 0)
    return node


def _check_depth(node: Node, depth: int) -> None:
    if depth > MAX_PATTERN_DEPTH:
        raise AnchorError(
            f"pattern is nested deeper than {MAX_PATTERN_DEPTH} levels: "
            "expected a few tokens"
        )
    for part in parts(ungrouped(node)):
        _check_depth(part, depth + 1)


def _spellings(before: str, code: str) -> Iterator[str]:
    """Yield a pattern as it is, then in ways that the grammar accepts its gaps."""
    body = f" {_GAP}" if code.endswith(":") else ""
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
