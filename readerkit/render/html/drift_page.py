"""The page of an upstream that drifted, and its feed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import escape

from readerkit.content.kept_drift import (
    KeptDrift,
    KeptDriftNote,
    KeptDriftSentence,
    KeptPlace,
)
from readerkit.content.vocabulary import DriftStatus
from readerkit.model import addresses
from readerkit.render.html.file_page import rights, view
from readerkit.render.html.notes import NoteView
from readerkit.render.html.site_model import Context, SiteModel


@dataclass(frozen=True, slots=True)
class ShownDrift:
    """A note that drifted, where it stands in the book, and where its code went."""

    row: KeptDriftNote
    note: NoteView | None
    """None for other lines of a note, or one that is no longer in the book."""
    addresses: tuple[tuple[str, str], ...]
    """What each new place is called, and its address at the upstream's host, if any."""
    chance: str


@dataclass(frozen=True, slots=True)
class DriftGroup:
    """The notes of one status."""

    title: str
    rows: tuple[ShownDrift, ...]


TITLES: dict[DriftStatus, str] = {
    "edited": "Edited",
    "split": "Split",
    "gone": "Gone",
    "unsure": "Unsure",
    "moved": "Moved",
}
"""In the order in which a reader wants them: what to look at, then the rest."""


def drift_page(model: SiteModel, kept: KeptDrift) -> Context:
    """Return the page of an upstream that drifted."""
    upstream = model.book.upstreams[kept.upstream]
    return {
        "title": f"{upstream.title}: {kept.was} → {kept.to}",
        "kept": kept,
        "same": sum(row.status == "same" for row in kept.notes),
        "false": [_said(model, s) for s in kept.sentences if s.is_false],
        "lost": [_said(model, s) for s in kept.sentences if not s.is_false],
        "groups": [*_groups(model, kept)],
        "feed": addresses.drift_feed(kept.upstream),
        "rights": rights(model, upstream),
    }


def _said(
    model: SiteModel, sentence: KeptDriftSentence
) -> tuple[KeptDriftSentence, NoteView | None]:
    return sentence, _view(model, sentence.id)


def _view(model: SiteModel, name: str) -> NoteView | None:
    name = name.partition("+")[0]  # other lines go by the note that shows them
    return view(model, name) if name in model.notes else None


def _groups(model: SiteModel, kept: KeptDrift) -> Iterator[DriftGroup]:
    for status, title in TITLES.items():
        rows = tuple(
            _shown(model, kept, row) for row in kept.notes if row.status == status
        )
        if rows:
            yield DriftGroup(title, rows)


def _shown(model: SiteModel, kept: KeptDrift, row: KeptDriftNote) -> ShownDrift:
    places = [row.to, *row.parts] if row.to else [*row.parts]
    named = tuple((str(p), _address(model, kept, p)) for p in places)
    return ShownDrift(row, _view(model, row.id), named, f"{row.confidence:.0%}")


def _address(model: SiteModel, kept: KeptDrift, place: KeptPlace) -> str:
    url = model.book.upstreams[kept.upstream].url
    if not url.startswith("https://") or not kept.commit:
        return ""
    return f"{url}/blob/{kept.commit}/{place.path}#L{place.first}-L{place.last}"


def drift_feed(model: SiteModel, kept: KeptDrift) -> bytes:
    """Return the feed of an upstream: Atom, an entry for each note and sentence.

    It has no address of its own before somebody serves it, so its links are relative.
    """
    title = f"{model.book.upstreams[kept.upstream].title}: {kept.was} → {kept.to}"
    page = addresses.drift_page(kept.upstream).rpartition("/")[2]
    when = f"{kept.on}T00:00:00Z"
    begin = f"tag:readerkit,{kept.on}:drift/{kept.upstream}"
    rows = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<title>{escape(title)}</title><id>{begin}</id><updated>{when}</updated>",
        f'<link href="{page}"/><author><name>readerkit</name></author>',
    ]
    for name, label, text in _entries(kept):
        rows.append(
            f"<entry><title>{escape(label)}</title><id>{begin}/{name}</id>"
            f'<updated>{when}</updated><link href="{page}"/>'
            f"<summary>{escape(text)}</summary></entry>"
        )
    return "\n".join([*rows, "</feed>", ""]).encode()


def _entries(kept: KeptDrift) -> Iterator[tuple[str, str, str]]:
    for number, each in enumerate(kept.sentences, 1):
        what = "no longer true" if each.is_false else "cannot be held"
        yield f"sentence-{number}", f"{each.id}: {what}", each.says
    for row in kept.notes:
        if row.status != "same":
            where = f"{row.was} → {row.to}" if row.to else str(row.was)
            said = f"{where}. {row.to_do}" if row.to_do else where
            yield f"note-{row.id}", f"{row.id}: {row.status}", said
