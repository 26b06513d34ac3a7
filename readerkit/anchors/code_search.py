"""Every place of a pattern, a name or a word in a file, and what a name is used for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tree_sitter import Node

from readerkit.anchors.pattern import PatternMatch
from readerkit.anchors.resolve import symbols_of
from readerkit.anchors.search_token import positions
from readerkit.anchors.source import SourceFile
from readerkit.anchors.suggestions import near_code, shorten
from readerkit.anchors.tree import last_row
from readerkit.errors import AnchorError
from readerkit.model.anchor import Span
from readerkit.model.code_languages import COMMENTS

UseKind = Literal["call", "set", "read", "definition"]
MAX_FOUND = 200
"""Places of one pattern; what has more says nothing."""

# What stands to the left of these is set.
_SETTERS = {
    "assignment": "left",
    "augmented_assignment": "left",
    "for_statement": "left",
    "for_in_clause": "left",
    "named_expression": "name",
    "keyword_argument": "name",
    "as_pattern": "alias",
}
_DEFINED_BY = {
    *("function_definition", "class_definition", "parameters", "lambda_parameters"),
    *("default_parameter", "typed_parameter", "typed_default_parameter"),
    *("dictionary_splat_pattern", "list_splat_pattern", "aliased_import"),
    *("dotted_name", "import_statement", "import_from_statement"),
    *("global_statement", "nonlocal_statement"),
}
_CASES = {"case_pattern", "class_pattern", "keyword_pattern", "union_pattern"}
_STRINGS = re.compile(r"string(?!_scalar)|char|heredoc|quoted|regex")
# The grammar takes the star of ``[*f()]`` for a part of ``f``.
_AROUND = {"parenthesized_expression", "list_splat"}
_OF_THEIR_OWN = {"type", "case_pattern", "list_splat"}
"""Where the grammar has other nodes for the same code than in expressions."""
_TUPLES = {"pattern_list", "tuple_pattern", "list_pattern", "as_pattern_target"}


@dataclass(frozen=True, slots=True)
class Found:
    """One place: its lines, its code on one line, and the definition around it."""

    span: Span
    symbol: str
    """Empty at the level of the module."""
    text: str
    node: Node
    start: int = -1
    """The byte where it begins, if that is not where the node does."""

    @property
    def begin(self) -> int:
        """The byte where it begins."""
        return self.node.start_byte if self.start < 0 else self.start

    def __str__(self) -> str:
        """Return ``file:line: code``."""
        return f"{self.span.path}:{self.span.first}: {shorten(self.text)}"


def find_code(text: str, source: SourceFile, symbol: str | None = None) -> list[Found]:
    """Return every place of a pattern in a file, or in one definition of it.

    Raises:
        AnchorError: no pattern, no such definition, or more places than anyone means.
    """
    if symbol is None and not source.may_hold(text):
        return []
    matches = source.find(text, scopes_of(symbol, source))
    if len(matches) > MAX_FOUND:
        raise AnchorError(
            f"{source.path}: {text!r} stands in {len(matches)} places, expected at "
            f"most {MAX_FOUND}: add a name to it"
        )
    if source.root.has_error:
        for match in matches:
            source.check_parsed(match.first, match.last)
    return [_found(match, source) for match in matches]


def check_readable(text: str, source: SourceFile) -> None:
    """Refuse a file of Python that may hold a pattern where that cannot be told.

    Code of other languages is compared by tokens, which broken code has too.

    Raises:
        AnchorError: the first line that does not parse, or has other nodes.
    """
    if not source.language.is_python:
        return
    line = source.first_broken_line
    for match in _spelled(text).finditer(source.data):
        node = source.root.descendant_for_byte_range(match.start(), match.start() + 1)
        while node is not None and not node.type.endswith("statement"):
            if node.type in _OF_THEIR_OWN:
                raise AnchorError(
                    f"{source.path}:{node.start_point[0] + 1}: {shorten(text)!r} is "
                    "spelled in a type, a case or behind a star, where no pattern "
                    "is looked for: expected 'name' or 'text' instead of 'code'"
                )
            node = None if node.type in COMMENTS else node.parent
    if line and source.may_hold(text):
        raise AnchorError(
            f"{source.path}:{line}: got code that does not parse, in which "
            f"{shorten(text)!r} may stand: expected valid Python"
        )


def _spelled(text: str) -> re.Pattern[bytes]:
    """Return what finds a pattern by its letters alone, whatever they mean."""
    pieces = [
        rb"\s*".join(
            re.escape(each.encode()) for each in re.findall(r"\w+|[^\w\s]", part)
        )
        for part in text.strip(". ").split("...")
    ]
    return re.compile(rb"(?<![\w.])" + rb"[^\n]*?".join(pieces))


def check_whole(symbol: str, source: SourceFile) -> None:
    """Refuse a definition that may not end where code that does not parse ends it.

    Raises:
        AnchorError: the line that does not parse.
    """
    if source.root.has_error:
        for each in symbols_of(symbol, source):
            source.check_parsed(each.first, each.last)


def first_code(text: str, source: SourceFile, symbol: str | None = None) -> list[Found]:
    """Return every place of a pattern, of which there must be one.

    Raises:
        AnchorError: none, with the nearest lines; see also ``find_code``.
    """
    found = find_code(text, source, symbol)
    if not found:
        where = f" in {symbol}" if symbol else ""
        raise AnchorError(
            f"{source.path}: no match for {shorten(text)!r}{where}",
            near_code(text, scopes_of(symbol, source), source),
        )
    return found


def scopes_of(symbol: str | None, source: SourceFile) -> list[Node]:
    """Return the nodes of a definition, or the whole file.

    Raises:
        AnchorError: no such definition, with the nearest names.
    """
    if symbol is None:
        return [source.root]
    return [each.scope for each in symbols_of(symbol, source)]


def found_at(node: Node, source: SourceFile) -> Found:
    """Return a node as a place."""
    first, last = node.start_point[0] + 1, last_row(node) + 1
    around = source.symbol_around(first, last)
    text = " ".join((node.text or b"").decode("utf-8", "replace").split())
    return Found(
        Span(source.path, first, last), around.name if around else "", text, node
    )


def _found(match: PatternMatch, source: SourceFile) -> Found:
    """Return a match as a place; one of tokens by its own lines, not by its node's."""
    if match.start < 0:
        return found_at(match.node, source)
    around = source.symbol_around(match.first, match.last)
    lines = (source.line(n) for n in range(match.first, match.last + 1))
    text = " ".join(" ".join(lines).split())
    span = Span(source.path, match.first, match.last)
    name = around.name if around else ""
    return Found(span, name, text, match.node, match.start)


