"""The most bytes of tensors that live in a step, beside what the demos say they do."""

import contextlib
import io
from argparse import Namespace
from dataclasses import replace
from importlib import import_module

import pytest

from mini_impls.model import GPTConfig
from mini_impls.recorder import MOST_STEPS, RankTrace, Recorder
from mini_impls.run_memory import live_bytes
from mini_impls.run_metrics import RecordedRank, summarize

pytestmark = pytest.mark.sampled

OPTIONS = {
    "checkpoint": {"directory": ""},
    "experts": {"etp": 1},
    "inference": {},
    "offload": {"mb_per_s": 50.0},
    "muon": {},
}
WIDE = GPTConfig(
    num_layers=4, hidden_size=96, num_query_groups=4, ffn_hidden_size=192, vocab_size=96
)
OTHER = {
    "checkpoint": {"ROWS": 2},
    "experts": {"ROWS": 3},
    "inference": {"CONFIG": WIDE, "PROMPT_LENGTH": 20},
    "offload": {"ROWS": 3},
    "muon": {"ROWS": 10},
}
"""Sizes of each that are other than those which its users see."""


def watch(rank, name, options, sizes):
    """Return of each part the peak in its steps, and what was expected."""
    demo = import_module(f"mini_impls.demos.{name}")
    before = {key: getattr(demo, key) for key in sizes}
    for key, value in sizes.items():
        setattr(demo, key, value)
    args = Namespace(world=rank.world_size, backend="gloo", steps=MOST_STEPS, **options)
    try:
        with (
            Recorder(is_on=True) as recorder,
            contextlib.redirect_stdout(io.StringIO()),
        ):
            demo.demo(replace(rank, recorder=recorder), args)
    finally:
        for key, value in before.items():
            setattr(demo, key, value)
    found = summarize(recorder.take(rank.rank, rank.device))
    return {
        part: (of.peak_bytes, found.expected[part].peak_bytes)
        for part, of in found.parts.items()
    }


def check(each):
    """Hold each part's ranks to what they are due; one at least is that near.

    What a thread of gloo's frees is not seen to end, and adds to a rank by chance.
    """
    assert each[0]
    for part in each[0]:
        found = [measured / due for measured, due in (of[part] for of in each)]
        assert 0.8 < min(found) < 1.3, (part, found)


@pytest.mark.parametrize("name", OPTIONS)
def test_a_peak_is_what_the_sizes_say(pool2, name):
    check(pool2.run(watch, name, OPTIONS[name], {}))


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.further
def test_a_peak_of_other_sizes_is_what_they_say(pool2, name):
    check(pool2.run(watch, name, OPTIONS[name], OTHER[name]))


@pytest.mark.parametrize(
    ("name", "options", "alike"),
    [
        ("zero", {}, ("stage 1 with all_reduce", "stage 1 with reduce")),
        (
            "mixed_precision",
            {"scale": 2.0**20},
            ("bfloat16, main weights", "bfloat16, updates of 0.0003"),
        ),
    ],
)
@pytest.mark.further
def test_a_part_has_nothing_of_those_before_in_its_peak(pool2, name, options, alike):
    for of in pool2.run(watch, name, options, {}):
        first, last = (of[part][0] for part in alike)
        assert last < 1.1 * first, (first, last)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["checkpoint", "experts", "muon", "offload"])
def test_a_peak_on_three_ranks_is_what_the_sizes_say(pool3, name):
    check(pool3.run(watch, name, OPTIONS[name], {}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [*OPTIONS.items(), ("experts", {"etp": 2})],
)
def test_a_peak_on_four_ranks_is_what_the_sizes_say(pool4, name, options):
    check(pool4.run(watch, name, options, {}))


def memory(at, start, size, total=0, device=0):
    args = {"Addr": start, "Bytes": size, "Total Allocated": total}
    return {"name": "[memory]", "ts": at, "args": {**args, "Device Type": device}}


@pytest.mark.parametrize(
    ("events", "live"),
    [
        ([memory(1, 100, 8), memory(2, 100, -8)], [8, 0]),
        # A counter that goes on from an earlier recording.
        ([memory(1, 100, 8, total=908)], [8]),
        # A block of that recording ends in this one.
        ([memory(1, 50, -900), memory(2, 100, 8)], [0, 8]),
        # Nobody saw how two ended whose memory is used again, the end of one in part.
        ([memory(1, 100, 8), memory(2, 108, 8), memory(3, 96, 16)], [8, 16, 16]),
        ([memory(1, 100, 8), memory(2, 104, 8)], [8, 8]),
        ([memory(1, 100, 8), memory(2, 104, 8), memory(3, 100, -8)], [8, 8, 8]),
        # Not in order, and beside each other.
        ([memory(2, 108, 4), memory(1, 100, 8)], [8, 12]),
        # A GPU's allocator knows all of its own.
        ([memory(1, 9, 8), memory(2, 1, 4, total=70, device=1)], [70]),
        ([], []),
    ],
)
def test_bytes_that_live_are_counted_by_where_they_lie(events, live):
    assert [size for _, size in live_bytes(events)] == live


def test_a_step_that_only_frees_has_its_peak_where_it_begins():
    recorded = RecordedRank(RankTrace(0, [], 0, 1, {}, {}, 1.0))
    recorded.live = [(0.0, 100), (5.0, 50)]
    assert recorded.peak_bytes((1.0, 10.0)) == 100
    assert recorded.peak_bytes((5.0, 10.0)) == 50
