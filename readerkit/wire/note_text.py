"""A note as Markdown for an editor or an assistant: bounded, its licence named."""

from __future__ import annotations

from readerkit.app.library import Library
from readerkit.content.annotations import Annotation
from readerkit.model.anchor import Span
from readerkit.model.language import english
from readerkit.render.exchange.shared_note import SharedNote
from readerkit.upstreams import Upstream

MAX_CHARACTERS = 6_000


def note_markdown(
    library: Library, note: Annotation, upstream: Upstream, span: Span
) -> str:
    """Return what a note says, where it stands, and whose lines these are."""
    presumed = library.book.conditions_of(note, "en")
    shared = SharedNote(note, span, upstream, None, library.book.references, presumed)
    link = upstream.permalink(span)
    place = f"[{span}]({link})" if link else f"{span}"
    rows = [
        f"**{note.title}**",
        bounded(shared.markdown(english), MAX_CHARACTERS),
        f"*{note.kind}* `{note.id}` · {place} · {', '.join(note.concepts)}",
    ]
    if licence := shared.licence:
        rows.append(f"{upstream.title} {upstream.pin}: {licence}")
    return "\n\n".join(rows)


def bounded(text: str, most: int) -> str:
    """Return a text, cut where it is too long; what was left out is said."""
    if len(text) <= most:
        return text
    return f"{text[:most]}… ({len(text) - most:,} more characters)"
