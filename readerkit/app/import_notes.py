"""Takes notes from other programs' files: places each, holds all to the book, writes.

What points outside the book's upstreams ends it before anything is written; what has
no place of its own in them is listed. Nobody has read an imported note against its
lines: it is locked, not reviewed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from readerkit.app.folders import is_own
from readerkit.app.library import Library, open_library
from readerkit.app.lock_update import save_lock
from readerkit.app.new_note import text_before
from readerkit.content.annotations import TEXT_FIELDS, Annotation
from readerkit.content.resolved_notes import lock_notes, resolve_notes
from readerkit.errors import AnchorError, WrongUseError
from readerkit.model.anchor import Anchor, Span
from readerkit.upstreams import Upstream
from readerkit.upstreams.store import write_atomically

MAX_TITLE = 80
MAX_ID = 60
MAX_NOTES = 5_000
"""Of one file; more is no book that anyone reads."""


@dataclass(frozen=True, slots=True)
class OfferedNote:
    """A note that a file asks for, and the lines that it means."""

    name: str
    """What reports call it."""
    upstream: Upstream
    span: Span
    fields: Mapping[str, str]
    """Title and texts, as far as the file gives them."""
    note_id: str = ""
    concepts: tuple[str, ...] = ()
    cited: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class TakenNotes:
    """What became of a file: entries with their anchors, and what could not be placed.

    Taken in the order of the file.
    """

    entries: list[tuple[OfferedNote, dict[str, Any]]] = field(default_factory=list)
    known: list[tuple[str, str]] = field(default_factory=list)
    """What the book has already: its name here, and the id there."""
    unplaced: list[tuple[str, str]] = field(default_factory=list)
    """Names, each with the reason."""
    notes: list[str] = field(default_factory=list)
    """Every note in the order of the file, new or known, by id."""


def outside(name: str, got: str, library: Library) -> WrongUseError:
    """Return the refusal of a file that points outside the book's upstreams."""
    names = ", ".join(library.book.upstreams)
    return WrongUseError(
        f"{name}: points outside this book: got '{got}', expected a file of {names}; "
        "nothing was written"
    )


def place(
    asked: OfferedNote, library: Library, wanted: TakenNotes, concepts: Sequence[str]
) -> None:
    """Give one note its anchor, or say why it has none.

    Raises:
        ReaderkitError: a note without a concept.
    """
    from readerkit.anchors.quotes import propose_around

    if _is_known(asked, asked.span, library, wanted):
        return  # before a pattern is sought: there may be no short one for its lines
    sources = library.sources(asked.upstream)
    try:
        source = sources.file(asked.span.path)
        anchor = propose_around(asked.span, source)
        from readerkit.anchors import resolve

        span = resolve(anchor, source)
    except AnchorError as error:
        said = "; ".join([error.reason, *error.candidates[:1]])
        wanted.unplaced.append((asked.name, said))
        return
    if _is_known(asked, span, library, wanted):
        return
    title = _title(asked, span)
    for other, entry in wanted.entries:
        if (other.upstream, other.span, entry["title"]) == (
            asked.upstream,
            span,
            title,
        ):
            wanted.notes.append(entry["id"])  # another tour stops there too
            return
    taken = {*library.book.annotations, *(entry["id"] for _, entry in wanted.entries)}
    note_id = free_name(asked.note_id or slug(title), taken)
    entry = _entry(note_id, anchor, title, asked, library, concepts)
    wanted.entries.append((replace(asked, span=span), entry))
    wanted.notes.append(note_id)


def _entry(
    note_id: str,
    anchor: Anchor,
    title: str,
    asked: OfferedNote,
    library: Library,
    concepts: Sequence[str],
) -> dict[str, Any]:
    book, given = library.book, asked.fields
    named = [each for each in asked.concepts if each in book.concepts] or [*concepts]
    if not named:
        raise WrongUseError(
            f"{asked.name}: got no concept that this book has, expected one for each "
            "note: add --concept ID"
        )
    cited = [
        {"key": key, **({"section": section} if section else {})}
        for key, section in asked.cited
        if key in book.references
        and (not section or section in book.references[key].sections)
    ]
    texts = {name: given[name] for name in TEXT_FIELDS if given.get(name)}
    kind = given.get("kind", "note")
    is_whole = {"decision", "why", "cost"} <= texts.keys() and cited
    if kind not in ("citation", "note", "pitfall") or (
        kind == "citation" and not is_whole
    ):
        kind = "note"
    if kind != "citation" and "text" not in texts:
        texts = {"text": "\n\n".join(texts.values()) or title}
    entry: dict[str, Any] = {"id": note_id, "at": anchor.to_yaml(), "kind": kind}
    entry |= {"title": title, **texts}
    if cited:
        entry["references"] = cited
    entry["concepts"] = list(dict.fromkeys(named))
    return entry


