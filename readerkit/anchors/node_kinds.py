"""What a grammar without queries calls its parts, told from the names of its nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import tree_sitter

_MARKS = (
    ("comment", re.compile(r"comment")),
    ("string", re.compile(r"^(?!.*(content|interpolat|fragment)).*string")),
    ("number", re.compile(r"(^|_)(number|integer|float|int)(_literal)?$")),
    (
        "constant.builtin",
        re.compile(r"^(boolean|bool|true|false|null|nil)(_literal)?$"),
    ),
)
_TEXT = re.compile(r"string(?!_scalar)|char|regex|rune|heredoc|quoted|escape")
_INNER = re.compile(r"content|fragment|escape|character$|pattern$|body")
_KEYWORD = re.compile(r"[A-Za-z_]{2,}")
_END = r"\w*(definition|declaration|item|statement|signature|def|decl)$"
_DEFINES = {
    "function": re.compile(
        r"(function|method|subroutine|procedure|predicate|macro)" + _END
    ),
    "class": re.compile(
        r"(class|struct|enum|interface|trait|module|protocol|object|record|contract"
        r"|message|service|library)" + _END
    ),
}
_NAME = re.compile(r"identifier|name$|^word$|^symbol$|^constant$|^atom$")


def marks_by_names(grammar: tree_sitter.Language) -> str:
    """Return a query for the colours of a grammar: words it spells out are keywords."""
    return "\n".join(_marks(grammar))


def tags_by_names(grammar: tree_sitter.Language) -> str:
    """Return a query for the definitions of a grammar: what has a field ``name``."""
    named = [kind for kind, is_named in _kinds(grammar) if is_named]
    names = [kind for kind in named if _NAME.search(kind)]
    patterns = (
        f"({kind} name: ({name}) @name) @definition.{what}"
        for kind in named
        if (what := next((w for w, said in _DEFINES.items() if said.search(kind)), ""))
        for name in names
    )
    return "\n".join(each for each in patterns if _is_possible(grammar, each))


def strings_by_names(grammar: tree_sitter.Language) -> str:
    """Return a query for strings and characters, each with its quotes or without."""
    named = [kind for kind, is_named in _kinds(grammar) if is_named]
    kinds = [kind for kind in named if _TEXT.search(kind)]
    patterns = (f"({kind}) @string" for kind in kinds)
    return "\n".join(each for each in patterns if _is_possible(grammar, each))


def is_without_quotes(kind: str) -> bool:
    """Tell whether a node of a string is what stands between its quotes."""
    return bool(_INNER.search(kind))


def _marks(grammar: tree_sitter.Language) -> Iterator[str]:
    for kind, is_named in _kinds(grammar):
        if not is_named and _KEYWORD.fullmatch(kind):
            yield f'"{kind}" @keyword'
        for mark, said in _MARKS if is_named else ():
            if said.search(kind) and _is_possible(grammar, f"({kind}) @a"):
                yield f"({kind}) @{mark}"


def _kinds(grammar: tree_sitter.Language) -> list[tuple[str, bool]]:
    """Return the kinds of nodes that a tree has, and whether each has a name."""
    ids = range(1, grammar.node_kind_count)
    kinds = (
        (grammar.node_kind_for_id(number) or "", grammar.node_kind_is_named(number))
        for number in ids
        if grammar.node_kind_is_visible(number)
    )
    return [*dict.fromkeys(kinds)]


def _is_possible(grammar: tree_sitter.Language, pattern: str) -> bool:
    try:
        tree_sitter.Query(grammar, pattern)
    except tree_sitter.QueryError:
        return False
    return True
