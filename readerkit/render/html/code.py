"""The lines of a file as HTML: coloured, numbered, with links left open until known.

Two steps, because the first needs only the file and the second all files: ``draw``
makes the lines with marks where a name might become a link, ``link`` fills those in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from readerkit.anchors.xref.colours import Colours, find_colours
from readerkit.anchors.xref.names import Names
from readerkit.render.html.escape import Escaping, attribute, escaping

# Control characters of source never reach a line as they are: these are free.
_USE, _DEFINED, _NAME, _END = b"\1", b"\2", b"\3", b"\4"
_VALUE = b"="  # before the name of what is given a value: coloured as any other
_OPEN = re.compile(b"([\1\2])([^\3]*)\3([^\4]*)\4")
# Elements of one letter that say nothing by themselves: there are 200,000.
_ELEMENTS = {
    "comment": (b"<em>", b"</em>"),
    "docstring": (b"<i>", b"</i>"),
    "string": (b"<u>", b"</u>"),
    "number": (b"<b class=n>", b"</b>"),
    "keyword": (b"<b>", b"</b>"),
    "constant": (b"<b>", b"</b>"),
    "defined": (b"<b class=f>", b"</b>"),
}
_BETWEEN = re.compile(rb"</b>( +)<b>|<([iu])></\2>")
"""What joins two keywords, and an element of nothing."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """The lines of one file, coloured, with names that may become links."""

    text: bytes = b""
    """As one, because a million lines of their own weigh more than what they say."""
    count: int = 0

    @classmethod
    def of(cls, text: bytes) -> Drawn:
        """Return the lines of a text; behind its last line end is none."""
        ends = text.count(b"\n")
        return cls(text, ends + (not text.endswith(b"\n") and text != b""))

    @property
    def lines(self) -> tuple[bytes, ...]:
        """Each line by itself."""
        return _cut(self)


@lru_cache(8)
def _cut(drawn: Drawn) -> tuple[bytes, ...]:
    return tuple(drawn.text.split(b"\n")[: drawn.count])


def draw_plain(data: bytes) -> Drawn:
    """Return the lines of a file as they are."""
    safe = escaping(data)
    text = safe.piece(safe.data) if safe.piece else safe.data
    return Drawn.of(safe.finish(text))


UseLink = Callable[[str, str], Iterable[tuple[int, str]]]
"""From a dotted name and its owner to the parts that are links, and where to."""
DefinitionLink = Callable[[str], str | None]
"""From a qualified name to the page of its uses."""


def draw(data: bytes, names: Names, colours: Colours | None = None) -> Drawn:
    """Return the coloured lines of a file; of one of Python by its tokens."""
    safe = escaping(data)
    kinds = (find_colours(data) if colours is None else colours) | names.kinds
    pieces: list[tuple[int, int, bytes, bytes]] = [
        (*place, *_ELEMENTS[kind]) for place, kind in kinds.items()
    ]
    for start, end, name in names.definition_places:
        mark = _DEFINED if (start, end) in kinds else _DEFINED + _VALUE
        pieces.append((start, end, mark + name.encode() + _NAME, _END))
    for use in names.uses:
        opening = _USE + use.owner.encode() + _NAME
        pieces.append((use.start, use.end, opening, _END))
    pieces.sort()
    text = _BETWEEN.sub(rb"\1", b"".join(_marked(safe, pieces)))
    return Drawn.of(safe.finish(text))


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
    kind = "" if is_value else " class=f"
    if address is None:
        return (text if is_value else f"<b{kind}>{text}</b>").encode()
    return f"<a{kind} href={attribute(address)}>{text}</a>".encode()


def _use(owner: str, chain: str, use: UseLink, _: DefinitionLink) -> bytes:
    parts = chain.split(".")
    for part, address in use(chain, owner):
        parts[part] = f"<a href={attribute(address)}>{parts[part]}</a>"
    return ".".join(parts).encode()


def numbered(drawn: Drawn, classes: Mapping[int, str]) -> list[bytes]:
    """Return each line of a file with its address and its classes.

    The style sheet counts them: a link in each would weigh more than the text.
    """
    out = []
    for number, line in enumerate(drawn.lines, start=1):
        kind = f" class={attribute(classes[number])}" if number in classes else ""
        out.append(b"<div id=L%d%b>%b</div>\n" % (number, kind.encode(), line))
    return out
