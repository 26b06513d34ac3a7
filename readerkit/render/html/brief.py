"""What stands in a page's description: a text without its markup, cut to fit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

from markupsafe import Markup, escape

from readerkit.render.html.words import Text
from readerkit.render.terminal_safe import visible

LENGTH = 155
"""Letters that lists of pages show of a description."""
_UNSAID = re.compile(r'<a class="proved".*?</a>|<annotation.*?</annotation>')


class TextPiece(Protocol):
    """A piece of a page, perhaps of prose."""

    @property
    def text(self) -> Text | None:
        """Its prose."""


def brief(text: Text | Markup | str) -> str:
    """Return the beginning of a text in English, without markup.

    >>> brief(Markup("<p>One <em>rank</em>.</p>"))
    'One rank.'
    """
    whole = text.en if isinstance(text, Text) else text
    plain = Markup(_UNSAID.sub("", escape(whole))).striptags()
    plain = " ".join(visible(plain).split())
    if len(plain) <= LENGTH:
        return plain
    return plain[:LENGTH].rpartition(" ")[0].rstrip(",;:") + " …"


def opening(pieces: Iterable[TextPiece]) -> str:
    """Return the beginning of the first paragraph of a text."""
    prose = next((piece.text for piece in pieces if piece.text), None)
    if prose is None:
        return ""
    return brief(Markup(prose.en.partition("</p>")[0]))
