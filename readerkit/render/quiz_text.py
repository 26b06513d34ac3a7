"""What a question shows to other programs, in the order in which it is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from readerkit.quiz.portable import PortableQuestion
from readerkit.quiz.prompts import (
    CitedLines,
    LocatePrompt,
    PredictPrompt,
    QuotedWork,
    SketchPrompt,
    drawn_strip,
)

_CODE = re.compile(r"`([^`]+)`")
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""What no XML may hold."""


def pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a text, each with whether it is code.

    >>> [*pieces("`a<b` is less")]
    [('a<b', True), (' is less', False)]
    """
    for index, piece in enumerate(_CODE.split(_UNSEEN.sub("\ufffd", text))):
        if piece:
            yield piece, index % 2 == 1


def marked(text: str) -> str:
    """Return a text as HTML.

    >>> marked("`a<b` is less")
    '<code>a&lt;b</code> is less'
    """
    return "".join(
        f"<code>{escape(piece)}</code>" if is_code else escape(piece)
        for piece, is_code in pieces(text)
    )


def bare(text: str) -> str:
    """Return a text without its marks of code: where nothing shows them."""
    return "".join(piece for piece, _ in pieces(text))


def notes(question: PortableQuestion) -> list[str]:
    """Return what stands below a question: its grid, its words, how to answer."""
    asked = question.prompt
    found = []
    if isinstance(asked, LocatePrompt):
        found.append(f"{asked.search.path}:{asked.search.first}-{asked.search.last}")
    if isinstance(asked, SketchPrompt):
        found.append(f"{question.rows}: {'; '.join(asked.rows)}")
        found.append(f"{question.columns}: {'; '.join(asked.columns)}")
    if isinstance(asked, PredictPrompt) and asked.strip:
        found.append(drawn_strip(asked.strip))
    words = asked.words if isinstance(asked, SketchPrompt | PredictPrompt) else ()
    if words:
        found.append(f"{question.words}: {', '.join(words)}")
    return found


def sources(question: PortableQuestion) -> Iterator[CitedLines | QuotedWork]:
    """Yield where to read on: lines, then works."""
    yield from question.told.links
    yield from question.told.references


def named(source: CitedLines | QuotedWork) -> str:
    """Return what a source is called."""
    if isinstance(source, CitedLines):
        return f"{source.title}: {source.text}" if source.title else source.text
    section = f", {source.section}" if source.section else ""
    return f"{source.authors} {source.year}, {source.title}{section}"
