"""The lines of a file as HTML: coloured, numbered, with links left open until known.

Two steps, because the first needs only the file and the second all files: ``draw``
makes the lines with marks where a name might become a link, ``link`` fills those in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape

from readerkit.render.html.escape import Escaping, escaping
from readerkit.xref.colours import find_colours
from readerkit.xref.names import Names

# Control characters of source never reach a line as they are: these are free.
_USE, _DEFINED, _NAME, _END = b"\1", b"\2", b"\3", b"\4"
_VALUE = b"="  # before the name of what is given a value: coloured as any other
_OPEN = re.compile(b"([\1\2])([^\3]*)\3([^\4]*)\4")
_CLASSES = {
    "comment": b"c",
    "string": b"s",
    "docstring": b"d",
    "number": b"n",
    "keyword": b"k",
    "constant": b"k",
    "defined": b"f",
}
_CLOSE = b"</span>"


@dataclass(frozen=True, slots=True)
class Drawn:
    """The lines of one file, coloured, with names that may become links."""

    lines: list[bytes]


def draw_plain(data: bytes) -> Drawn:
    """Return the lines of a file as they are."""
    safe = escaping(data)
    text = safe.piece(safe.data) if safe.piece else safe.data
    return Drawn(_lines(safe.finish(text)))


def _lines(text: bytes) -> list[bytes]:
    lines = text.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return lines


UseLink = Callable[[str, str], Iterable[tuple[int, str]]]
"""From a dotted name and its owner to the parts that are links, and where to."""
DefinitionLink = Callable[[str], str | None]
"""From a qualified name to the page of its uses."""


def draw(data: bytes, names: Names) -> Drawn:
    """Return the coloured lines of a file."""
    safe = escaping(data)
    kinds = find_colours(data) | names.kinds
    pieces: list[tuple[int, int, bytes, bytes]] = [
        (*place, b'<span class="' + _CLASSES[kind] + b'">', _CLOSE)
        for place, kind in kinds.items()
    ]
    for start, end, name in names.definition_places:
        mark = _DEFINED if (start, end) in kinds else _DEFINED + _VALUE
        pieces.append((start, end, mark + name.encode() + _NAME, _END))
    for use in names.uses:
        opening = _USE + use.owner.encode() + _NAME
        pieces.append((use.start, use.end, opening, _END))
    pieces.sort()
    return Drawn(_lines(safe.finish(b"".join(_marked(safe, pieces)))))


def _marked(
    safe: Escaping, pieces: Iterable[tuple[int, int, bytes, bytes]]
) -> list[bytes]:
    """Return a file in parts: what is between pieces, and each between its marks."""
    data, escape_piece = safe.data, safe.piece
    out: list[bytes] = []
    reached = 0
    for start, end, opening, closing in pieces:
        if start < reached:
            continue
        before, inner = data[reached:start], data[start:end]
        if escape_piece:
            before, inner = escape_piece(before), escape_piece(inner)
        if b"\n" in inner:  # each line is an element of its own
            inner = inner.replace(b"\n", closing + b"\n" + opening)
        out += (before, opening, inner, closing)
        reached = end
    last = data[reached:]
    out.append(escape_piece(last) if escape_piece else last)
    return out


def link(lines: bytes, use: UseLink, definition: DefinitionLink) -> bytes:
    """Return lines with their names linked, as far as they are known."""
    known: dict[bytes, bytes] = {}

    def fill(match: re.Match[bytes]) -> bytes:
        whole = match[0]
        if whole not in known:
            make = _definition if match[1] == _DEFINED else _use
            known[whole] = make(match[2].decode(), match[3].decode(), use, definition)
        return known[whole]

    return _OPEN.sub(fill, lines)


def unlinked(lines: bytes) -> bytes:
    """Return lines with their names as plain words."""
    return link(lines, lambda *_: (), lambda _: None)


def _definition(name: str, text: str, _: UseLink, definition: DefinitionLink) -> bytes:
    is_value = name.startswith("=")
    address = definition(name.removeprefix("="))
    kind = "" if is_value else ' class="f"'
    if address is None:
        return (text if is_value else f"<span{kind}>{text}</span>").encode()
    return f'<a{kind} href="{escape(address)}">{text}</a>'.encode()


def _use(owner: str, chain: str, use: UseLink, _: DefinitionLink) -> bytes:
    parts = chain.split(".")
    for part, address in use(chain, owner):
        parts[part] = f'<a href="{escape(address)}">{parts[part]}</a>'
    return ".".join(parts).encode()


def numbered(drawn: Drawn, classes: Mapping[int, str], first: int = 1) -> list[bytes]:
    """Return each line with its number, which is its address, and its classes."""
    out = []
    for number, line in enumerate(drawn.lines, start=first):
        kind = classes.get(number)
        mark = b'<div class="l ' + kind.encode() + b'">' if kind else b'<div class="l">'
        out.append(b"%b%b%b</div>\n" % (mark, number_link(number), line))
    return out


def number_link(number: int) -> bytes:
    """Return a line's number: its anchor, left out of the order of tabs."""
    return b'<a id="L%d" href="#L%d" tabindex="-1">%d</a>' % (number, number, number)
