"""Predicted steps against published ones, and the model of links and overlap."""

import pytest

from readerkit.errors import EstimateError
from readerkit.estimate.bubble import bubble_fraction
from readerkit.estimate.layout import Layout
from readerkit.estimate.link_time import axis_seconds, group_seconds, ranks_in_node
from readerkit.estimate.schedules import CHUNKED, SOURCES
from readerkit.estimate.step_time import Assumptions, step_time
from readerkit.estimate.step_traffic import traffic_of_step
from readerkit.estimate.volumes import Traffic
from tests.readerkit.estimate.catalog import CLUSTERS, shape

A100, H100 = CLUSTERS["dgx-a100"], CLUSTERS["dgx-h100"]


def test_parts_of_a_step_sum_to_it():
    layout = Layout.parse(
        {"dp": 4, "tp": 4, "pp": 4, "microbatches": 16, "flash": True}
    )
    time = step_time(shape("llama-2-70b"), layout, H100, Assumptions())
    parts = time.compute + time.bubble + sum(time.exposed.values())
    assert time.total == pytest.approx(parts)
    traffics = traffic_of_step(shape("llama-2-70b"), layout)
    axes = axis_seconds(traffics, layout, H100, 0.7)
    assert sum(time.exposed.values()) + time.hidden == pytest.approx(sum(axes.values()))
    # Bubble: (p - 1)/m of what each microbatch takes.
    per_step = time.compute + time.exposed["tp"] + time.exposed["pp"]
    assert time.bubble == pytest.approx(per_step * 3 / 16)


def test_no_more_is_hidden_than_there_is_compute():
    layout = Layout.parse({"dp": 64, "flash": True, "sequence": 128, "zero": 0})
    slow = CLUSTERS["h100-ethernet"]
    time = step_time(shape("gpt2"), layout, slow, Assumptions(overlap=1.0))
    assert time.hidden == pytest.approx(time.compute)
    assert time.exposed["dp"] > time.compute


def gather(ranks: int, size: int = 8_000_000_000) -> Traffic:
    return Traffic("dp", "all-gather", 1, size, ranks, "", "")


def test_a_ring_over_nodes_uses_the_cards_of_all_its_ranks_there():
    # 16 neighbours are 8 to a node: 8 × 50 GB/s leave it, less than 450 inside.
    assert group_seconds(H100, gather(16), 1, 1.0) == pytest.approx(
        8 * 15 / 16 / 400 + 14 * 3.4e-6 + 14e-6
    )
    # 16 ranks that are 8 apart are one to a node.
    assert ranks_in_node(H100, 16, 8) == 1
    assert group_seconds(H100, gather(16), 8, 1.0) == pytest.approx(
        8 * 15 / 16 / 50 + 15 * 14e-6
    )
    assert group_seconds(H100, gather(8), 1, 1.0) == pytest.approx(
        8 * 7 / 8 / 450 + 7 * 3.4e-6
    )
    assert group_seconds(H100, gather(1), 1, 1.0) == 0


@pytest.mark.parametrize(("pp", "rate"), [(2, 450), (4, 50)])
def test_messages_of_a_pipeline_over_nodes_wait_for_the_network(pp, rate):
    # tp 4: two stages share a node of 8, and of four the second sends to another.
    layout = Layout.parse({"tp": 4, "pp": pp, "microbatches": 8, "dp": 1})
    found = [
        t for t in traffic_of_step(shape("llama-3.2-1b"), layout) if t.axis == "pp"
    ]
    sent, table = (each.sent_bytes for each in found)
    free = H100._replace(inside_latency_s=0, between_latency_s=0)
    seconds = axis_seconds(found, layout, free, 1.0)["pp"]
    assert seconds == pytest.approx((sent + table) / (rate * 1e9))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"overlap": 1.5}, "overlap: got 1.5, expected a share"),
        ({"kernel_efficiency": 0}, "kernel_efficiency: got 0, expected more than zero"),
        ({"link_efficiency": float("nan")}, "link_efficiency: got nan"),
        ({"memory_passes": -1}, "memory_passes: got -1"),
    ],
)
def test_assumptions_that_cannot_be_are_named(change, message):
    given = {
        "kernel_efficiency": 0.5,
        "memory_passes": 8,
        "link_efficiency": 0.5,
        "overlap": 0.5,
    }
    with pytest.raises(EstimateError, match=message):
        Assumptions.parse(**given | change)


@pytest.mark.parametrize("recompute", ["none", "full"])
@pytest.mark.parametrize("schedule", SOURCES)
def test_the_bubble_of_a_step_is_that_of_estimate_bubble(schedule, recompute):
    """A backward is two forwards, and one more where the forward is run again."""
    v = 2 if schedule in CHUNKED else 1
    cut = {"pp": 4, "tp": 8, "microbatches": 16, "virtual_stages": v, "flash": True}
    layout = Layout.parse(cut | {"schedule": schedule, "recompute": recompute})
    time = step_time(shape("llama-2-70b"), layout, H100, Assumptions())
    again = int(recompute == "full")
    whole = schedule in ("gpipe", "1f1b", "interleaved")
    of_ideal = bubble_fraction(
        of="ideal",
        schedule=schedule,
        stages=4,
        microbatches=16,
        virtual_stages=v,
        backward=(2 if whole else 1) + again,
    )
    busy = time.compute + time.exposed["tp"] + time.exposed["pp"]
    assert time.bubble / busy == pytest.approx(of_ideal)
