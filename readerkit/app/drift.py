"""``drift UPSTREAM``: where every anchor and claim stands in another revision."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from readerkit.anchors.drift.text import FileText
from readerkit.anchors.drift.verdict import SURE, Carried
from readerkit.anchors.grammars import grammar, language_at
from readerkit.anchors.propose import propose
from readerkit.app.drift_other_anchors import MovedAnchor, drifted_anchors
from readerkit.app.drift_renames import Moves, Renames
from readerkit.app.drift_sentences import DriftedClaims, drifted_claims
from readerkit.app.drift_target import (
    OtherRevision,
    is_same_code,
    locked_in,
    old_tree,
)
from readerkit.app.library import Library
from readerkit.content.annotations import Annotation
from readerkit.content.resolved_notes import Sources
from readerkit.content.vocabulary import DRIFT_STATUSES, DriftStatus
from readerkit.errors import AnchorError
from readerkit.model.anchor import Anchor, Span
from readerkit.model.git_names import TreePath
from readerkit.upstreams import LockedAnchor, Upstream


@dataclass(frozen=True, slots=True)
class DriftedNote:
    """A note, and where its lines stand in the other revision."""

    note: Annotation
    status: DriftStatus
    was: Span
    to: Span | None
    confidence: float
    reason: str
    anchor: Anchor | None = None
    """What names the lines there, where the anchor as it is does not."""
    parts: tuple[Span, ...] = ()
    renamed: bool = False
    """Whether nothing of the code is another but names."""
    texts: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """The lines before and after, of what was edited."""

    @property
    def is_sure(self) -> bool:
        """Whether nobody need look where it went."""
        return self.status in ("same", "moved", "edited")

    @property
    def to_do(self) -> str:
        """What a person does about it; nothing, where nothing is to be done."""
        rewrite = f"its anchor becomes {said(self.anchor)}" if self.anchor else ""
        what = {
            "same": "",
            "moved": rewrite,
            "edited": f"read it against the code as it is{rewrite and '; '}{rewrite}",
            "split": "choose the part that the note is about, and anchor that",
            "gone": "anchor it to what took its place, or take the note out",
            "unsure": "look where it went, and anchor that",
        }
        return what[self.status]

    def to_plain(self) -> dict[str, Any]:
        """Return it for a program."""
        return {
            "id": self.note.id,
            "title": self.note.title,
            "status": self.status,
            "was": _plain(self.was),
            "to": _plain(self.to),
            "parts": [_plain(part) for part in self.parts],
            "confidence": round(self.confidence, 4),
            "reason": self.reason,
            "anchor": self.anchor.to_yaml() if self.anchor else None,
            "before": list(self.texts[0]),
            "after": list(self.texts[1]),
            "to_do": self.to_do,
        }


@dataclass(frozen=True, slots=True)
class Drift:
    """All of an upstream in another revision."""

    upstream: Upstream
    target: OtherRevision
    notes: list[DriftedNote]
    claims: DriftedClaims
    anchors: list[MovedAnchor]
    """What questions, diagrams and faults name, and names it there no more."""

    @property
    def counts(self) -> dict[str, int]:
        """How many notes there are of each status."""
        found = Counter(each.status for each in self.notes)
        return {status: found[status] for status in DRIFT_STATUSES if found[status]}

    def to_plain(self) -> dict[str, Any]:
        """Return it for a program, and for the page of the site."""
        return {
            "upstream": self.upstream.name,
            "from": self.upstream.pin,
            "to": self.target.release or self.target.tag or self.target.commit,
            "origin": self.target.origin,
            "counts": self.counts,
            "held": self.claims.held,
            "notes": [each.to_plain() for each in self.notes],
            "sentences": [each.to_plain() for each in self.claims.wrong],
            "moved_claims": [each.to_plain() for each in self.claims.moved],
            "anchors": [each.to_plain() for each in self.anchors],
        }


def find_drift(library: Library, upstream: Upstream, target: OtherRevision) -> Drift:
    """Return where the notes and claims of an upstream stand in another revision.

    Raises:
        ReaderkitError: no lock, no grammar, or code that is nowhere any more.
    """
    lock = library.lock(upstream)
    before = old_tree(library, upstream, lock)
    after = new_sources(upstream, target)
    notes = [
        (note, lock.anchors[note.id])
        for note in library.book.anchored_in(upstream.name)
        if note.id in lock.anchors
    ]
    for path in {locked.span.path for _, locked in notes}:
        grammar(language_at(path))  # without it, every note of the language is lost
    was = Sources(upstream, map(TreePath, before), lambda path: before[path])
    moves = Moves(was, after)
    starts = [locked_in(was, note.anchor, locked) for note, locked in notes]
    carried = iter(moves.look([start.span for start in starts if start]))
    found = [
        _with_texts(_judge(note, start, next(carried), moves), before, after)
        if start
        else _without_start(note, locked, after)
        for (note, locked), start in zip(notes, starts, strict=True)
    ]
    claims = drifted_claims(library, upstream, moves, lock)
    return Drift(upstream, target, found, claims, drifted_anchors(library, moves))


def new_sources(upstream: Upstream, target: OtherRevision) -> Sources:
    """Return the files of a revision as those of the upstream that is pinned there."""
    there = upstream
    if not target.is_now and not upstream.is_living:
        there = replace(upstream, commit=target.commit, tag=target.tag)
    return Sources(there, target.files, target.files.__getitem__)


# --- anchors --------------------------------------------------------------------------


def _without_start(
    note: Annotation, locked: LockedAnchor, after: Sources
) -> DriftedNote:
    """Return where a note stands whose locked code is nowhere, by its anchor alone."""
    reason = "no commit has the code that it was locked against"
    try:
        at = after.resolve(note.anchor)
    except AnchorError as error:
        reason = f"{error.reason}; {reason}"
        return DriftedNote(note, "unsure", locked.span, None, 0.0, reason)
    if note.anchor.counts or not is_same_code(at, locked, after):
        return DriftedNote(note, "unsure", locked.span, at, 0.0, reason)
    status: DriftStatus = "same" if at == locked.span else "moved"
    return DriftedNote(note, status, locked.span, at, SURE, "its code is the same")


def _judge(
    note: Annotation, locked: LockedAnchor, carried: Carried, moves: Moves
) -> DriftedNote:
    """Return where a note stands, told by its anchor and by its lines."""
    after = moves.after
    try:
        at = after.resolve(note.anchor)
    except AnchorError as error:
        return _reanchored(note, locked, carried, moves, error.reason)
    chance = carried.confidence
    if note.anchor.counts and carried.to != at:
        return _uncounted(note, locked, carried, moves, at)
    if is_same_code(at, locked, after):
        status: DriftStatus = "same" if at == locked.span else "moved"
        sure = chance if carried.to == at else SURE
        return DriftedNote(
            note, status, locked.span, at, max(sure, SURE), "its code is the same"
        )
    found = carried.to
    is_whole = note.anchor.to_yaml().keys() <= {"file", "symbol"}
    here = found is not None and found.path == at.path and _overlap(found, at)
    names = moves.renames(locked.span, at)
    if moves.is_renamed_only(locked.span, at, names):
        return _renamed(_row(note, "moved", locked, at, carried), names)
    if carried.parts and here:
        return _row(note, "split", locked, at, carried)
    if here or (is_whole and carried.status in ("unsure", "gone")):
        reason = f"its anchor names it still; {carried.reason}"
        return DriftedNote(note, "edited", locked.span, at, max(chance, SURE), reason)
    where = f"the lines went to {found}" if found else "the lines are gone"
    reason = f"its anchor names {at}, and {where}: {carried.reason}"
    return DriftedNote(note, "unsure", locked.span, at, 1 - chance, reason)


def _uncounted(
    note: Annotation, locked: LockedAnchor, carried: Carried, moves: Moves, at: Span
) -> DriftedNote:
    """Return where a note stands whose anchor picks one of equals, maybe another."""
    problem = f"its anchor picks {at} now"
    if moves.place(locked.span) is not None:
        return _reanchored(note, locked, carried, moves, problem)
    reason = f"{problem}, one of equal places; {carried.reason}"
    found = dataclasses.replace(carried, reason=reason)
    return _row(note, "unsure", locked, at, found)


def _reanchored(
    note: Annotation,
    locked: LockedAnchor,
    carried: Carried,
    moves: Moves,
    problem: str,
) -> DriftedNote:
    """Return where a note stands whose anchor resolves no more."""
    if carried.parts:
        return _row(note, "split", locked, carried.to, carried)
    after = moves.after
    anchor = moves.anchor(note.anchor)
    is_sure = anchor is not None or carried.status != "unsure"
    chance = max(carried.confidence, SURE) if is_sure else carried.confidence
    if anchor is None and carried.to is None:
        status: DriftStatus = "gone" if carried.status == "gone" else "unsure"
        reason = f"{problem}; {carried.reason}"
        found = dataclasses.replace(carried, reason=reason)
        return _row(note, status, locked, None, found)
    try:
        if anchor is None and carried.to is not None:
            anchor = propose(carried.to, after.file(carried.to.path))
        assert anchor is not None  # one of the two was found
        to = after.resolve(anchor)
    except AnchorError as error:
        why = f"; no anchor names these lines: {error.reason}"
        reason = problem if error.reason == problem else f"{problem}{why}"
        found = dataclasses.replace(carried, reason=reason)
        return _row(note, "unsure", locked, carried.to, found)
    found = dataclasses.replace(carried, confidence=chance)
    row = _row(note, "unsure", locked, to, found)
    names = moves.renames(locked.span, to)
    if is_same_code(to, locked, after):
        was, now = note.anchor.symbol, anchor.symbol
        row = dataclasses.replace(row, status="moved")
        row = _renamed(row, {was: now}) if was and now and was != now else row
    elif moves.is_renamed_only(locked.span, to, names):
        row = _renamed(row, names)
    elif is_sure:
        row = dataclasses.replace(row, status="edited")
    return dataclasses.replace(row, anchor=anchor, reason=f"{problem}; {row.reason}")


def _renamed(row: DriftedNote, names: Renames) -> DriftedNote:
    """Return a note whose code has other names, and is the same else.

    Words that speak of a name by the one that it had are to be read again.
    """
    told = ", ".join(f"{old} is {new} now" for old, new in names.items())
    spoken = [old for old in names if _speaks_of(old, row.note)]
    status: DriftStatus = "edited" if spoken else "moved"
    reason = f"{told}, and the note says {spoken[0]}" if spoken else told
    return dataclasses.replace(
        row, status=status, reason=reason, renamed=not spoken, confidence=SURE
    )


def _speaks_of(name: str, note: Annotation) -> bool:
    """Tell whether a note says a name: as code, or as no word is spelled."""
    word = rf"(?<!\w){re.escape(name)}(?!\w)"
    is_code = "_" in name or not name.islower()
    spelled = word if is_code else rf"`[^`\n]*{word}[^`\n]*`"
    return any(re.search(spelled, text) for text in note.texts.values())


def _row(
    note: Annotation,
    status: DriftStatus,
    locked: LockedAnchor,
    to: Span | None,
    carried: Carried,
) -> DriftedNote:
    return DriftedNote(
        note, status, locked.span, to, carried.confidence, carried.reason,
        parts=carried.parts,
    )  # fmt: skip


def _overlap(one: Span, other: Span) -> bool:
    return one.first <= other.last and other.first <= one.last


def _with_texts(
    row: DriftedNote, before: Mapping[str, bytes], after: Sources
) -> DriftedNote:
    """Return a row with the lines of what was edited, before and after."""
    if row.status in ("same", "moved") or row.was.path not in before:
        return row
    old = _lines(before[row.was.path], row.was)
    new = _lines(after.read(row.to.path), row.to) if row.to else ()
    return dataclasses.replace(row, texts=(old, new))


def _lines(data: bytes, span: Span) -> tuple[str, ...]:
    lines = FileText(data).lines[span.first - 1 : span.last]
    return tuple(line.decode("utf-8", "replace").rstrip() for line in lines)


def _plain(span: Span | None) -> dict[str, Any] | None:
    if span is None:
        return None
    return {"path": span.path, "first": span.first, "last": span.last}


def said(anchor: Anchor | None) -> str:
    """Return an anchor in words of a line."""
    rows = anchor.to_yaml() if anchor else {}
    return ", ".join(f"{key}: {value}" for key, value in rows.items())
