"""Whether what a lab asks for is handed in: each line with its evidence, seen now."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from readerkit.app.folders import open_ledger
from readerkit.app.library import Library
from readerkit.budget import BudgetGuard
from readerkit.content.book import MINIS
from readerkit.content.strict_yaml import parse_yaml
from readerkit.errors import ReaderkitError
from readerkit.labs import measured, results
from readerkit.labs.budget import check_budget, read_hand_in
from readerkit.labs.generation_curve import check_generation
from readerkit.labs.lab import ChecklistItem, Lab
from readerkit.labs.reading import READINGS, belongs, check_reading
from readerkit.labs.results import Result
from readerkit.upstreams.store import blob_id
from readerkit.wording.next_command import typed


def file_name(chosen: Lab, *, on_gpus: bool) -> str:
    """Return the name of a hand-in: the one from GPUs stands beside the local one."""
    name = chosen.handed_in
    return name.replace(".json", "-nccl.json") if on_gpus else name


def check_lab(chosen: Lab, folder: Path, library: Library) -> list[ChecklistItem]:
    """Return the checklist of a lab, each line with its evidence, verified now.

    Raises:
        ContentError: a hand-in that cannot be read.
    """
    if chosen.id == "03":
        return _check_readings(library)
    if chosen.id == "00":
        return _check_budget(chosen, folder / chosen.handed_in)
    local = folder / file_name(chosen, on_gpus=False)
    rented = folder / file_name(chosen, on_gpus=True)
    items = []
    for path in (local, rented) if chosen.has_task and rented.is_file() else (local,):
        items.append(_handed_in(chosen, path))
        if path.is_file():
            items += _check_measured(chosen, path, library)
    if chosen.id == "01" and local.is_file():
        items.append(_drawn(local.with_suffix(".svg")))
    return items


def _handed_in(chosen: Lab, path: Path) -> ChecklistItem:
    if path.is_file():
        evidence = f"{path.stat().st_size:,} bytes"
    else:
        run = ["--run"] if chosen.module else []
        evidence = f"make it with {typed('lab', chosen.id, *run)}"
    return ChecklistItem.of(f"{path} is handed in", path.is_file(), evidence)


def _drawn(path: Path) -> ChecklistItem:
    found = path.is_file() and path.read_bytes().startswith(b"<svg")
    how = f"drawn by {typed('lab', '01', '--run')}"
    return ChecklistItem.of("one rank against more, as a plot", found, f"{path}, {how}")


def _check_measured(chosen: Lab, path: Path, library: Library) -> list[ChecklistItem]:
    minis = library.sources(library.upstream(MINIS))
    today = {str(path): blob_id(minis.read(path)) for path in minis.paths}
    found: Result
    if chosen.id == "01":
        found = results.read_result(results.DdpResult, chosen.id, path)
        items = measured.check_ddp(found)
    elif chosen.id == "02":
        found = results.read_result(results.GenerationResult, chosen.id, path)
        items = check_generation(found)
    else:
        found = results.read_result(results.FsdpResult, chosen.id, path)
        items = measured.check_fsdp(found)
    return [measured.check_origin(found, today), *items]


def _check_budget(chosen: Lab, path: Path) -> list[ChecklistItem]:
    handed_in = _handed_in(chosen, path)
    if not path.is_file():
        return [handed_in]
    hand_in = read_hand_in(parse_yaml(path.read_bytes(), str(path)))
    today = datetime.now(UTC).date()
    return [handed_in, *check_budget(hand_in, BudgetGuard(open_ledger()), today)]


def _check_readings(library: Library) -> list[ChecklistItem]:
    notes = [note for note in library.book.annotations.values() if belongs(note)]
    faults: dict[str, str] = {}
    for upstream in {note.upstream for note in notes}:
        sources = library.sources(library.upstream(upstream))
        for note in notes:
            if note.upstream == upstream:
                try:
                    sources.resolve(note.anchor)
                except ReaderkitError as error:
                    faults[note.id] = str(error).splitlines()[0]
    return [
        item for reading in READINGS for item in check_reading(reading, notes, faults)
    ]
