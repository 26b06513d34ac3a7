"""The definitions of a file, by the look of its lines: names, nesting, extents.

Indentation says where a definition ends, in languages with braces too, for code that is
formatted. Code that is not loses some definitions here, and is carried by its lines
alone. No parser: one of each language would cost more than it finds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from readerkit.anchors.drift.text import FileText

_PYTHON = re.compile(rb"\s*(?:async\s+)?(?:def|class)\s+(\w+)")
_NAMED = re.compile(
    rb"\s*(?:[\w@]+(?:\([^)]*\))?\s+){0,6}?"
    rb"(?:def|class|fn|func|function|struct|impl|interface|enum|trait|namespace|mod|"
    rb"module|object|union|record)\s+(?:\([^)]*\)\s*|<[^>]*>\s*)?\*?([\w:$]+)"
)
_ASSIGNED = re.compile(
    rb"\s*(?:export\s+)?(?:const|let|var)\s+([\w$]+)\s*=.*(?:=>|function)"
)
_CALLED = re.compile(rb"\s*[\w:<>~*&\s\[\],.@]*?([\w~:$]+)\s*\([^;]*[{(,)]\s*$")
_NO_DEFINITION = {
    b"if",
    b"for",
    b"while",
    b"switch",
    b"return",
    b"catch",
    b"else",
    b"do",
    b"case",
    b"match",
    b"assert",
    b"new",
    b"throw",
    b"sizeof",
    b"await",
    b"with",
    b"elif",
    b"try",
}
_ACCESS = (b"public", b"private", b"protected", b"default:", b"case ")
_QUOTES = re.compile(rb'"""|\'\'\'')


@dataclass(slots=True, eq=False)
class Block:
    """A definition: its lines, counted from 0, both ends included."""

    name: bytes
    indent: int
    first: int
    """Of its decorators, where it has some."""
    head: int
    last: int
    parent: Block | None
    children: list[Block] = field(default_factory=list)

    @property
    def path(self) -> tuple[bytes, ...]:
        """The names from the top to this one."""
        return (*(self.parent.path if self.parent else ()), self.name)


def outline(text: FileText, path: str) -> Block:
    """Return the whole file as a block, with its definitions inside."""
    return _Outliner(text, path.endswith((".py", ".pyi", ".pyx"))).walk()


class _Outliner:
    """One walk over the lines of a file, from top to bottom."""

    def __init__(self, text: FileText, is_python: bool) -> None:
        self.text, self.is_python = text, is_python
        whole = Block(b"", -1, 0, -1, len(text.lines) - 1, None)
        self.stack = [whole]
        self.end = -1
        """The last line so far that belongs to what is open."""
        self.decorators: tuple[int, int] | None = None
        """The first line and the indent of those that wait for their definition."""

    def walk(self) -> Block:
        """Return the whole, all blocks closed."""
        quote = b""
        for number, indent in enumerate(self.text.indents):
            if indent < 0:
                continue
            line = self.text.lines[number]
            if quote:
                self.end = number
                quote = b"" if line.count(quote) % 2 else quote
                continue
            start = line[:400].lstrip()[:1]
            if self.is_python and start == b"#":
                continue
            self._close(number, indent, start, line)
            self._open(number, indent, start, line)
            self.end = number
            if self.is_python and (b'"""' in line or b"'''" in line):
                quote = _left_open(line)
        for block in self.stack[1:]:
            block.last = max(block.last, self.end)
        return self.stack[0]

    def _open(self, number: int, indent: int, start: bytes, line: bytes) -> None:
        """Begin a definition, if this line does."""
        waiting = self.decorators
        if start == b"@" and not (waiting and waiting[1] == indent):
            self.decorators = number, indent
        if name := _name(line[:400], is_python=self.is_python):
            first = waiting[0] if waiting and waiting[1] == indent else number
            block = Block(name, indent, first, number, number, self.stack[-1])
            self.stack[-1].children.append(block)
            self.stack.append(block)
            self.decorators = None
        elif waiting and indent <= waiting[1] and start not in (b"@", b")", b"]"):
            self.decorators = None

    def _close(self, number: int, indent: int, start: bytes, line: bytes) -> None:
        """Leave the definitions that a line stands outside of."""
        while indent <= self.stack[-1].indent:
            block = self.stack[-1]
            if indent == block.indent and start in (b")", b"]", b"{"):
                return
            if not self.is_python and (
                start == b"#" or (indent == block.indent and _is_access(line))
            ):
                return
            closes = indent == block.indent and start == b"}"
            block.last = max(block.last, number if closes else self.end)
            self.stack.pop()
            if closes:
                return


def _is_access(line: bytes) -> bool:
    bare = line.strip()
    return bare.startswith(_ACCESS) and bare.endswith(b":")


def _name(line: bytes, *, is_python: bool) -> bytes:
    if is_python:
        found = _PYTHON.match(line) if b"def " in line or b"class " in line else None
        return found[1] if found else b""
    found = _NAMED.match(line) or _ASSIGNED.match(line)
    if found is None and b"(" in line:
        found = _CALLED.match(line)
        words = line.split(None, 1)
        first = re.split(rb"\W", words[0], maxsplit=1)[0] if words else b""
        if found and (first in _NO_DEFINITION or found[1] in _NO_DEFINITION):
            return b""
        if found and not line.rstrip().endswith((b"{", b"(", b",", b")")):
            return b""
    return found[1] if found else b""


def _left_open(line: bytes) -> bytes:
    """Return the quotes that a line opens and does not close."""
    quote = b""
    for found in _QUOTES.finditer(line):
        if not quote:
            quote = found[0]
        elif quote == found[0]:
            quote = b""
    return quote


def walk(block: Block) -> Iterator[Block]:
    """Yield a block and all that are inside it."""
    yield block
    for child in block.children:
        yield from walk(child)


def paired_below(block: Block, is_paired: Callable[[Block], bool]) -> Iterator[Block]:
    """Yield the outermost paired definitions inside a block."""
    for child in block.children:
        if is_paired(child):
            yield child
        else:
            yield from paired_below(child, is_paired)