def find_words(
    word: str, source: SourceFile, symbol: str | None = None
) -> Iterator[Node]:
    """Yield the smallest node at every place of a word, comments left out.

    In a string one may stand behind an escape, as in ``"\\nword"``.
    """
    raw = word.encode()
    if raw not in source.data:
        return
    escaped = re.compile(rb"(?<=\\[abefnrtv])%b(?!\w)" % re.escape(raw))
    for scope in scopes_of(symbol, source):
        start, end = scope.start_byte, scope.end_byte
        places = positions(raw, source.data, start, end)
        places += [m.start() for m in escaped.finditer(source.data, start, end)]
        for at in sorted(places):
            node = scope.descendant_for_byte_range(at, at + len(raw))
            if node is not None and node.type not in COMMENTS:
                yield node


def find_names(
    name: str, source: SourceFile, symbol: str | None = None
) -> Iterator[Node]:
    """Yield every place of a name in code: no comment, and nothing of a string.

    Most grammars call names by what they are of: a command, a constant, a label.
    """
    for node in find_words(name, source, symbol):
        is_python = source.language.is_python
        if node.type.endswith("identifier") if is_python else not _is_string(node):
            yield node


def _is_string(node: Node) -> bool:
    each: Node | None = node
    while each is not None and each.named_child_count == 0:
        if _STRINGS.search(each.type):
            return True
        each = each.parent
    return each is not None and bool(_STRINGS.search(each.type))


