"""Bytes of source made safe for a page: nothing in them is markup, nothing hides."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from html import escape as escape_quotes

from markupsafe import Markup, escape

from readerkit.render.terminal_safe import is_seen

_CODE = re.compile(r"`([^`]+)`")
_PLAIN = re.compile(rb"[\t\n\x20-\x7e]*")
# A form feed at the start of a line is a page break of old editors: shown like others.
_UNSEEN = re.compile(r"[^\t\n\x20-\x7e]")
_BARE = re.compile(r"[^\s\"'=<>`&]+")
# Bytes that plain text does not hold stand for what has to be escaped: pieces keep
# their places, and one pass over the whole makes it safe.
_KEPT = bytes.maketrans(b"&<>", b"\x0e\x0f\x10")

Escape = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Escaping:
    """How the text of one file becomes safe: cut ``data`` up, then ``finish``."""

    data: bytes
    """As long as what was given."""
    piece: Escape | None
    """What each piece must go through; None where ``finish`` does it all."""
    finish: Escape


def escaping(data: bytes) -> Escaping:
    """Return how to make pieces of ``data`` safe: all at once, if it can be."""
    if _PLAIN.fullmatch(data):
        return Escaping(data.translate(_KEPT), None, _finish_plain)
    return Escaping(data, _escape_any, bytes)


def _finish_plain(text: bytes) -> bytes:
    amp = text.replace(b"\x0e", b"&amp;")
    return amp.replace(b"\x0f", b"&lt;").replace(b"\x10", b"&gt;")


def _escape_any(piece: bytes) -> bytes:
    text = piece.replace(b"\r\n", b"\n").decode("utf-8", "replace")
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _UNSEEN.sub(_spelt_out, text).encode()


def _spelt_out(match: re.Match[str]) -> str:
    letter = match[0]
    if is_seen(letter):
        return letter
    # Without quotes: in an attribute it is odd to read, and does not end it.
    return f"<span class=hid>U+{ord(letter):04X}</span>"


def attribute(value: str) -> str:
    """Return the value of an attribute as it stands in a tag, in quotes where it must.

    >>> attribute("a.html#b"), attribute("a=b")
    ('a.html#b', '"a=b"')
    """
    return value if _BARE.fullmatch(value) else f'"{escape_quotes(value)}"'


@lru_cache(1 << 14)
def shown(text: str) -> Markup:
    """Return text as markup, what cannot be seen in it spelt out.

    >>> shown("a\\u202e<b>")
    Markup('a<span class=hid>U+202E</span>&lt;b&gt;')
    """
    return Markup(_UNSEEN.sub(_spelt_out, str(escape(text))))


def worded(text: str) -> Markup:
    """Return a text of the quiz as markup: what stands in backquotes is code.

    >>> worded("`a<b` is less")
    Markup('<code>a&lt;b</code> is less')
    """
    pieces = _CODE.split(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(shown(piece)) if index % 2 else shown(piece)
        for index, piece in enumerate(pieces)
    )


def shown_as_code(text: str) -> Markup:
    """Return text for between two tags, where a quote may be itself."""
    return Markup(str(shown(text)).replace("&#34;", '"').replace("&#39;", "'"))
