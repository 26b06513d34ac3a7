"""A whole file in one query: what to colour, and where names are bound.

``highlight`` answers for a few lines with the grammar's own query; this one captures
only what a page shows or a name needs, for every line of many files.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from tree_sitter import Node, Query, QueryCursor

from readerkit.anchors.highlight import MAX_LINE_BYTES
from readerkit.anchors.source import PYTHON, SourceFile

_KEYWORDS = """
"as" "assert" "async" "await" "break" "class" "continue" "def" "del" "elif" "else"
"except" "finally" "for" "from" "global" "if" "import" "lambda" "nonlocal" "pass"
"raise" "return" "try" "while" "with" "yield" "match" "case" "and" "in" "is" "not" "or"
"is not" "not in"
"""

# The order matters where two captures name one node: the later one rules.
_QUERY = f"""
(comment) @comment
(string) @string
(expression_statement . (string) @docstring .)
[(integer) (float)] @number
[{_KEYWORDS}] @keyword
[(none) (true) (false)] @constant
(function_definition name: (identifier) @defined)
(class_definition name: (identifier) @defined)
[(function_definition) (class_definition) (lambda)] @scope
(parameters [(identifier) (list_splat_pattern (identifier) @bound)
             (dictionary_splat_pattern (identifier) @bound)] @bound)
(lambda_parameters (identifier) @bound)
(typed_parameter . (identifier) @bound)
(default_parameter name: (identifier) @bound)
(typed_default_parameter name: (identifier) @bound)
(assignment left: (_) @target)
(augmented_assignment left: (identifier) @bound)
(for_statement left: (_) @target)
(for_in_clause left: (_) @target)
(as_pattern_target) @target
(named_expression name: (identifier) @bound)
(case_pattern (dotted_name (identifier) @bound))
(global_statement) @global
[(import_statement) (import_from_statement)] @import
"""
COLOURED = (
    "comment",
    "string",
    "docstring",
    "number",
    "keyword",
    "constant",
    "defined",
)
_LISTS = {
    "as_pattern_target",
    "expression_list",
    "list",
    "list_pattern",
    "list_splat_pattern",
    "pattern_list",
    "tuple",
    "tuple_pattern",
}


@dataclass(frozen=True, slots=True)
class Scan:
    """What one pass over a file found; offsets are in bytes."""

    colours: list[tuple[int, int, str]] = field(default_factory=list)
    """Start, end and kind, in order, none inside another."""
    scopes: list[Node] = field(default_factory=list)
    """Definitions and lambdas."""
    bound: list[tuple[int, str]] = field(default_factory=list)
    """Names that an assignment, a parameter, a loop, ... gives a value, and where."""
    imports: list[Node] = field(default_factory=list)
    globals: list[tuple[int, str]] = field(default_factory=list)
    """Names that a function takes from the module, and where it says so."""


@lru_cache
def _query() -> Query:
    return Query(PYTHON, _QUERY)


def scan(source: SourceFile) -> Scan:
    """Return what a page needs of a file; nothing where a line has no end in sight."""
    if max(map(len, source.raw_lines), default=0) > MAX_LINE_BYTES:
        return Scan()
    found = QueryCursor(_query()).captures(source.root)
    bound = [(n.start_byte, _text(n)) for n in found.get("bound", ())]
    for target in found.get("target", ()):
        bound += _targets(target)
    return Scan(
        colours=_colours(found),
        scopes=found.get("scope", []),
        bound=bound,
        imports=found.get("import", []),
        globals=[
            (node.start_byte, _text(name))
            for node in found.get("global", ())
            for name in node.named_children
        ],
    )


def _colours(found: dict[str, list[Node]]) -> list[tuple[int, int, str]]:
    kinds = {
        (node.start_byte, -node.end_byte): kind
        for kind in COLOURED
        for node in found.get(kind, ())
    }
    colours, reached = [], 0
    for (start, end), kind in sorted(kinds.items()):
        if start >= reached:  # not inside a string, which is coloured as a whole
            reached = -end
            colours.append((start, reached, kind))
    return colours


def _targets(node: Node) -> list[tuple[int, str]]:
    """Return the plain names on the left of an assignment: no attribute, no item."""
    if node.type == "identifier":
        return [(node.start_byte, _text(node))]
    names, waiting = [], [node]
    while waiting:
        inner = waiting.pop()
        if inner.type not in _LISTS:  # an attribute, an item: binds no name
            continue
        for child in inner.named_children:
            if child.type == "identifier":
                names.append((child.start_byte, _text(child)))
            else:
                waiting.append(child)
    return names


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
