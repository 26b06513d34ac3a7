"""Bytes of source made safe for a page: nothing in them is markup, nothing hides."""

from __future__ import annotations

import re
from collections.abc import Callable

from markupsafe import Markup, escape

from readerkit.render.visible import is_seen

_PLAIN = re.compile(rb"[\t\n\r\x20-\x7e]*")
# A form feed at the start of a line is a page break of old editors: shown like others.
_UNSEEN = re.compile(r"[^\t\n\x20-\x7e]")

Escape = Callable[[bytes], bytes]


def escaping(data: bytes) -> Escape:
    """Return the function that makes pieces of ``data`` safe: a quick one if it can."""
    return _escape_ascii if _PLAIN.fullmatch(data) else _escape_any


def _escape_ascii(piece: bytes) -> bytes:
    return (
        piece.replace(b"&", b"&amp;")
        .replace(b"<", b"&lt;")
        .replace(b">", b"&gt;")
        .replace(b"\r\n", b"\n")
        .replace(b"\r", b'<span class="hid">U+000D</span>')
    )


def _escape_any(piece: bytes) -> bytes:
    text = piece.replace(b"\r\n", b"\n").decode("utf-8", "replace")
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _UNSEEN.sub(_spelt_out, text).encode()


def _spelt_out(match: re.Match[str]) -> str:
    letter = match[0]
    if is_seen(letter):
        return letter
    return f'<span class="hid">U+{ord(letter):04X}</span>'


def shown(text: str) -> Markup:
    """Return text as markup, what cannot be seen in it spelt out.

    >>> shown("a\\u202e<b>")
    Markup('a<span class="hid">U+202E</span>&lt;b&gt;')
    """
    return Markup(_UNSEEN.sub(_spelt_out, str(escape(text))))
