"""What calls are for: both sides by sections, whether or not a call has a partner."""

import pytest
from msgspec.structs import replace

from readerkit.evidence.purposes import amounts, purposes
from readerkit.evidence.relevance import Evidence, homes
from tests.content.test_annotations import library
from tests.content.test_records import EACH, PATHS, RECORDS, read


def mirror_of(record):
    everything = {path.stem: Evidence(read(path)) for path in PATHS}
    return homes(library().book.mirrors.values(), everything)[record.comparison]


@EACH
def test_each_call_of_rank_0_is_in_one_job_and_each_job_has_a_section(path):
    record = read(path)
    found = list(purposes(record, mirror_of(record)))
    for side in ("upstream", "mini"):
        calls = [calls for job in found for calls in getattr(job, side)]
        events = getattr(record.events[0], side)
        assert sum(each.count for each in calls) == len(events)
        assert sum(each.bytes for each in calls) == sum(
            event.payload_bytes for event in events
        )
    assert all(job.section for job in found)


@pytest.mark.parametrize(
    ("comparison", "calls"),
    [
        ("zero_fully_shard_stage2", [(3, 29), (3, 29)]),
        ("zero_fully_shard_stage3", [(3, 29), (6, 58)]),
    ],
)
def test_zero_and_fully_shard_do_each_job_by_other_calls_with_as_many_bytes(
    comparison, calls
):
    record = read(RECORDS / f"{comparison}.json")
    found = list(purposes(record, mirror_of(record)))
    assert [
        tuple(sum(c.count for c in side) for side in (job.upstream, job.mini))
        for job in found
    ] == calls
    assert all(job.is_as_many_bytes for job in found)


def test_calls_of_no_section_are_told_apart():
    record = read(RECORDS / "zero_fully_shard_stage2.json")
    bare = replace(record, comparison="another")
    [job] = purposes(bare, mirror_of(record))
    assert job.section == 0 and sum(c.count for c in job.mini) == 58


def test_amounts_are_those_of_rank_0():
    record = read(RECORDS / "zero_fully_shard_stage2.json")
    told = {each.what: (each.upstream, each.mini) for each in amounts(record)}
    assert told["payload of all calls"] == (816_128, 816_128)
    assert told["parameters"] == (204_032, 408_064)
    assert told["gradients"] == (204_032, 204_800)
