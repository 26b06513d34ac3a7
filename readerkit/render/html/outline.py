"""What a file defines, to find one's way in it, and what each definition looks like."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import unescape

from readerkit.anchors.xref.links import File, Target
from readerkit.anchors.xref.names import Extent
from readerkit.content.resolved_notes import Note
from readerkit.model import addresses
from readerkit.render.html.excerpt import line_text
from readerkit.render.html.file_page import view
from readerkit.render.html.site_model import SiteModel

MAX_HEAD = 8
"""Lines of a signature that are shown."""


@dataclass(frozen=True, slots=True)
class Outlined:
    """A class or a function of a file's outline."""

    first: int
    last: int
    depth: int
    name: str
    whole: str
    notes: int
    """That are on it, and on nothing within it."""


def outline(model: SiteModel, file: File) -> tuple[Outlined, ...]:
    """Return what a file defines, in order."""
    extents = model.sheets[file].names.outline
    notes = Counter(_innermost(extents, note) for note in model.notes_in(file))
    return tuple(
        Outlined(
            each.first,
            each.last,
            each.name.count("."),
            each.name.rpartition(".")[2],
            each.name,
            notes[each],
        )
        for each in extents
    )


def _innermost(extents: Iterable[Extent], note: Note) -> Extent | None:
    span = note.span
    over = [e for e in extents if e.first <= span.last and span.first <= e.last]
    whole = [e for e in over if e.first <= span.first and span.last <= e.last]
    return max(whole or over, key=lambda each: each.first, default=None)


def peek_script(model: SiteModel, file: File) -> bytes:
    """Return what the definitions of a file look like, for those who point at a name.

    A script, because a page that is opened as a file may not fetch.
    """
    page = addresses.href(addresses.source_page(*file))
    shown = {str(line): text for line, text in _looks(model, file)}
    packed = json.dumps([page, shown], separators=(",", ":"))
    return f"readerkitPeek({packed[1:-1]});\n".encode()


def _looks(model: SiteModel, file: File) -> Iterator[tuple[int, list[str]]]:
    """Yield the line of each definition that is used, with what it looks like.

    Its signature, then the title of a note on it, in both languages.
    """
    names = model.sheets[file].names
    heads = {each.first: each.head for each in names.outline}
    notes = sorted(model.notes_in(file), key=lambda n: n.span.last - n.span.first)
    for name, lines in names.defined.items():
        for line in lines:
            if Target(*file, line, name) not in model.uses:
                continue
            last = min(heads.get(line, line), line + MAX_HEAD - 1)
            rows = [line_text(model, file, n) for n in range(line, last + 1)]
            note = next((n for n in notes if n.span.first <= line <= n.span.last), None)
            yield line, [unescape("\n".join(rows)), *_titles(model, note)]


def _titles(model: SiteModel, note: Note | None) -> Iterator[str]:
    if note:
        title = view(model, note.annotation.id).title
        for text in (title.en, title.es):
            if text:
                yield text.striptags()
