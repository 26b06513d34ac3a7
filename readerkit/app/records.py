"""Reads what runs left: records, asked about lines, and the recorded mechanisms."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from readerkit.app.folders import PACKAGE, data_folder, read_at_most
from readerkit.app.library import Library, warn
from readerkit.content.book import MINIS
from readerkit.content.resolved_notes import Sources
from readerkit.errors import ReaderkitError
from readerkit.evidence.executed_lines import LitLines, lit
from readerkit.evidence.played import FORMAT, Mechanisms, Played
from readerkit.evidence.record import PROGRAM, Record, parts_of
from readerkit.evidence.relevance import Evidence
from readerkit.model import stored
from readerkit.model.anchor import Span
from readerkit.model.freshness import Change, digest, outdated
from readerkit.model.git_names import BlobId, TreePath, parse_path
from readerkit.upstreams.store import blob_id


def records_folder() -> Path:
    """Return where the reader's own records are."""
    return data_folder() / "records"


def record_path(comparison: str, backend: str) -> Path:
    """Return where below a folder of records a comparison's is.

    Those of GPUs stand in a folder of their own, beside the others: no evidence is
    taken from them, since not every reader can make them again.
    """
    file = Path(f"{comparison}.json")
    return file if backend == "gloo" else Path(backend) / file


def read_gpu_records(
    library: Library, parsed: dict[str, Record] | None = None
) -> dict[str, Record]:
    """Return what comparisons saw on GPUs, the reader's own before what ships.

    Raises:
        ContentError: a file of the book that is no record.
    """
    found = _found(library, "", parsed, below="nccl/")
    return {name: record for name, (record, _) in found.items()}


def read_records(library: Library, upstream: str = "") -> list[Record]:
    """Return the records of a book, those of ``upstream`` alone if one is given.

    The reader's own takes the place of the one that ships with the book; where it
    cannot be read, a warning says so and the shipped one stays.

    Raises:
        ContentError: a file of the book that is no record.
    """
    return [record for record, _ in _found(library, upstream).values()]


def read_evidence(
    library: Library, parsed: dict[str, Record] | None = None
) -> dict[str, Evidence]:
    """Return every record by its comparison, with why it is stale, if it is.

    ``parsed`` keeps records by their text, for whoever asks again and again.
    """
    today = code_today(library)
    return {
        name: Evidence(record, tuple(outdated(record.made_from, today)), is_own)
        for name, (record, is_own) in _found(library, "", parsed).items()
    }


def read_gpu_evidence(
    library: Library, parsed: dict[str, Record] | None = None
) -> dict[str, Evidence]:
    """Return what comparisons saw on GPUs, and what has changed since."""
    today = code_today(library)
    return {
        name: Evidence(record, tuple(outdated(record.made_from, today)))
        for name, record in read_gpu_records(library, parsed).items()
    }


def find_stale(library: Library, record: Record) -> list[Change]:
    """Return the changes since a record was made; empty: it is of the code at hand."""
    return outdated(record.made_from, code_today(library))


def lit_in(sources: Sources, span: Span, records: Iterable[Record]) -> list[LitLines]:
    """Return the evidence of records for lines of an upstream as it is at hand."""
    upstream = sources.upstream
    if sources.is_absent:
        return []
    blob = blob_id(sources.read(span.path))
    return lit(records, upstream.name, span, commit=upstream.commit, blob=blob)


def code_today(library: Library) -> dict[str, str]:
    """Return the parts that records and outputs can be made from, as they are."""
    book = library.book
    pins = {upstream.name: upstream.commit for upstream in library.pinned()}
    blobs = {name: dict(lock.files) for name, lock in book.locks.items()}
    if MINIS in book.upstreams:
        minis = library.sources(book.upstreams[MINIS])
        blobs[MINIS] = {path: blob_id(minis.read(path)) for path in minis.paths}
    ours = PACKAGE.parent / "mini_impls"  # whatever the book: they compare, no others
    if MINIS in blobs:  # no pages show what measures them, but experiments call it
        blobs[MINIS] |= _blobs_of((ours / "demos").glob("*.py"))
    blobs[PROGRAM] = _blobs_of((ours / "launch.py", *(ours / "compare").glob("*.py")))
    return parts_of(pins, blobs)


def _blobs_of(ours: Iterable[Path]) -> dict[TreePath, BlobId]:
    top = PACKAGE.parent
    return {
        parse_path(path.relative_to(top).as_posix()): blob_id(path.read_bytes())
        for path in ours
    }


def _found(
    library: Library,
    upstream: str,
    parsed: dict[str, Record] | None = None,
    below: str = "",
) -> dict[str, tuple[Record, bool]]:
    """Return records by comparison, and whether each is the reader's own."""
    shipped = library.root / "annotations" / "records"
    found: dict[str, tuple[Record, bool]] = {}
    for path in sorted(shipped.glob(f"{below}*.json")):
        record = _read(path, library.root, upstream, parsed)
        if record is not None:
            found[record.comparison] = record, False
    for path in sorted(records_folder().glob(f"{below}*.json")):
        try:
            record = _read(path, None, upstream, parsed)
        except ReaderkitError as error:
            warn(f"a record of yours is left out: {error}")
            continue
        if record is not None:
            found[record.comparison] = record, True
    return found


def _read(
    path: Path, root: Path | None, upstream: str, parsed: dict[str, Record] | None
) -> Record | None:
    """Return a record; None where it has no say about an upstream."""
    try:
        text = read_at_most(path, root).decode()
    except UnicodeDecodeError as error:
        raise ReaderkitError(f"{path}: cannot be read: {error}") from None
    # To build a record takes longer than to read it: only where it has a say.
    if upstream not in ("", MINIS) and json.dumps(upstream) not in text:
        return None
    record = (parsed or {}).get(text) or Record.parse(text, str(path))
    if parsed is not None:
        parsed[text] = record
    return record if upstream in ("", MINIS, *record.pins) else None


FILE = "annotations/mechanisms.json"
MAKE = "python -m tools.make_mechanisms"


def read_played(library: Library) -> dict[str, Played]:
    """Return every mechanism that was recorded; none, in a book without them.

    Raises:
        ContentError: a file that cannot be read.
    """
    path = library.root / FILE
    if not path.is_file():
        return {}
    text = read_at_most(path, library.root).decode("utf-8", "replace")
    what = {"what": "file of mechanisms", "expected": f"{MAKE} --all"}
    file = stored.parse(text, Mechanisms, FILE, version=FORMAT, **what)
    today: dict[str, str] = {}
    if MINIS in library.book.upstreams:
        minis = library.sources(library.book.upstreams[MINIS])
        made_from = {part for run in file.runs.values() for part in run.made_from}
        today = {p: digest(minis.read(p)) for p in minis.paths if p in made_from}
    return {
        name: Played(name, run, tuple(outdated(run.made_from, today)))
        for name, run in file.runs.items()
    }
