"""Reports of drift that a book keeps: written by ``drift --keep``, read by the site."""

from __future__ import annotations

import time
from pathlib import Path

from readerkit.app.drift import Drift
from readerkit.app.folders import read_at_most
from readerkit.app.library import Library
from readerkit.content.kept_drift import (
    FORMAT,
    KeptDrift,
    KeptDriftNote,
    KeptDriftSentence,
    KeptPlace,
)
from readerkit.model.anchor import Span
from readerkit.model.stored import write
from readerkit.upstreams.store import write_atomically

FOLDER = Path("annotations", "drift")


def keep_drift(library: Library, found: Drift) -> Path:
    """Write what was found to the book, over what was kept before; return where."""
    target = found.target
    kept = KeptDrift(
        format=FORMAT,
        upstream=found.upstream.name,
        on=time.strftime("%Y-%m-%d", time.gmtime()),
        was=found.upstream.pin,
        to=target.tag or target.release or target.commit[:12] or "now",
        origin=Path(target.origin).name,
        commit=target.commit,
        held=found.claims.held,
        notes=tuple(
            KeptDriftNote(
                row.note.id,
                row.status,
                _place(row.was),
                _place(row.to) if row.to else None,
                tuple(map(_place, row.parts)),
                round(row.confidence, 4),
                row.to_do,
            )
            for row in found.notes
            if not row.note.mine
        ),
        sentences=tuple(
            KeptDriftSentence(
                each.sentence.entry,
                each.sentence.claim.says,
                each.proof.state == "false",
            )
            for each in found.claims.wrong
        ),
    )
    path = library.root / FOLDER / f"{found.upstream.name}.json"
    write_atomically(path, write(kept).encode())
    return path


def read_drifts(library: Library) -> tuple[KeptDrift, ...]:
    """Return the reports that a book keeps, of upstreams that it has.

    Raises:
        ContentError: a file that is none.
    """
    found = []
    for path in sorted((library.root / FOLDER).glob("*.json")):
        file = path.relative_to(library.root).as_posix()
        kept = KeptDrift.parse(read_at_most(path, library.root).decode(), file)
        if kept.upstream in library.book.upstreams:
            found.append(kept)
    return tuple(found)


def _place(span: Span) -> KeptPlace:
    return KeptPlace(span.path, span.first, span.last)
