"""What records say about lines: which ran, what they sent, when they say nothing."""

from __future__ import annotations

import pytest
from msgspec import structs
from msgspec.structs import replace

from readerkit.anchors import Span
from readerkit.app.library import open_library
from readerkit.evidence.executed_lines import LitLines
from readerkit.evidence.line_ranges import line_numbers
from readerkit.evidence.record import Lit, Record
from readerkit.evidence.relevance import (
    Evidence,
    expected_to_run,
    homes,
    ran_lines,
    related,
    seen_there,
    worth_saying,
)
from readerkit.model.freshness import Change
from tests.helpers import ROOT

NAME = "tensor_parallel_megatron"
RECORDS = ROOT / "annotations" / "records"


@pytest.fixture(scope="module")
def record():
    path = RECORDS / f"{NAME}.json"
    return Record.parse(path.read_text("utf-8"), str(path))


def seen(record, span, upstream="megatron"):
    evidence = {NAME: Evidence(record)}
    return seen_there(upstream, span, evidence)


def test_the_line_that_issues_is_credited_with_its_calls_and_bytes(record):
    first = record.events[0]
    site = first.upstream[0].site
    mine = [event for event in first.upstream if event.site == site]
    [found] = seen(record, Span(site.path, site.line, site.line))
    [sent] = found.first_rank
    assert found.step_lines == {site.line}
    assert (sent.op, sent.calls) == (mine[0].op, len(mine))
    assert sent.payload_bytes == sum(event.payload_bytes for event in mine)


def test_the_mini_is_asked_for_its_own_side(record):
    site = record.events[0].mini[0].site
    [found] = seen(record, Span(site.path, site.line, site.line), "minis")
    assert found.first_rank


def test_lines_that_did_not_run_are_said_not_to_have(record):
    lit = next(lit for lit in record.lit if lit.steps and lit.upstream == "megatron")
    last = max(max(map(line_numbers, lit.steps.values()), key=max))
    [found] = seen(record, Span(lit.path, last + 1, last + 1))
    assert (found.ran, found.first_rank) == (False, ())


def test_a_file_that_was_watched_and_not_touched_did_not_run(record):
    [found] = seen(record, Span("megatron/core/nowhere.py", 1, 9))
    assert (found.ran, found.setup_lines) == (False, frozenset())


def test_an_upstream_that_a_record_did_not_watch_is_not_spoken_of(record):
    assert seen(record, Span("deepspeed/runtime/zero/stage3.py", 1, 9), "ds") == []


def test_a_stale_record_says_nothing(record):
    evidence = [Evidence(record, stale=(Change("a.py", "1", "2"),))]
    assert ran_lines(evidence) == {}
    site = record.events[0].upstream[0].site
    span = Span(site.path, site.line, site.line)
    assert seen_there("megatron", span, {NAME: evidence[0]}) == []


def test_a_file_whose_lines_ran_only_in_setup_ran_no_line_of_the_step(record):
    only_setup = replace(record, lit=(Lit("megatron", "a.py", "1-9", {}),))
    assert ran_lines([Evidence(only_setup)]) == {
        ("megatron", "a.py"): {NAME: frozenset()}
    }


# --- what is worth saying ---


def lines(comparison, step=(), setup=()):
    return LitLines(
        comparison, 2, frozenset(setup), (frozenset(step),), 0, (), stale=()
    )


def test_records_that_ran_the_lines_are_told_of_and_else_the_expected_ones():
    idle, other, built = lines("idle"), lines("other"), lines("built", setup=[3])
    step = lines("step", step=[3])
    assert worth_saying([idle, built, step], {"idle"}) == [step]
    assert worth_saying([idle, built], {"idle"}) == [built]
    assert worth_saying([idle, other], {"idle"}) == [idle]
    assert worth_saying([other], {"idle"}) == []


def test_a_note_expects_the_records_of_its_mirrors_and_else_those_of_its_file(book):
    evidence = evidence_of("pipeline_", "ddp_", "tensor_parallel_megatron")
    mirrors = book.mirrors.values()
    file = {NAME: frozenset([7]), "ddp_megatron": frozenset()}
    section = book.mirrors["pipeline-executor"].sections[0]
    named = book.annotations[section.upstream[0]]
    ours = expected_to_run(named, file, mirrors, evidence)
    assert ours == {name for name in evidence if name.startswith("pipeline_")}
    unnamed = structs.replace(named, id="of-no-mirror")
    assert expected_to_run(unnamed, file, mirrors, evidence) == {NAME}


# --- which records bear on a mirror ---


@pytest.fixture(scope="module")
def book():
    return open_library(None, quiet=True).book


def evidence_of(*starts):
    """Return the shipped records whose names begin so."""
    paths = [path for path in sorted(RECORDS.iterdir()) if path.name.startswith(starts)]
    parsed = [Record.parse(path.read_text("utf-8"), str(path)) for path in paths]
    return {record.comparison: Evidence(record) for record in parsed}


def test_own_records_come_before_those_that_ran_another_mini_of_the_page(book):
    found = related(book.mirrors["zero"], evidence_of("zero_", "fsdp_flat", "ddp"))
    *own, guest = found
    assert own and all(one.is_own and "zero" in one.comparison for one in own)
    assert (guest.comparison, guest.is_own) == ("fsdp_flat_fsdp1", False)


def test_a_record_is_at_home_where_its_events_are_told(book):
    evidence = evidence_of("zero_", "fsdp_flat", "pipeline_torch_gpipe")
    found = {
        name: each.id for name, each in homes(book.mirrors.values(), evidence).items()
    }
    assert found["fsdp_flat_fsdp1"] == "fsdp-flat"
    assert found["pipeline_torch_gpipe"] == "pipeline-executor"
    assert found["zero_fully_shard_stage2"] == "zero"


def test_a_page_without_records_of_its_own_has_those_that_ran_its_mini(book):
    mirror = book.mirrors["pipeline-schedules"]
    [guest] = related(mirror, evidence_of("pipeline_torch_gpipe", "ddp"))
    assert guest.comparison == "pipeline_torch_gpipe"