def _title(asked: OfferedNote, span: Span) -> str:
    title = " ".join(asked.fields.get("title", "").split())
    if not title:
        said = asked.fields.get("text", "").strip().partition("\n")[0]
        title = re.sub(r"^#+\s*|[*_`]", "", said).strip() or str(span)
    if len(title) <= MAX_TITLE:
        return title
    return title[: MAX_TITLE - 1].rsplit(" ", 1)[0] + "…"


def _is_known(
    asked: OfferedNote, span: Span, library: Library, wanted: TakenNotes
) -> bool:
    """Tell whether the book has a note already, and keep that it does."""
    known = _known(library, asked.upstream, span, _title(asked, span))
    if known:
        wanted.known.append((asked.name, known))
        wanted.notes.append(known)
    return bool(known)


def _known(library: Library, upstream: Upstream, span: Span, title: str) -> str:
    """Return the note of the book with these lines and this title; or nothing."""
    lock = library.book.locks.get(upstream.name)
    for note in library.book.notes_on(upstream.name) if lock else ():
        locked = lock.anchors.get(note.id) if lock else None
        if note.title == title and locked and locked.span == span:
            return note.id
    return ""


def slug(title: str) -> str:
    """Return an id made of a title.

    >>> slug("Why N ranks wait, é")
    'why-n-ranks-wait-e'
    """
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    words = re.findall(r"[a-z0-9]+", plain.lower())
    text = ""
    for word in words:
        if len(text) + len(word) + 1 > MAX_ID - 5:  # room for a number
            break
        text = f"{text}-{word}" if text else word
    return text or "imported"


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return a name, or the first with a number that nothing is called yet."""
    known, number, free = set(taken), 2, name
    while free in known:
        free, number = f"{name}-{number}", number + 1
    return free


def write_notes(
    wanted: TakenNotes,
    target: Mapping[str, Path],
    book: Path | None,
    tours: Sequence[tuple[Path, dict[str, Any]]] = (),
) -> list[Path]:
    """Add every entry to its file, ``target`` by upstream; all of them or none.

    Each tour goes to a file of its own, after the notes that it leads through.

    Raises:
        ReaderkitError: the book does not hold with one of them; all is as it was.
    """
    before: dict[Path, bytes | None] = {}
    groups: dict[str, list[dict[str, Any]]] = {}
    for asked, entry in wanted.entries:
        groups.setdefault(asked.upstream.name, []).append(entry)
    try:
        for name, entries in groups.items():
            _write_group(name, entries, target[name], book, before)
        for path, tour in tours:
            data = as_yaml(tour).encode()
            open_library(book, quiet=True, as_if=(path, data))
            before[path] = None
            write_atomically(path, data, private=is_own(path))
    except BaseException:
        put_back(before)
        raise
    return [*(target[name] for name in groups), *(path for path, _ in tours)]


def put_back(before: Mapping[Path, bytes | None]) -> None:
    """Give files the bytes that they had; those that were not there go."""
    for path, data in before.items():
        if data is None:
            path.unlink(missing_ok=True)
        else:
            write_atomically(path, data, private=is_own(path))


def _write_group(
    upstream: str,
    entries: list[dict[str, Any]],
    target: Path,
    book: Path | None,
    before: dict[Path, bytes | None],
) -> None:
    data = (text_before(target) + as_yaml(entries)).encode()
    as_if = (target, data)
    fresh = open_library(book, quiet=True, as_if=as_if)
    new = [fresh.book.annotations[entry["id"]] for entry in entries]
    locks = [
        top / "annotations" / f"{upstream}.lock" for top in (fresh.root, fresh.mine)
    ]
    for path in (target, *locks):
        before.setdefault(path, path.read_bytes() if path.is_file() else None)
    write_atomically(target, data, private=is_own(target))
    _lock_unread(fresh, fresh.book.upstreams[upstream], new)


def _lock_unread(library: Library, upstream: Upstream, new: list[Annotation]) -> None:
    """Write where notes stand; whoever reads them against their code says so."""
    sources = library.sources(upstream)
    found = resolve_notes(library.book, sources, new)
    if upstream.is_locked:
        lock = library.lock(upstream)
        anchors = lock_notes(lock, found, sources).anchors
        merged = lock.with_anchors({**lock.anchors, **anchors})
        save_lock(library, upstream.name, merged)


def as_yaml(value: Any) -> str:
    """Return entries as a person would begin to write them; no line is folded."""
    import yaml

    class _Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    text: str = yaml.dump(
        value, Dumper=_Plain, sort_keys=False, width=1_000_000, allow_unicode=True
    )
    return text
