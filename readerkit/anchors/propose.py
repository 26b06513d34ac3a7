"""From lines to an anchor: the shortest one that resolves to exactly these lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, product
from keyword import iskeyword

from tree_sitter import Node

from readerkit.anchors.pattern import PatternMatch, compile_pattern
from readerkit.anchors.propose_tokens import is_quiet, symbol_anchors, token_candidates
from readerkit.anchors.resolve import resolve
from readerkit.anchors.source import SourceFile
from readerkit.anchors.symbols import Symbol
from readerkit.anchors.tree import last_row
from readerkit.errors import AnchorError
from readerkit.model.anchor import Anchor, Span

MAX_PATTERN = 160
"""Characters: an anchor is an address, not a quotation."""
MAX_TRIES = 400
MAX_LEVELS = 200
"""Levels of nesting in which names for lines are looked for."""
MAX_NAME_PARTS = 20
"""Dotted names are kept whole up to here, however little else is."""
_SKIPPED = {"comment", "line_continuation"}
_COMPOUND = ("_statement", "_clause", "_definition")
_TIGHT = {
    "decorator",
    "default_parameter",
    "dictionary_splat",
    "keyword_argument",
    "list_splat",
}
"""Written without spaces between their parts."""
_EDGES = _TIGHT | {
    "assignment",
    "call",
    "pair",
    "typed_default_parameter",
    "typed_parameter",
}
"""Beside whole statements, what may begin or end a range: it has a line of its own."""
_DOCSTRING = "(expression_statement (string) @anchor)"


def propose(span: Span, source: SourceFile) -> Anchor:
    """Return the narrowest anchor that resolves to ``span``, blank edges trimmed.

    A definition is named by its symbol, a statement by a pattern that keeps as few of
    its tokens as uniqueness allows, several statements by a range.

    Raises:
        AnchorError: lines outside the file, lines without code, that do not parse, or
            that cut a statement in two; the message says which lines would do.
    """
    span = _trim(span, source)
    for anchor in islice(_candidates(span, source), MAX_TRIES):
        try:
            if resolve(anchor, source) == span:
                return anchor
        except AnchorError:
            continue
    whole = _whole_statements(span, source) if source.language.is_python else span
    source.check_parsed(span.first, span.last)
    if whole != span:
        raise AnchorError(
            f"{span} cuts through a statement",
            [f"try {whole}, which holds it whole"],
        )
    raise AnchorError(
        f"no short pattern names {span}",
        ["choose fewer lines, or write a query anchor by hand"],
    )


def _trim(span: Span, source: SourceFile) -> Span:
    """Drop blank and comment lines at both edges."""
    count = len(source.raw_lines)
    if not count:
        raise AnchorError(f"{span.path} is empty: got no lines to name, expected code")
    if not 1 <= span.first <= span.last <= count:
        raise AnchorError(
            f"{span}: expected lines within 1 to {count}, first before last"
        )
    first, last = span.first, span.last
    while first <= last and _is_quiet(first, source):
        first += 1
    while last >= first and _is_quiet(last, source):
        last -= 1
    if first > last:
        raise AnchorError(f"{span} holds no code: an anchor names code, not comments")
    return Span(span.path, first, last)


def _is_quiet(number: int, source: SourceFile) -> bool:
    if not source.language.is_python:
        return is_quiet(number, source)
    line = source.line(number)
    return not line.strip() or line.lstrip().startswith("#")


def _candidates(span: Span, source: SourceFile) -> Iterator[Anchor]:
    """Yield anchors to try, the ones that read best first."""
    if not source.language.is_python:
        yield from token_candidates(span, source)
        return
    path = span.path
    yield from symbol_anchors(span, source)
    scope = _scope(span, source)
    root = scope.scope if scope else source.root
    name = scope.name if scope else None
    starting = _nodes_from(root, span.first)
    whole = [node for node in starting if _lines(node)[1] == span.last]
    patterns = _best_first(
        [text for node in whole for text in _patterns(node, source)]
        + [text for node in starting for text in _headers(node, source)]
    )
    for text in patterns:
        yield Anchor(path, symbol=name, code=text)
    starts = _best_first(_edges(starting, source))
    ending = [n for n in _nodes_to(root, span.last) if _lines(n)[0] >= span.first]
    stops = _best_first(_edges(ending, source))
    for start, stop in product(starts[:10], stops[:10]):
        yield Anchor(path, symbol=name, start=start, stop=stop)
    if any(node.type == "string" for node in whole):
        for nth in (None, *range(1, 41)):
            yield Anchor(path, symbol=name, query=_DOCSTRING, nth=nth)
    scopes = [each.scope for each in source.symbols[name]] if name else [root]
    for text in patterns[:6]:
        for nth, match in enumerate(_find(text, scopes, source), 1):
            if (match.first, match.last) == (span.first, span.last):
                yield Anchor(path, symbol=name, code=text, nth=nth)
    for start, stop in product(starts[:6], stops[:6]):
        for nth, to_nth in _ranges(start, stop, span, scopes, source):
            yield Anchor(
                path, symbol=name, start=start, stop=stop, nth=nth, to_nth=to_nth
            )


def _find(
    text: str, scopes: list[Node], source: SourceFile, begin: int = 0
) -> list[PatternMatch]:
    try:
        return compile_pattern(text).find(scopes, source.data, begin)
    except AnchorError:
        return []


def _ranges(
    start: str, stop: str, span: Span, scopes: list[Node], source: SourceFile
) -> Iterator[tuple[int | None, int | None]]:
    """Yield which of their equals two patterns are where they bound the span."""
    starts = _find(start, scopes, source)
    for nth, match in enumerate(starts, 1):
        if match.first == span.first and match.last <= span.last:
            begin = match.node.start_byte
            around = [s for s in scopes if s.start_byte <= begin < s.end_byte]
            ends = _find(stop, around[:1], source, begin)
            for to_nth, end in enumerate(ends, 1):
                if end.last == span.last:
                    yield (
                        nth if len(starts) > 1 else None,
                        to_nth if len(ends) > 1 else None,
                    )


def _scope(span: Span, source: SourceFile) -> Symbol | None:
    """Return the smallest definition with these lines inside it."""
    around = [
        symbol
        for symbols in source.symbols.values()
        for symbol in symbols
        if symbol.scope.start_point[0] < span.first <= span.last <= symbol.last
    ]
    return min(around, key=lambda symbol: symbol.last - symbol.first, default=None)


def _best_first(texts: Iterable[str]) -> list[str]:
    """Order patterns: calls and statements before scraps, short before long."""
    unique = dict.fromkeys(text for text in texts if 2 < len(text) <= MAX_PATTERN)
    return sorted(unique, key=lambda text: (_is_scrap(text), len(text)))


def _is_scrap(text: str) -> tuple[bool, bool]:
    """Tell a bare name, a literal or a piece of an expression: hard to read."""
    is_whole = iskeyword(text.split()[0]) or any(
        mark in text for mark in ("(", "=", ": ")
    )
    return not is_whole or text.startswith("..."), not text[0].isalpha()


def _walk(root: Node, first: int, last: int) -> Iterator[Node]:
    """Yield the named nodes that touch lines of a range, parents first.

    Those that are nested deeper than anyone writes are left out.
    """
    cursor = root.walk()
    levels = 0
    while True:
        node = cursor.node
        assert node is not None  # a cursor stands on a node
        touches = node.start_point[0] < last and node.end_point[0] >= first - 1
        if touches and node.is_named:
            yield node
        if touches and levels < MAX_LEVELS and cursor.goto_first_child():
            levels += 1
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
            levels -= 1


def _lines(node: Node) -> tuple[int, int]:
    return node.start_point[0] + 1, last_row(node) + 1


def _nodes_from(root: Node, line: int) -> list[Node]:
    """Return the nodes that begin on a line, outer ones first."""
    return [node for node in _walk(root, line, line) if _lines(node)[0] == line]


def _nodes_to(root: Node, line: int) -> list[Node]:
    """Return the nodes that end on a line, outer ones first."""
    return [node for node in _walk(root, line, line) if _lines(node)[1] == line]


def _edges(nodes: Iterable[Node], source: SourceFile) -> Iterator[str]:
    """Yield patterns that may begin or end a range: statements, headers and calls."""
    for node in nodes:
        if node.type.endswith(_COMPOUND) or node.type in _EDGES:
            yield from _headers(node, source)
            yield from _patterns(node, source)


def _patterns(node: Node, source: SourceFile) -> Iterator[str]:
    """Yield patterns for a whole node, from the most abstract to its own tokens."""
    if node.type in ("module", "block", "comment"):
        return
    if _header_children(node):
        yield from (f"{header} ..." for header in _headers(node, source))
        return
    for depth in (1, 2, 3, 4, 6, 8):
        yield _render(node, source, depth)


def _headers(node: Node, source: SourceFile) -> Iterator[str]:
    """Yield header patterns of a compound statement, after its decorators."""
    header = _header_children(node)
    decorators = _children(node)[:-1] if node.type == "decorated_definition" else []
    for depth in (0, 1, 2, 3, 5):
        if header:
            lines = [_render(decorator, source, depth) for decorator in decorators]
            head = _join(_render(child, source, depth) for child in header)
            yield "\n".join([*lines, head])


def _header_children(node: Node) -> list[Node]:
    """Return a compound statement's children up to its colon; others have none."""
    if not node.type.endswith(_COMPOUND):
        return []
    children = _children(node)
    if node.type == "decorated_definition":
        return _header_children(children[-1])
    for index, child in enumerate(children):
        if child.type == ":":
            return children[: index + 1]
    return []


