"""``drift UPSTREAM --apply``: anchors, pin and lock moved in one change.

What is sure is written; what is not stays as it was, and ``annotate --check`` names it
until a person has looked. All files are written, or none is.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from readerkit.anchors import fingerprint
from readerkit.app.drift import Drift, DriftedNote, new_sources
from readerkit.app.drift_claims import MovedClaim
from readerkit.app.drift_other_anchors import anchor_nodes
from readerkit.app.drift_target import commit_of
from readerkit.app.folders import is_own
from readerkit.app.library import Library
from readerkit.app.lock_update import save_lock
from readerkit.app.yaml_edits import Edit, changed, edited, mappings, values
from readerkit.content.kind import Place
from readerkit.content.resolved_notes import Note, lock_notes
from readerkit.errors import ReaderkitError, SourceError
from readerkit.model.anchor import Anchor
from readerkit.model.git_names import NO_COMMIT, CommitId
from readerkit.upstreams import Lock
from readerkit.upstreams.store import blob_id, write_atomically
from readerkit.wording.next_command import typed

Where = tuple[int, int]
"""Line and column of something written, from 1."""


@dataclass(frozen=True, slots=True)
class AppliedDrift:
    """What was written, and what is left for a person."""

    wrote: list[Path]
    left: list[DriftedNote]


def apply_drift(
    library: Library, found: Drift, commit: CommitId = NO_COMMIT
) -> AppliedDrift:
    """Write what is sure, and return what was written and what was left.

    ``commit`` is that of a release whose repository cannot be asked.

    Raises:
        ReaderkitError: a revision that cannot be pinned; nothing is written then.
    """
    upstream, target = found.upstream, found.target
    texts, lost = _rewritten(library, found)
    left = [row for row in found.notes if not row.is_sure] + lost
    lock = library.lock(upstream)
    if not upstream.is_living:
        commit = commit or _commit(found)
        pins = library.root / "annotations" / "upstreams.yaml"
        given = {"tag": target.tag, "commit": commit, "version": target.release}
        texts[pins] = _repinned(pins.read_text("utf-8"), upstream.name, given)
        for data in target.files.values():
            library.store.write(data)
        blobs = {path: blob_id(data) for path, data in target.files.items()}
        named = target.tag if commit else target.release
        lock = lock.with_files(commit, blobs, named)
    done = [row for row in found.notes if row not in left]
    return AppliedDrift(_write(library, found, texts, _locked(lock, found, done)), left)


def _commit(found: Drift) -> CommitId:
    """Return the commit of the other revision.

    Raises:
        ReaderkitError: nothing tells it.
    """
    upstream, target = found.upstream, found.target
    if not upstream.commit:
        if not target.release:
            raise ReaderkitError(
                f"{upstream.name} is pinned at a release of its package: got "
                f"{target.origin}, expected --to RELEASE"
            )
        return NO_COMMIT
    try:
        if commit := commit_of(upstream, target):
            return commit
        why = f"{target.origin} is no commit of a git directory"
    except SourceError as error:
        why = str(error)
    raise ReaderkitError(
        f"{upstream.name}: {why}: expected the full id of the commit that these files "
        "are of: --commit ID, or --to DIR@REV"
    )


def _locked(lock: Lock, found: Drift, done: list[DriftedNote]) -> Lock:
    """Return the lock of the other revision; reviews of the same code stay."""
    after = new_sources(found.upstream, found.target)
    notes = [Note(row.note, row.to, "", "unlocked") for row in done if row.to]
    kept = dict(lock.anchors)
    for row in done:
        known = kept[row.note.id]
        if row.to is None or known.reviewed != known.fingerprint.code:
            continue
        code = fingerprint(row.to, after.file(row.to.path)).code
        if row.renamed:
            kept[row.note.id] = replace(known, reviewed=code)
        elif row.status == "edited" and code == known.reviewed:  # its words are old
            kept[row.note.id] = replace(known, reviewed="")
    fresh = lock_notes(lock.with_anchors(kept), notes, after, followed=True)
    gone = {each.was.key for each in found.claims.moved}
    claims = {key: was for key, was in lock.claims.items() if key not in gone}
    return lock.with_anchors({**kept, **fresh.anchors}).with_claims(
        dict(sorted({**claims, **found.claims.grounds}.items()))
    )


def _write(
    library: Library, found: Drift, texts: Mapping[Path, str], lock: Lock
) -> list[Path]:
    """Write every file, the lock last; if one fails, put the others back."""
    before = {path: path.read_bytes() for path in texts}
    wrote: list[Path] = []
    try:
        for path, text in texts.items():
            if (data := text.encode()) != before[path]:
                wrote.append(path)
                write_atomically(path, data, private=is_own(path))
        return [*wrote, *save_lock(library, found.upstream.name, lock)]
    except BaseException:
        for path in wrote:
            write_atomically(path, before[path], private=is_own(path))
        raise


def _where(place: Place) -> Where:
    return place.line, place.column


def _at(library: Library, where: Place) -> Path:
    path = Path(where.file)
    return path if path.is_absolute() else library.root / path


# --- the text of YAML, changed in place -----------------------------------------------


def _rewritten(
    library: Library, found: Drift
) -> tuple[dict[Path, str], list[DriftedNote]]:
    """Return the files with other anchors and claims, and notes that none holds."""
    notes: dict[Path, dict[Where, DriftedNote]] = defaultdict(dict)
    claims: dict[Path, dict[Where, MovedClaim]] = defaultdict(dict)
    anchors: dict[Path, dict[Anchor, Anchor]] = defaultdict(dict)
    for row in found.notes:
        if row.anchor and row.is_sure:
            notes[_at(library, row.note.place)][_where(row.note.place)] = row
    for claim in found.claims.moved:
        place = claim.was.claim.place
        claims[_at(library, place)][_where(place)] = claim
    for each in found.anchors:
        if each.anchor:
            anchors[each.path][each.was] = each.anchor
    texts: dict[Path, str] = {}
    for path in dict.fromkeys([*notes, *claims, *anchors]):
        texts[path] = text = path.read_text("utf-8")
        edits: list[Edit] = []
        for node in mappings(text):
            at = node.start_mark.line + 1, node.start_mark.column + 1
            own = values(node)
            if "at" in own and at in notes[path]:
                edits += _reanchored(own["at"], notes[path].pop(at))
            if at in claims[path]:
                moved = claims[path][at]
                kind = moved.was.claim.kind
                edits += changed(own[kind], *moved.checks) if kind in own else ()
        for node, anchor in anchor_nodes(text) if anchors[path] else ():
            if new := anchors[path].get(anchor):
                edits += _replaced(node, anchor, new)
        texts[path] = edited(text, edits)
    return texts, [row for rows in notes.values() for row in rows.values()]


def _reanchored(node: Any, row: DriftedNote) -> Iterator[Edit]:
    assert row.anchor is not None  # it is among the notes that get one
    return _replaced(node, row.note.anchor, row.anchor)


def _replaced(node: Any, old: Anchor, new: Anchor) -> Iterator[Edit]:
    """Yield the edits of an anchor; what else is written beside it stays."""
    own = values(node)
    more = {key: own[key].value for key in own.keys() - old.to_yaml().keys()}
    return changed(node, {**more, **old.to_yaml()}, {**more, **new.to_yaml()})


def _repinned(text: str, name: str, given: Mapping[str, str]) -> str:
    """Return ``upstreams.yaml`` with the pin of an upstream moved."""
    edits: list[Edit] = []
    for node in mappings(text):
        own = values(node)
        if "name" not in own or getattr(own["name"], "value", "") != name:
            continue
        places = {key: own.get(key) for key in ("tag", "commit")}
        if "package" in own:
            places["version"] = values(own["package"]).get("version")
        for key, place in places.items():
            if place is not None and given.get(key):
                value = given[key]
                shown = value if key != "version" else json.dumps(value)
                edits.append((place.start_mark.index, place.end_mark.index, shown))
        break
    return edited(text, edits)


def relock_questions(library: Library) -> list[Path]:
    """Write where the lines of questions stand, in a book whose drift was applied.

    A bank with a key that fails is left as it was: ``annotate --check`` names the key.
    """
    from readerkit.app.check_quiz import relock_places
    from readerkit.app.quiz_banks import QuizBanks

    if not (library.root / "quizzes").is_dir():
        return []
    banks = QuizBanks.at(library.root)
    wrote = [n for n in banks.phases() if relock_places(banks, library, n)]
    return [banks.lock_path(phase) for phase in wrote]


def next_step(found: Drift) -> str:
    """Return what to type after it."""
    return typed("annotate", found.upstream.name, "--check")
