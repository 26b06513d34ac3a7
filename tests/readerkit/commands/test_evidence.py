"""Records as commands find them: those of the book, and the reader's own."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from readerkit.app.library import open_library
from readerkit.app.records import (
    find_stale,
    read_gpu_evidence,
    read_gpu_records,
    read_records,
    record_path,
    records_folder,
)
from readerkit.commands.compare import listed
from readerkit.evidence.record import Record
from tests.helpers import ROOT

NAME = "ddp_megatron"
SHIPPED = ROOT / "annotations" / "records" / f"{NAME}.json"


def shipped() -> Record:
    return Record.parse(SHIPPED.read_text("utf-8"), SHIPPED.name)


def save_own(text: str) -> None:
    records_folder().mkdir(parents=True)
    (records_folder() / SHIPPED.name).write_text(text, "utf-8")


def test_records_of_one_upstream_are_those_that_watched_it():
    names = {r.comparison for r in read_records(open_library(ROOT), "megatron")}
    assert NAME in names
    assert "ddp_torch" not in names
    assert names < {r.comparison for r in read_records(open_library(ROOT))}


def test_the_readers_own_record_takes_the_place_of_the_shipped_one():
    save_own(replace(shipped(), made="2030-01-01 00:00:00").to_text())
    [found] = [
        record
        for record in read_records(open_library(ROOT), "megatron")
        if record.comparison == NAME
    ]
    assert found.made == "2030-01-01 00:00:00"


@pytest.mark.parametrize("text", ['"megatron" in no JSON', '["megatron"]'])
def test_an_own_record_that_cannot_be_read_is_left_out_with_a_warning(capsys, text):
    save_own(text)
    found = {r.comparison: r for r in read_records(open_library(ROOT), "megatron")}
    assert "a record of yours is left out" in capsys.readouterr().err
    assert found[NAME] == shipped()


def test_a_changed_file_makes_a_record_stale():
    record = shipped()
    library = open_library(ROOT)
    assert find_stale(library, record) == []
    path = "mini_impls/ddp.py"
    blobs = {**record.blobs, "minis": {path: "0" * 40}}
    [change] = find_stale(library, replace(record, blobs=blobs))
    assert (change.part, change.was) == (f"minis: {path}", "0" * 40)
    path = "mini_impls/compare/megatron.py"
    program = {**record.program, path: "0" * 40}
    [change] = find_stale(library, replace(record, program=program))
    assert (change.part, change.was) == (f"comparison: {path}", "0" * 40)
    [change] = find_stale(library, replace(record, pins={"megatron": "0" * 40}))
    assert (change.part, change.was) == ("megatron", "0" * 40)


# --- on GPUs ---


def test_a_record_of_a_gpu_stands_beside_and_is_no_evidence():
    library = open_library(ROOT)
    on_gpus = read_gpu_records(library)
    assert on_gpus
    assert on_gpus.keys() <= library.book.comparisons.keys()
    for name, record in on_gpus.items():
        assert (record.comparison, record.backend) == (name, "nccl")
        assert record.agrees
        assert {"gpu", "nccl"} <= record.environment.keys()
    assert {record.backend for record in read_records(library)} == {"gloo"}


def test_what_a_gpu_saw_here_takes_the_place_of_what_ships_for_gpus_alone():
    record = replace(shipped(), made="2030-01-01 00:00:00", backend="nccl")
    path = records_folder() / record_path(NAME, "nccl")
    path.parent.mkdir(parents=True)
    path.write_text(record.to_text(), "utf-8")
    library = open_library(ROOT)
    assert read_gpu_records(library)[NAME] == record
    assert shipped() in read_records(library)
    assert records_folder() / record_path(NAME, "gloo") != path


def test_a_gpus_record_that_cannot_be_read_is_left_out_with_a_warning(capsys):
    path = records_folder() / record_path(NAME, "nccl")
    path.parent.mkdir(parents=True)
    path.write_text("no record", "utf-8")
    assert NAME in read_gpu_records(open_library(ROOT))
    assert "a record of yours is left out" in capsys.readouterr().err


def test_a_gpus_record_of_another_torch_says_so():
    parts = {
        each.part for each in read_gpu_evidence(open_library(ROOT))["ddp_torch"].stale
    }
    assert "pytorch" in parts  # it ran torch 2.11.0


def test_the_list_of_comparisons_says_which_have_run_on_a_gpu():
    library = open_library(ROOT)
    named, on_gpus = library.book.comparisons.values(), read_gpu_records(library)
    rows = listed(named, 80, on_gpus).splitlines()
    assert sum("also on NVIDIA H100" in row for row in rows) == len(on_gpus)
    at = rows.index("  ddp --upstream torch")
    assert "also on NVIDIA H100" in rows[at + 2]
    assert "NVIDIA" not in listed(named, None, on_gpus)  # a program's fields stay