def _children(node: Node) -> list[Node]:
    return [child for child in node.children if child.type not in _SKIPPED]


def _render(node: Node, source: SourceFile, depth: int) -> str:
    """Return a node's tokens with everything deeper than ``depth`` made a gap."""
    children = _children(node)
    if not children or node.type == "string":
        text = source.data[node.start_byte : node.end_byte].decode("utf-8", "replace")
        return "..." if node.type == "string" and depth < 3 else text
    if node.type == "block":
        return "..."
    if node.type == "import_from_statement" and depth <= 2:
        module = node.child_by_field_name("module_name")
        return f"from {module and _render(module, source, depth)} import ..."
    first, last = children[0].type, children[-1].type
    bracketed = (first, last) in {("(", ")"), ("[", "]"), ("{", "}")}
    if bracketed and depth <= 2 and node.type != "parenthesized_expression":
        return f"{first}...{last}"
    is_name = node.type in ("attribute", "dotted_name")
    if depth <= 0 and not (is_name and depth > -MAX_NAME_PARTS):
        return "..."
    parts = [_render(child, source, depth - 1) for child in children]
    return "".join(parts) if node.type in _TIGHT else _join(parts)


_NO_SPACE_AFTER = ("(", "[", "{", ".", "@", "~")
_NO_SPACE_BEFORE = (")", "]", "}", ",", ":")


