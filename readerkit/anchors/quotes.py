"""From a quote, or from lines that somebody named, to the narrowest anchor there."""

from __future__ import annotations

from readerkit.anchors.propose import _whole_statements, propose
from readerkit.anchors.source import SourceFile
from readerkit.errors import AnchorError
from readerkit.model.anchor import Anchor, Span

MAX_FITS = 10_000


def propose_around(span: Span, source: SourceFile) -> Anchor:
    """Return the narrowest anchor on lines; of a statement cut in two, on all of it.

    Raises:
        AnchorError: lines outside the file, without code, or that nothing short names.
    """
    try:
        return propose(span, source)
    except AnchorError:
        count = len(source.raw_lines)
        if not 1 <= span.first <= span.last <= count:
            raise
        whole = _whole_statements(span, source)
        if whole == span:
            raise
        return propose(whole, source)


def find_quote(
    text: str,
    exact: str,
    prefix: str = "",
    suffix: str = "",
    position: int | None = None,
) -> tuple[int, int]:
    """Return from which character of a text to which a quote stands, and only there.

    Of several, that which stands between what is around the quote; of these, that at
    the position which was given. Never one that is merely near.

    Raises:
        AnchorError: the quote stands nowhere, or in several places.
    """
    found = [*_starts(text, exact)] if exact.strip() else []
    if not found:
        reason = (
            "it quotes nothing" if not exact.strip() else "its quote stands nowhere"
        )
        raise AnchorError(reason)
    around = [
        at
        for at in found
        if text.endswith(prefix, 0, at) and text.startswith(suffix, at + len(exact))
    ]
    fits = around or found
    if len(fits) > 1 and position in fits:
        fits = [position]
    if len(fits) > 1:
        raise AnchorError(f"its quote stands in {len(fits)} places")
    return fits[0], fits[0] + len(exact)


def _starts(text: str, exact: str) -> list[int]:
    found: list[int] = []
    at = text.find(exact)
    while at >= 0 and len(found) < MAX_FITS:
        found.append(at)
        at = text.find(exact, at + 1)
    return found
