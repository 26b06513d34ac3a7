"""The most common pattern, ``a.b.c(...)``: its bytes settle nearly every place.

Where they do not, because space, a comment or a parenthesis stands between the names,
the syntax trees are compared as for every other pattern.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from keyword import iskeyword, issoftkeyword

from tree_sitter import Node

_CALL = re.compile(r"((?:[A-Za-z_]\w*\.)*)([A-Za-z_]\w*)\(\.\.\.\)", re.ASCII)
_STATEMENTS_ONCE = {"print", "exec"}  # the grammar still knows them
# Behind the last name, or the end of a group around it: the call, or what may hide it.
_CALL_BEHIND = re.compile(rb"[\s)]*[(\\#]")
_NAME_AND_DOT_BEFORE = re.compile(rb"[\w\x80-\xff]\.")
_SPACE_OR_DOT = b" \t\r\n\f\\."


@dataclass(slots=True)
class CallPattern:
    """A call of a name with any arguments."""

    owners: bytes
    """The names before the last one, each with its dot."""
    name: bytes

    def node_at(self, position: int, scope: Node, source: bytes) -> Node | None:
        """Return the call whose last name stands at a position, if there is one.

        Raises:
            LookupError: the bytes do not tell.
        """
        behind = position + len(self.name)
        first = position - len(self.owners)
        if not _CALL_BEHIND.match(source, behind):
            return None
        if not source.endswith(self.owners, 0, position):
            owner = self.owners[self.owners.rfind(b".", 0, -1) + 1 :]
            if _NAME_AND_DOT_BEFORE.match(source, position - 2):
                if not source.endswith(owner, 0, position):
                    return None  # an attribute of another name
            elif source[position - 1] not in _SPACE_OR_DOT:
                return None  # no attribute
            raise LookupError
        if source[behind] != ord("("):
            raise LookupError
        # The smallest node from the first name to the bracket.
        node = scope.descendant_for_byte_range(first, behind + 1)
        is_call = node is not None and node.type == "call" and node.start_byte == first
        return node if is_call else None


def read_call(text: str) -> CallPattern | None:
    """Return the call that the text of a pattern is; None where it is more than one."""
    match = _CALL.fullmatch(text)
    if match is None:
        return None
    owners, name = match[1], match[2]
    names = [*owners.split("."), name]
    if any(map(iskeyword, names)) or issoftkeyword(name) or name in _STATEMENTS_ONCE:
        return None
    return CallPattern(owners.encode(), name.encode())
