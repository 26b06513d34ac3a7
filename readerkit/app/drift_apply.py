"""``drift UPSTREAM --apply``: anchors, pin and lock moved in one change.

What is sure is written; what is not stays as it was, and ``annotate --check`` names it
until a person has looked. All files are written, or none is.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from readerkit.app.drift_target import commit_of
from readerkit.app.drifted import Drift, DriftedNote, new_sources
from readerkit.app.folders import is_own
from readerkit.app.library import Library, save_lock
from readerkit.content.book import Note, lock_notes
from readerkit.errors import ReaderkitError, SourceError
from readerkit.model.anchor import Anchor
from readerkit.model.git_names import NO_COMMIT, CommitId
from readerkit.upstreams import Lock
from readerkit.upstreams.store import blob_id, write_atomically
from readerkit.wording.next_command import typed

_PLAIN = re.compile(r"[A-Za-z_][\w./-]*")
_WIDTH = 88
Edit = tuple[int, int, str]
"""Where a text is changed, from and to, and what stands there then."""


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
    left = [row for row in found.notes if not row.is_sure]
    by_file: dict[Path, list[DriftedNote]] = defaultdict(list)
    for row in found.notes:
        if row.anchor and row.is_sure:
            by_file[_file_of(library, row)].append(row)
    texts: dict[Path, str] = {}
    for path, rows in by_file.items():
        texts[path], lost = _reanchored(path.read_text("utf-8"), rows)
        left += lost
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
    fresh = lock_notes(lock, notes, after)
    return lock.with_anchors({**lock.anchors, **fresh.anchors}).with_claims(
        dict(sorted({**lock.claims, **found.grounds}.items()))
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


def _file_of(library: Library, row: DriftedNote) -> Path:
    place = Path(row.note.place.file)
    return place if place.is_absolute() else library.root / place


# --- the text of YAML, changed in place -----------------------------------------------


def _reanchored(text: str, rows: list[DriftedNote]) -> tuple[str, list[DriftedNote]]:
    """Return a file with other anchors of some notes, and those it does not hold."""
    edits: list[Edit] = []
    wanted = {row.note.place.line: row for row in rows}
    for node in _mappings(text):
        old = _values(node).get("at")
        row = wanted.get(node.start_mark.line + 1)
        if old is None or row is None or row.anchor is None:
            continue
        del wanted[row.note.place.line]
        end = max(each.end_mark.index for each in _scalars(old))
        end = old.end_mark.index if old.flow_style else end
        flow = _flow(row.anchor, old.start_mark.column)
        edits.append((old.start_mark.index, end, flow))
    return _edited(text, edits), [*wanted.values()]


def _edited(text: str, edits: list[Edit]) -> str:
    for start, end, value in sorted(edits, reverse=True):
        text = text[:start] + value + text[end:]
    return text


def _repinned(text: str, name: str, given: Mapping[str, str]) -> str:
    """Return ``upstreams.yaml`` with the pin of an upstream moved."""
    edits: list[Edit] = []
    for node in _mappings(text):
        values = _values(node)
        if "name" not in values or getattr(values["name"], "value", "") != name:
            continue
        places = {key: values.get(key) for key in ("tag", "commit")}
        if "package" in values:
            places["version"] = _values(values["package"]).get("version")
        for key, place in places.items():
            if place is not None and given.get(key):
                value = given[key]
                shown = value if key != "version" else json.dumps(value)
                edits.append((place.start_mark.index, place.end_mark.index, shown))
        break
    return _edited(text, edits)


def _mappings(text: str) -> Iterator[Any]:
    """Yield every mapping of a YAML text, with its marks."""
    import yaml

    todo = [yaml.compose(text, Loader=yaml.SafeLoader)]
    while todo:
        node = todo.pop()
        if isinstance(node, yaml.MappingNode):
            yield node
            todo += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            todo += node.value


def _values(node: Any) -> dict[str, Any]:
    if not isinstance(node.value, list):
        return {}
    return {key.value: value for key, value in node.value}


def _scalars(node: Any) -> Iterator[Any]:
    for key, value in node.value:
        yield key
        yield value


def _flow(anchor: Anchor, column: int) -> str:
    """Return an anchor as one mapping in braces, broken where it is too long."""
    parts = [f"{key}: {_scalar(value)}" for key, value in anchor.to_yaml().items()]
    line = "{" + ", ".join(parts) + "}"
    if column + len(line) <= _WIDTH:
        return line
    return "{" + (",\n" + " " * (column + 1)).join(parts) + "}"


def _scalar(value: str | int) -> str:
    if isinstance(value, int) or _PLAIN.fullmatch(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def next_step(found: Drift) -> str:
    """Return what to type after it."""
    return typed("annotate", found.upstream.name, "--check")
