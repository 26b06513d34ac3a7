"""Where a default is written: of a field, a parameter, a constant, a program's option.

Gives the code of the value; what it is worth, ``claims`` finds out.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from readerkit.anchors.code_search import Found, find_words, found_at
from readerkit.anchors.pattern import compile_pattern
from readerkit.anchors.rebindings import rebound
from readerkit.anchors.resolve import symbols_of
from readerkit.anchors.source import SourceFile
from readerkit.anchors.symbols import Symbol
from readerkit.errors import AnchorError

_PARAMETERS = {"default_parameter", "typed_default_parameter"}
_ACCESSORS = {b"setter", b"getter", b"deleter", b"register"}
_SETS = b"set_defaults"
_Setting = tuple[Node, Node | None]
"""Where a name is set, and the value that it gets, if that is written there alone."""


def find_default(name: str, source: SourceFile) -> tuple[Found, Node | None]:
    """Return where the default of a name is written, and its value, if it has one.

    ``Class.field``, ``function.parameter`` or what a function's body sets at its own
    level, a constant of the module, or ``--option``, whose value is its whole call of
    ``add_argument``.

    Raises:
        AnchorError: no such field, parameter, option or constant, or several.
    """
    if name.startswith("-"):
        found: list[_Setting] = [(node, node) for node in _options(name, source)]
        kind = "call of add_argument with"
    elif "." not in name:
        found = _constants(name, source.root)
        kind = "constant of this module is called"
    else:
        owner, _, name = name.rpartition(".")
        definitions = _implemented(symbols_of(owner, source))
        each = [_set_by(name, symbol, source) for symbol in definitions]
        found = [setting for settings in each for setting in settings]
        if found:
            _check_each(owner, name, definitions, each, source)
        what = "field" if definitions[0].kind == "class" else "parameter or local"
        kind = f"{what} of {owner} is called"
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


def is_of_field(value: Node) -> bool:
    """Tell whether a value is what the body of a class gives to a name."""
    above = [value]
    while len(above) < 5 and (parent := above[-1].parent):
        above.append(parent)
    kinds = [node.type for node in above[1:]]
    return kinds == ["assignment", "expression_statement", "block", "class_definition"]


def _set_by(name: str, symbol: Symbol, source: SourceFile) -> list[_Setting]:
    """Return where a definition gives a name its default."""
    if symbol.kind == "class":
        outside = _assigned(f"{symbol.name}.{name}", source.root)
        found = _constants(name, _body(symbol.node))
        return [*found, *outside] if found else []
    return [*_parameters(name, symbol.node)] or _constants(name, _body(symbol.node))


def _check_each(
    owner: str,
    name: str,
    definitions: list[Symbol],
    found: list[list[_Setting]],
    source: SourceFile,
) -> None:
    """Refuse a default that only one of several definitions has.

    Raises:
        AnchorError: which of them runs is not told by their names.
    """
    outer, _, last = owner.rpartition(".")
    around = _implemented(source.symbols.get(outer, [])) if outer else []
    if len(around) > max(1, len(definitions)):
        owner, definitions, found = outer, around, [[]]
        name = last
    if all(found) or any(_is_accessor(each.scope) for each in definitions):
        return
    lines = ", ".join(str(each.first) for each in definitions)
    raise AnchorError(
        f"{source.path}: {len(definitions)} definitions of {owner}, of which one has "
        f"'{name}' and another has not: lines {lines}"
    )


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
    return b"overload" in _decorators(scope)


def _is_accessor(scope: Node) -> bool:
    """Tell whether a definition stands beside others of its name."""
    return not _ACCESSORS.isdisjoint(_decorators(scope))


def _decorators(scope: Node) -> set[bytes]:
    """Return the last names of what decorates a definition."""
    lines = (n.text or b"" for n in scope.named_children if n.type == "decorator")
    heads = (line.removeprefix(b"@").partition(b"(")[0] for line in lines)
    return {head.split(b".")[-1].strip() for head in heads}


def _body(node: Node) -> Node:
    return node.child_by_field_name("body") or node


def _constants(name: str, block: Node) -> list[_Setting]:
    """Return each place right in a block that sets a name; none where none assigns."""
    found = [*_assigned(name, block)]
    valued = [(node, value) for node, value in found if value is not None] or found
    others = [(node, None) for node in rebound(name, block)] if valued else []
    return [*valued, *others]


def _assigned(name: str, block: Node) -> Iterator[_Setting]:
    """Yield each assignment of a name right in a block, and its value."""
    for found, node in _set_in(block):
        if found == name:
            value = node.child_by_field_name("right")
            while value is not None and value.type == "assignment":  # a = b = 1
                value = value.child_by_field_name("right")
            yield node, value


def _set_in(block: Node) -> Iterator[tuple[str, Node]]:
    """Yield each assignment right in a block, with what it sets."""
    for statement in block.named_children:
        if statement.type == "expression_statement":
            for node in statement.named_children:
                while node.type == "assignment" and (left := _left(node)):
                    yield (left.text or b"").decode(errors="replace"), node
                    node = node.child_by_field_name("right") or left


def _left(node: Node) -> Node | None:
    return node.child_by_field_name("left")


def _parameters(name: str, function: Node) -> Iterator[_Setting]:
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
    """Yield each call of ``add_argument`` that has this option, or sets its default."""
    for node in find_words(name, source):
        string = node.parent if node.type == "string_content" else node
        arguments = string.parent if string else None
        call = arguments.parent if arguments else None
        if string and call and call.type == "call" and node.text == name.encode():
            function = call.child_by_field_name("function")
            if function and (function.text or b"").endswith(b"add_argument"):
                yield call
                yield from _defaults_set(_destination(name, call), source)


def _destination(name: str, call: Node) -> str:
    """Return what a program calls the value of an option."""
    arguments = call.child_by_field_name("arguments")
    names = []
    for node in arguments.named_children if arguments else ():
        word = node.child_by_field_name("name")
        if word is not None and word.text == b"dest":
            value = node.child_by_field_name("value")
            return ((value.text if value else b"") or b"").decode().strip("'\"")
        if node.type == "string":
            names.append((node.text or b"").decode(errors="replace").strip("'\""))
    long = next((each for each in names if each.startswith("--")), name)
    return long.lstrip("-").replace("-", "_")


def _defaults_set(name: str, source: SourceFile) -> Iterator[Node]:
    """Yield each call of ``set_defaults`` that gives a name another default."""
    for node in find_words(name, source) if name else ():
        word, above = node.parent, node.parent and node.parent.parent
        call = above.parent if above else None
        if word and call and word.type == "keyword_argument" and call.type == "call":
            function = call.child_by_field_name("function")
            is_name = word.child_by_field_name("name") == node
            if is_name and function and (function.text or b"").endswith(_SETS):
                yield call
