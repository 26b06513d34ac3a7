"""A whole file in one query: what to colour, and where names are bound.

``highlight`` answers for a few lines with the grammar's own query; this one captures
only what a page shows or a name needs, for every line of many files.
"""

from __future__ import annotations

from bisect import bisect_right
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
[(function_definition) (class_definition) (lambda) (type_alias_statement)
 (list_comprehension) (set_comprehension) (dictionary_comprehension)
 (generator_expression)] @scope
(parameters [(identifier) @parameter (list_splat_pattern (identifier) @parameter)
             (dictionary_splat_pattern (identifier) @parameter)])
(lambda_parameters [(identifier) @parameter
                    (list_splat_pattern (identifier) @parameter)
                    (dictionary_splat_pattern (identifier) @parameter)])
(typed_parameter . [(identifier) @parameter
                    (list_splat_pattern (identifier) @parameter)
                    (dictionary_splat_pattern (identifier) @parameter)])
(default_parameter name: (identifier) @parameter)
(typed_default_parameter name: (identifier) @parameter type: (_) @typed)
(assignment left: (_) @target)
(assignment type: (_) @typed)
(augmented_assignment left: (identifier) @changed)
(for_statement left: (_) @target)
(for_in_clause left: (_) @target)
(as_pattern_target) @target
(named_expression name: (identifier) @walrus)
(case_pattern (dotted_name . (identifier) @bound .))
(case_pattern (as_pattern (identifier) @bound .))
(union_pattern (dotted_name . (identifier) @bound .))
(keyword_pattern . (identifier) @label)
(keyword_pattern (dotted_name . (identifier) @bound .))
(splat_pattern (identifier) @bound)
[(global_statement) (nonlocal_statement)] @declared
[(import_statement) (import_from_statement)] @import
(future_import_statement) @future
(interpolation expression: (_) @hole)
(format_expression expression: (_) @hole)
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


Place = tuple[int, str]
"""Where a name stands, in bytes, and the name."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What one pass over a file found; offsets are in bytes."""

    colours: list[tuple[int, int, str]] = field(default_factory=list)
    """Start, end and kind, in order, none inside another: a string that holds code
    has a gap there."""
    scopes: list[Node] = field(default_factory=list)
    """Definitions, lambdas, comprehensions, and aliases of types."""
    bound: list[Place] = field(default_factory=list)
    """Names that an assignment, a loop, ... gives a value."""
    parameters: list[Place] = field(default_factory=list)
    walrus: list[Place] = field(default_factory=list)
    """Names bound inside an expression, past the comprehension around it."""
    changed: list[Place] = field(default_factory=list)
    """Names on the left of ``+=``: they need a value to begin with."""
    imports: list[Node] = field(default_factory=list)
    future: list[Node] = field(default_factory=list)
    """Imports that bind nothing of use."""
    globals: list[Place] = field(default_factory=list)
    """Names that a function takes from the module, and where it says so."""
    labels: set[int] = field(default_factory=set)
    """Names that stand for nothing by themselves."""
    typed: set[int] = field(default_factory=set)
    """Where a type ends that a value may follow: ``x: Here = 1``."""


@lru_cache
def _query() -> Query:
    return Query(PYTHON, _QUERY)


def scan(source: SourceFile) -> Scan:
    """Return what a page needs of a file; nothing where a line has no end in sight."""
    if max(map(len, source.raw_lines), default=0) > MAX_LINE_BYTES:
        return Scan()
    found = QueryCursor(_query()).captures(source.root)
    bound = _places(found, "bound")
    for target in found.get("target", ()):
        bound += _targets(target)
    globals_: list[Place] = []
    labels = {node.start_byte for node in found.get("label", ())}
    for node in found.get("declared", ()):
        names = [(name.start_byte, _text(name)) for name in node.named_children]
        labels.update(start for start, _ in names)
        globals_ += names if node.type == "global_statement" else []
    return Scan(
        colours=_colours(found),
        scopes=found.get("scope", []),
        bound=bound,
        parameters=_places(found, "parameter"),
        walrus=_places(found, "walrus"),
        changed=_places(found, "changed"),
        imports=found.get("import", []),
        future=found.get("future", []),
        globals=globals_,
        labels=labels,
        typed={node.end_byte for node in found.get("typed", ())},
    )


def _places(found: dict[str, list[Node]], capture: str) -> list[Place]:
    return [(node.start_byte, _text(node)) for node in found.get(capture, ())]


def _colours(found: dict[str, list[Node]]) -> list[tuple[int, int, str]]:
    kinds = {
        (node.start_byte, -node.end_byte): kind
        for kind in COLOURED
        for node in found.get(kind, ())
    }
    holes = sorted((node.start_byte, node.end_byte) for node in found.get("hole", ()))
    if holes:
        _cut(kinds, holes)
    colours, reached = [], 0
    for (start, end), kind in sorted(kinds.items()):
        if start >= reached:  # not inside another, which is coloured as a whole
            reached = -end
            colours.append((start, reached, kind))
    return colours


def _cut(kinds: dict[tuple[int, int], str], holes: list[tuple[int, int]]) -> None:
    """Put the parts of strings around the code that they hold in their place."""
    strings = [item for item in kinds.items() if item[1] in ("string", "docstring")]
    for (start, negative), kind in strings:
        first = bisect_right(holes, (start,))
        if first == len(holes) or holes[first][0] >= -negative:
            continue
        del kinds[start, negative]
        for index in range(first, len(holes)):
            begin, stop = holes[index]
            if begin >= -negative:
                break
            if begin >= start:  # else it is in a string inside the last one
                kinds[start, -begin] = kind
                start = stop
        kinds[start, negative] = kind


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