def _join(parts: Iterable[str]) -> str:
    """Join tokens as a person would space them."""
    text = ""
    for part in filter(None, parts):  # in broken source a token may be missing
        is_suffix = part[0] in "([." and not part.startswith("...")
        after_name = text[-1:].isidentifier() or text[-1:] in (")", "]")
        tight = (
            # Behind a space, @ multiplies.
            (text.endswith(_NO_SPACE_AFTER) and not text.endswith(("...", " @")))
            or part.startswith(_NO_SPACE_BEFORE)
            or (is_suffix and after_name and not _is_keyword(text.split()[-1]))
        )
        text += part if tight or not text else f" {part}"
    return " ".join(text.split())


def _is_keyword(word: str) -> bool:
    return iskeyword(word) or word == "case"


def _whole_statements(span: Span, source: SourceFile) -> Span:
    """Return the lines of the statements that ``span`` cuts through."""
    first, last = span.first, span.last
    for node in _walk(source.root, span.first, span.last):
        begin, end = _lines(node)
        inner = node.children[-1:]
        if node.type == "decorated_definition" and span.first > _lines(inner[0])[0]:
            continue
        is_statement = node.type.endswith(("_statement", "_definition"))
        if is_statement and not any(child.type == "block" for child in node.children):
            first, last = min(first, begin), max(last, end)
    return Span(span.path, first, last)
