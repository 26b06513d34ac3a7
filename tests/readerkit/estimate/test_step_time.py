"""Predicted steps against published ones, and the model of links and overlap."""

import pytest

from readerkit.errors import EstimateError
from readerkit.estimate.flops import narayanan_flops_per_iteration
from readerkit.estimate.layout import Layout
from readerkit.estimate.link_time import axis_seconds, group_seconds, ranks_in_node
from readerkit.estimate.pipeline import SOURCES, bubble_fraction
from readerkit.estimate.shape import Shape
from readerkit.estimate.step_time import Assumptions, step_time
from readerkit.estimate.step_traffic import traffic_of_step
from readerkit.estimate.volumes import Traffic
from tests.readerkit.estimate.catalog import CLUSTERS, shape

A100, H100 = CLUSTERS["dgx-a100"], CLUSTERS["dgx-h100"]
# Korthikanti et al. 2205.05198, tables 3 and 5: tp 8; pp, chunks, batch, microbatch;
# seconds with full recompute, and with sequence parallelism and selective recompute.
KORTHIKANTI = [
    ("megatron-22b", 1, 1, 4, 4, 1.42, 1.10),
    ("megatron-175b", 8, 3, 64, 1, 18.13, 13.75),
    ("megatron-530b", 35, 3, 280, 1, 49.05, 37.83),
    ("megatron-1t", 64, 1, 512, 1, 94.42, 71.49),
]
# Narayanan et al. 2104.04473, table 1: heads, hidden, layers, tp, pp, GPUs, batch and
# TFLOP/s per GPU. The microbatch is not in the table: 1 here.
NARAYANAN = [
    (24, 2304, 24, 1, 1, 32, 512, 137),
    (32, 3072, 30, 2, 1, 64, 512, 138),
    (32, 4096, 36, 4, 1, 128, 512, 142),
    (48, 6144, 40, 8, 1, 256, 1024, 135),
    (64, 8192, 48, 8, 2, 512, 1536, 138),
    (80, 10240, 60, 8, 4, 1024, 1792, 140),
    (96, 12288, 80, 8, 8, 1536, 2304, 148),
    (128, 16384, 96, 8, 16, 1920, 2160, 155),
    (128, 20480, 105, 8, 35, 2520, 2520, 163),
    (160, 25600, 128, 8, 64, 3072, 3072, 163),
]
# Dubey et al. 2407.21783, table 4: dp, cp, sequence, batch of a replica, TFLOP/s. The
# chunks are one layer each (section 3.3.2).
LLAMA_3 = [(64, 1, 8192, 32, 430), (128, 1, 8192, 16, 400), (8, 16, 131072, 16, 380)]


@pytest.mark.parametrize("recompute", ["full", "selective"])
@pytest.mark.parametrize("row", KORTHIKANTI, ids=lambda row: row[0])
def test_korthikanti_table_5_within_15_percent(row, recompute):
    name, pp, chunks, batch, micro_batch, full, selective = row
    layout = Layout.parse(
        {
            "tp": 8,
            "pp": pp,
            "virtual_stages": chunks,
            "schedule": "interleaved" if chunks > 1 else "1f1b",
            "micro_batch": micro_batch,
            "microbatches": batch // micro_batch,
            "sequence": 2048,
            "recompute": recompute,
            "sequence_parallel": recompute != "full",
        }
    )
    seconds = step_time(shape(name), layout, A100, Assumptions()).total
    measured = full if recompute == "full" else selective
    assert seconds == pytest.approx(measured, rel=0.15)


@pytest.mark.parametrize("row", NARAYANAN, ids=str)
def test_narayanan_table_1_which_was_not_fitted_within_15_percent(row):
    heads, hidden, layers, tp, pp, gpus, batch, teraflops = row
    dp = gpus // tp // pp
    sizes = {"layers": layers, "hidden": hidden, "vocab": 51200}
    model = Shape.parse(sizes | {"heads": heads, "positions": 2048})
    layout = Layout.parse(
        {
            "dp": dp,
            "tp": tp,
            "pp": pp,
            "microbatches": batch // dp,
            "sequence": 2048,
            "recompute": "full",
            "sequence_parallel": False,
            "zero": 0,
        }
    )
    time = step_time(model, layout, A100, Assumptions(), convention="mixed-20")
    flops = narayanan_flops_per_iteration(batch=batch, sequence=2048, **sizes)
    assert flops / time.total / gpus / 1e12 == pytest.approx(teraflops, rel=0.15)


@pytest.mark.parametrize("row", LLAMA_3, ids=str)
def test_llama_3_table_4_within_15_percent(row):
    dp, cp, sequence, batch, teraflops = row
    layout = Layout.parse(
        {
            "dp": dp,
            "tp": 8,
            "pp": 16,
            "cp": cp,
            "cp_kind": "all-gather",
            "virtual_stages": 8,
            "schedule": "interleaved",
            "microbatches": batch,
            "sequence": sequence,
            "recompute": "none",
            "flash": True,
        }
    )
    time = step_time(shape("llama-3.1-405b"), layout, H100, Assumptions())
    assert time.mfu * 989.4 == pytest.approx(teraflops, rel=0.15)


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
    v = 2 if schedule == "interleaved" else 1
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
