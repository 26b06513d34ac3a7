"""The shipped evidence speaks of the pins, the files and the minis as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from mini_impls.compare.known import COMPARISONS
from readerkit.commands.library import open_library
from readerkit.records import Record, stale_reasons
from readerkit.upstreams.store import blob_id
from tests.helpers import ROOT

RECORDS = ROOT / "annotations" / "records"


def test_every_comparison_ships_a_record() -> None:
    shipped = {path.stem for path in RECORDS.glob("*.json")}
    assert shipped == {comparison.name for comparison in COMPARISONS}


@pytest.mark.parametrize("path", sorted(RECORDS.glob("*.json")), ids=lambda p: p.stem)
def test_record_is_not_stale(path: Path) -> None:
    record = Record.parse(path.read_text("utf-8"), path.name)
    library = open_library()
    pins = {upstream.name: upstream.commit for upstream in library.pinned()}
    blobs = {name: dict(lock.files) for name, lock in library.book.locks.items()}
    minis = sorted((ROOT / "mini_impls").glob("*.py"))
    blobs["minis"] = {f"mini_impls/{p.name}": blob_id(p.read_bytes()) for p in minis}
    reasons = stale_reasons(record, pins, blobs)
    again = f"readerkit compare {record.mini} --upstream {record.upstream}"
    assert not reasons, f"make it anew: {again} --save {RECORDS}"


@pytest.mark.parametrize("path", sorted(RECORDS.glob("*.json")), ids=lambda p: p.stem)
def test_record_has_no_unexplained_line(path: Path) -> None:
    assert Record.parse(path.read_text("utf-8"), path.name).agrees
