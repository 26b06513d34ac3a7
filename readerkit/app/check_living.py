"""Notes on code that lives on: which of them stand on lines that are not as they were.

A pin moves when somebody moves it; a work tree changes every day. So here lines that
only moved are followed without a word, and what is told is code that was edited under
a note: which note, what it says, which lines, and who read it against them last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from readerkit.anchors import fingerprint
from readerkit.content.annotations import TEXT_FIELDS, Annotation
from readerkit.content.resolved_notes import Note, Sources
from readerkit.errors import ContentFault
from readerkit.model.anchor import Span
from readerkit.upstreams import Lock, LockedAnchor
from readerkit.wording.next_command import typed

MAX_SAID = 160
"""Characters of what a note says that are repeated: enough to know it again."""
MAX_LINES = 5
"""Changed lines that are shown."""


@dataclass(frozen=True, slots=True)
class EditedCode:
    """A note whose code is not what it was locked or reviewed against."""

    note: Annotation
    span: Span
    symbol: str
    was: LockedAnchor
    lines: tuple[int, ...]
    """The lines that are new or changed; the one behind what is gone."""
    code: tuple[str, ...]
    """The text of the first of them."""
    is_other: bool = False
    """Whether its code is the same, and it may stand in another place all the same."""

    @property
    def since(self) -> str:
        """Since when, and who read it then."""
        if not self.was.reviewed:
            return "since it was locked; nobody has reviewed it"
        return f"since {_reviewed(self.was)}"

    @property
    def says(self) -> str:
        """The sentences that stand on it, as far as they go into a message."""
        texts = (getattr(self.note, name) for name in TEXT_FIELDS)
        said = " ".join(" ".join(text.split()) for text in texts if text)
        return said if len(said) <= MAX_SAID else f"{said[: MAX_SAID - 1]}…"

    @property
    def message(self) -> str:
        """All of it: a line, then the code that changed, and what the note says."""
        of = f" of {self.symbol}" if self.symbol else ""
        changed = f"changed {self.since}: {self.span}{of}"
        what = f"under it {changed}, {self._where}"
        if self.is_other:
            equals = "is one of several equal places, and may be another than that"
            what = f"around it {changed} {equals}"
        head = f"{self.note.id}: the code {what}"
        shown = [
            f"{number}: {text.strip()[:MAX_SAID]}"
            for number, text in zip(self.lines, self.code, strict=False)
        ]
        rows = [*shown, f"it says: {self.note.title}: {self.says}"]
        return "\n    ".join([head, *rows])

    @property
    def _where(self) -> str:
        where = ", ".join(map(str, self.lines[:MAX_LINES]))
        more = len(self.lines) - MAX_LINES
        where += f" and {more} more" if more > 0 else ""
        return f"{'line' if len(self.lines) == 1 else 'lines'} {where}"

    @property
    def fault(self) -> ContentFault:
        """The message, at the note."""
        return self.note.place.fault(self.message)

    def to_plain(self) -> dict[str, Any]:
        """Return it for a program."""
        return {
            "id": self.note.id,
            "title": self.note.title,
            "says": self.says,
            "path": self.span.path,
            "first": self.span.first,
            "last": self.span.last,
            "lines": list(self.lines),
            "symbol": self.symbol,
            "may_be_another": self.is_other,
            "reviewed_by": self.was.by or None,
            "reviewed_on": self.was.on or None,
            "reviewed_at": self.was.at or None,
            "file": self.note.place.file,
            "line": self.note.place.line,
        }


def edited_code(
    lock: Lock, notes: Iterable[Note], sources: Sources
) -> Iterator[EditedCode]:
    """Yield the notes whose code was edited."""
    for note in notes:
        was = lock.anchors.get(note.annotation.id)
        if note.state != "changed" or was is None:
            continue
        source = sources.file(note.span.path)
        now = fingerprint(note.span, source)
        lines = tuple(_changed(was.fingerprint.lines, now.lines, note.span))
        code = tuple(source.line(number) for number in lines[:MAX_LINES])
        is_other = now.code == (was.reviewed or was.fingerprint.code)
        yield EditedCode(
            note.annotation, note.span, note.symbol, was, lines, code, is_other
        )


def told_reader(
    faults: Iterable[ContentFault], lock: Lock, anchored: Mapping[str, Annotation]
) -> tuple[list[ContentFault], int]:
    """Return faults of anchors, each with who read the note last, and where.

    And how many are of notes that were read once, so that their code was there.
    """
    by_place = {
        (note.place.file, note.place.line): lock.anchors[name]
        for name, note in anchored.items()
        if name in lock.anchors and lock.anchors[name].reviewed
    }
    told, lost = [], 0
    for fault in faults:
        was = by_place.get((fault.file, fault.line))
        more = f"\n    {_reviewed(was)}: {was.span}" if was else ""
        told.append(fault._replace(what=fault.what + more))
        lost += was is not None
    return told, lost


def _reviewed(was: LockedAnchor) -> str:
    """Return who reviewed a note, on which day, at which commit."""
    when = f" on {was.on}" if was.on else ""
    at = f", at commit {was.at[:12]}" if was.at else ""
    return f"{was.by or 'somebody'} reviewed it{when}{at}"


def not_locked(lock: Lock, notes: Iterable[Note]) -> dict[str, str]:
    """Return a line for each note that the lock does not hold, by id."""
    mend = typed("annotate", "--update-lock")
    return {
        name: f"{name}: not in the lock yet: {mend}"
        for name in (note.annotation.id for note in notes)
        if name not in lock.anchors
    }


def _changed(was: tuple[str, ...], now: tuple[str, ...], span: Span) -> Iterator[int]:
    """Yield the lines of a span that are not as they were, by the hashes of each."""
    matcher = SequenceMatcher(None, was, now, autojunk=False)
    for kind, _, _, first, last in matcher.get_opcodes():
        if kind in ("replace", "insert"):
            yield from range(span.first + first, span.first + last)
        elif kind == "delete":
            yield min(span.first + first, span.last)
