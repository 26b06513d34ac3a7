"""Where a default is written: of a field, a parameter, a constant, a program's option.

Gives the code of the value; what it is worth, ``claims`` finds out.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from readerkit.anchors.code_search import Found, find_words, found_at
from readerkit.anchors.pattern import compile_pattern
from readerkit.anchors.resolve import symbols_of
from readerkit.anchors.source import SourceFile
from readerkit.anchors.symbols import Symbol
from readerkit.errors import AnchorError

_PARAMETERS = {"default_parameter", "typed_default_parameter"}


def find_default(name: str, source: SourceFile) -> tuple[Found, Node | None]:
    """Return where the default of a name is written, and its value, if it has one.

    ``Class.field``, ``function.parameter`` or what a function's body sets at its own
    level, a constant of the module, or ``--option``, whose value is its whole call of
    ``add_argument``.

    Raises:
        AnchorError: no such field, parameter, option or constant, or several.
    """
    found: list[tuple[Node, Node | None]]
    if name.startswith("-"):
        found = [(node, node) for node in _options(name, source)]
        kind = "call of add_argument with"
    elif "." not in name:
        found = [*_assigned(name, source.root)]
        kind = "constant of this module is called"
    else:
        owner, _, last = name.rpartition(".")
        definitions = _implemented(symbols_of(owner, source))
        found = [
            each
            for symbol in definitions
            for each in (
                _assigned(last, _body(symbol.node))
                if symbol.kind == "class"
                else (
                    [*_parameters(last, symbol.node)]
                    or _assigned(last, _body(symbol.node))
                )
            )
        ]
        what = "field" if definitions[0].kind == "class" else "parameter or local"
        kind = f"{what} of {owner} is called"
        name = last
    if not found:
        raise AnchorError(f"{source.path}: no {kind} '{name}'", _near(name, source))
    if len(found) > 1:
        lines = ", ".join(str(node.start_point[0] + 1) for node, _ in found)
        raise AnchorError(
            f"{source.path}: {len(found)} places set '{name}', expected one: "
            f"lines {lines}"
        )
    [(node, value)] = found
    return found_at(node, source), value


def names_of_defaults(source: SourceFile) -> Iterator[tuple[str, int]]:
    """Yield each name that has one default in a file of Python, and the line of it."""
    found: dict[str, list[Node]] = {}
    for name, node in _set_in(source.root):
        found.setdefault(name, []).append(node)
    for owner, definitions in source.symbols.items():
        for symbol in _implemented([*definitions]):
            is_class = symbol.kind == "class"
            names = _set_in(_body(symbol.node)) if is_class else _optional(symbol.node)
            for name, node in names:
                found.setdefault(f"{owner}.{name}", []).append(node)
    for name, nodes in found.items():
        has_value = any(map(nodes[0].child_by_field_name, ("right", "value")))
        if len(nodes) == 1 and has_value and name.replace(".", "").isidentifier():
            yield name, nodes[0].start_point[0] + 1


def is_like(code: str, value: Node, source: SourceFile) -> bool:
    """Tell whether all of a value is what a pattern stands for.

    Raises:
        AnchorError: no pattern.
    """
    matches = compile_pattern(code).find([value], source.data)
    ends = {(match.node.start_byte, match.node.end_byte) for match in matches}
    return (value.start_byte, value.end_byte) in ends


def _near(name: str, source: SourceFile) -> list[str]:
    lines = (
        source.line(n.start_point[0] + 1).strip() for n in find_words(name, source)
    )
    return [f"it stands in: {line}" for line in dict.fromkeys(lines)][:3]


def _implemented(definitions: list[Symbol]) -> list[Symbol]:
    """Return those that run; a ``typing.overload`` only tells a type checker."""
    whole = [each for each in definitions if not _is_overload(each.scope)]
    return whole or definitions


def _is_overload(scope: Node) -> bool:
    lines = (n.text or b"" for n in scope.named_children if n.type == "decorator")
    return any(line.removeprefix(b"@").split(b".")[-1] == b"overload" for line in lines)


def _body(node: Node) -> Node:
    return node.child_by_field_name("body") or node


def _assigned(name: str, block: Node) -> Iterator[tuple[Node, Node | None]]:
    """Yield each assignment of a name right in a block, and its value."""
    for found, node in _set_in(block):
        if found == name:
            yield node, node.child_by_field_name("right")


def _set_in(block: Node) -> Iterator[tuple[str, Node]]:
    """Yield each assignment right in a block, with what it sets."""
    for statement in block.named_children:
        if statement.type == "expression_statement":
            for node in statement.named_children:
                left = node.child_by_field_name("left")
                if node.type == "assignment" and left:
                    yield (left.text or b"").decode(errors="replace"), node


def _parameters(name: str, function: Node) -> Iterator[tuple[Node, Node | None]]:
    """Yield the parameter of that name, and its default."""
    listed = function.child_by_field_name("parameters")
    for node in listed.named_children if listed else ():
        named = node.child_by_field_name("name") if node.type in _PARAMETERS else node
        if node.type == "typed_parameter":
            named = node.named_children[0]
        if named is not None and named.text == name.encode():
            yield node, node.child_by_field_name("value")


def _optional(function: Node) -> Iterator[tuple[str, Node]]:
    """Yield each parameter of a function that has a default."""
    listed = function.child_by_field_name("parameters")
    for node in listed.named_children if listed else ():
        named = node.child_by_field_name("name") if node.type in _PARAMETERS else None
        if named is not None:
            yield (named.text or b"").decode(errors="replace"), node


def _options(name: str, source: SourceFile) -> Iterator[Node]:
    """Yield each call of ``add_argument`` that has this option."""
    for node in find_words(name, source):
        string = node.parent if node.type == "string_content" else node
        arguments = string.parent if string else None
        call = arguments.parent if arguments else None
        if string and call and call.type == "call" and node.text == name.encode():
            function = call.child_by_field_name("function")
            if function and (function.text or b"").endswith(b"add_argument"):
                yield call