def find_uses(name: str, source: SourceFile) -> Iterator[tuple[UseKind, Found]]:
    """Yield every place of an identifier, and what it is there for.

    An import, a parameter and what is declared without a value count as definitions; a
    field with its default, and the name of a keyword argument, as set; a decorator as
    a call. By the other name that an import gives it, it is used too.

    Raises:
        AnchorError: a file of another language than Python.
    """
    only_python(source, "a use of a name")
    names = [name]
    for each in names:  # an alias adds to them
        for node in find_names(each, source):
            above = node.parent
            whole = node
            if above and above.type == "attribute" and _is(above, "attribute", node):
                whole, above = above, above.parent
            if (alias := _alias_of(node)) and alias not in names:
                names.append(alias)
            use = _use(whole, above)
            if use == "definition" and each != name:
                continue
            statement = above if above and above.type == "call" else whole
            found = found_at(statement, source)
            if source.root.has_error:
                source.check_parsed(found.span.first, found.span.last)
            yield use, found


def _alias_of(node: Node) -> str:
    """Return the other name that an import gives to a name; empty where none."""
    dotted = node.parent
    above = dotted.parent if dotted and dotted.type == "dotted_name" else None
    if above is None or above.type != "aliased_import":
        return ""
    alias = above.child_by_field_name("alias")
    is_last = dotted is not None and dotted.named_children[-1] == node
    if alias is None or not is_last or alias.text == node.text:
        return ""
    return (alias.text or b"").decode(errors="replace")


def only_python(source: SourceFile, what: str) -> None:
    """Refuse what is known of Python alone.

    Raises:
        AnchorError: a file of another language.
    """
    if not source.language.is_python:
        raise AnchorError(
            f"{source.path}: {what} is read in Python alone, and this is "
            f"{source.language.title}: expected a claim that something stands, is "
            "absent, or comes in an order"
        )


def _use(node: Node, above: Node | None) -> UseKind:
    while above is not None and (above.type in _TUPLES or above.type in _AROUND):
        node, above = above, above.parent
    if above is None:
        return "read"
    if above.type == "decorator" or (
        above.type == "call" and _is(above, "function", node)
    ):
        return "call"
    if case := _in_case(node, above):
        return case
    if above.type == "list_splat_pattern" and not _is_parameter(above):
        return "set"
    if above.type == "assignment" and not above.child_by_field_name("right"):
        return "definition" if _is(above, "left", node) else "read"
    field = _SETTERS.get(above.type)
    if field and _is(above, field, node):
        return "set"
    if _is_target(above):
        return "set"
    if above.type in _DEFINED_BY and not _is(above, "value", node):
        return "definition"
    return "read"


def _is_parameter(splat: Node) -> bool:
    above = splat.parent
    return above is not None and above.type in _DEFINED_BY


def _is_target(above: Node) -> bool:
    """Tell whether a list or a tuple is what a ``with`` binds."""
    while above.type in ("tuple", "list") and above.parent is not None:
        above = above.parent
    return above.type == "as_pattern_target"


def _in_case(node: Node, above: Node) -> UseKind | None:
    """Return what a name is for in a pattern of ``case``; nothing elsewhere."""
    if above.type in ("splat_pattern", "keyword_pattern"):
        return "set" if above.type == "splat_pattern" else "read"
    outer = above.parent
    if outer is None or outer.type not in _CASES:
        return None
    if above.type == "as_pattern":
        return "set" if above.named_children[-1] == node else None
    if above.type != "dotted_name":
        return None
    is_bound = above.named_child_count == 1 and outer.type != "class_pattern"
    return "set" if is_bound else "read"


def _is(above: Node, field: str, node: Node) -> bool:
    return above.child_by_field_name(field) == node
