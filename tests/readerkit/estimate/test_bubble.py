"""Bubbles by formula against schedules that are run, and published figures."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise, product

import pytest

from mini_impls.schedules import get_orders
from mini_impls.timeline import get_peak_in_flight
from readerkit.errors import EstimateError
from readerkit.estimate import zero_bubble
from readerkit.estimate.bubble import (
    Pipeline,
    bubble_fraction,
    bubble_time,
    peak_in_flight,
)
from readerkit.estimate.bubble_estimate import estimate_bubble
from readerkit.estimate.schedules import STAGGERED
from readerkit.estimate.zero_bubble import zb_interleaved

SIZES = [
    *((name, p, m, 1) for name in ("gpipe", "1f1b", "zb-h1") for p in (1, 2, 4, 5)
      for m in (1, 2, 4, 7, 12)),
    *(("interleaved", p, p * g, v) for p, g, v in product((2, 4), (1, 3), (2, 3))),
]  # fmt: skip
SIZES += [("zb-interleaved", *sizes) for name, *sizes in SIZES if name == "interleaved"]
COSTS = [(1, 1, 1), (1, 2, 1), (2, 3, 1), (2, 1, 3), (1, 3, 2)]


@pytest.mark.parametrize("costs", COSTS)
def test_idle_time_of_a_schedule_that_is_run_equals_the_formula(costs):
    forward, backward, weight = costs
    for schedule, p, m, v in SIZES:
        sizes = {
            "schedule": schedule,
            "stages": p,
            "microbatches": m,
            "virtual_stages": v,
            "forward": forward,
            "backward": backward,
            "weight": weight,
        }
        ideal, total = Pipeline.parse(sizes).simulate()
        assert bubble_fraction(of="ideal", **sizes) == pytest.approx(float(ideal))
        assert bubble_fraction(of="total", **sizes) == pytest.approx(float(total))
        work = m * (forward + backward + (weight if schedule.startswith("zb") else 0))
        # A rank of v chunks does v times as many steps of the same cost.
        assert (
            Fraction(bubble_time(**sizes) * v).limit_denominator() == ideal * work * v
        )


def test_activations_held_by_a_schedule_that_is_run_equal_the_formula():
    for schedule, p, m, v in SIZES:
        if schedule == "zb-interleaved":
            orders = [list(zb_interleaved(rank, p, m, v)) for rank in range(p)]
        else:
            orders = get_orders(schedule, p, m, v)
        for rank, order in enumerate(orders):
            held = peak_in_flight(
                schedule=schedule,
                stages=p,
                microbatches=m,
                virtual_stages=v,
                rank=rank,
            )
            expected = get_peak_in_flight(order)
            if schedule == "zb-h1":
                expected = max(map(get_peak_in_flight, get_orders(schedule, p, m)))
            assert held * v == expected, (schedule, p, m, v, rank)


@pytest.mark.parametrize(
    ("p", "m", "ideal", "total"),
    [
        (4, 16, 18.75, 15.8),  # "19% overhead": of ideal
        (16, 4, 375, 78.9),  # "375% overhead": of ideal
        (8, 64, 10.9, 9.9),
    ],
)
def test_both_conventions_are_printed(p, m, ideal, total):
    estimate = estimate_bubble(Pipeline("1f1b", p, m))
    assert round(estimate["bubble of ideal time"] * 100, 2) == pytest.approx(
        ideal, abs=0.05
    )
    assert round(estimate["bubble of total time"] * 100, 1) == total
    assert {item.convention for item in estimate.items[:2]} == {
        "idle / busy time",
        "idle / all of the step",
    }


def test_zero_bubble_schedules_of_the_paper():
    # Qi et al. 2401.10241, table 2, with F = B = W: a third of 1F1B's, and none.
    sizes = {"stages": 8, "microbatches": 24}
    plain = bubble_time(schedule="1f1b", forward=1, backward=2, **sizes)
    assert plain == 21
    assert bubble_time(schedule="zb-h1", **sizes) == plain / 3
    assert bubble_time(schedule="zb-h2", **sizes) == 0
    assert peak_in_flight(schedule="zb-h1", **sizes) == 8
    assert peak_in_flight(schedule="zb-h2", **sizes) == 15


SIZES_RUN = [(2, 4), (2, 10), (4, 8), (4, 14), (6, 12), (8, 24)]


@pytest.mark.parametrize(("p", "m"), SIZES_RUN)
@pytest.mark.parametrize(
    ("schedule", "costs", "idle", "held"),
    [
        # Qi et al. 2401.10241, table 2: (p - 1)(F + B - 2 W), and 2 p - 1 are held.
        ("zb-h2", (1, 1, 1), lambda p: 0, lambda p: 2 * p - 1),
        ("zb-h2", (2, 2, 1), lambda p: 2 * (p - 1), lambda p: 2 * p - 1),
        ("zb-h2", (2, 3, 1), lambda p: 3 * (p - 1), lambda p: 2 * p - 1),
        # Section 6: none where F = B = W, with what 1F1B holds.
        ("zb-v", (1, 1, 1), lambda p: 0, lambda p: p),
        ("zb-v", (3, 3, 3), lambda p: 0, lambda p: p),
        # DeepSeek-V3 2412.19437, table 2: (PP/2 - 1)(F&B + B - 3 W), PP + 1; B is all
        # of a backward there, and F&B taken as F + B.
        ("dualpipe", (1, 1, 1), lambda p: (p // 2 - 1) * (3 + 2 - 3), lambda p: p + 1),
        ("dualpipe", (2, 2, 1), lambda p: (p // 2 - 1) * (5 + 3 - 3), lambda p: p + 1),
        ("dualpipe", (3, 3, 2), lambda p: (p // 2 - 1) * (8 + 5 - 6), lambda p: p + 1),
    ],
)
def test_schedules_that_are_run_equal_their_papers(p, m, schedule, costs, idle, held):
    times = dict(zip(("forward", "backward", "weight"), costs, strict=True))
    sizes = {"schedule": schedule, "stages": p, "microbatches": m, **times}
    one = Pipeline.parse(sizes)
    assert bubble_time(**sizes) == idle(p)
    assert one.simulate()[0] == Fraction(idle(p), m * sum(costs))
    for rank in range(p):
        assert peak_in_flight(rank=rank, **sizes) == held(p)
        assert zero_bubble.held(schedule, rank, p, m) == held(p)
    # Each microbatch passes each chunk once, one step at a time.
    bars, chunks = one.bars(), 2 if schedule == "zb-v" else 1
    kinds = Counter(bar.kind for bar in bars)
    assert kinds["F"] == kinds["B"] == p * m * chunks
    for before, after in pairwise(bars):
        assert before.rank < after.rank or before.end <= after.start


@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1", "zb-h2", "zb-v", "dualpipe"])
@pytest.mark.parametrize(("p", "m"), [(4, 8), (8, 32)])
def test_a_step_that_is_longer_than_work_and_idle_time_says_so(schedule, p, m):
    one = Pipeline.parse({"schedule": schedule, "stages": p, "microbatches": m})
    chunks = 2 if schedule == "zb-v" else 1
    whole = Fraction(max(bar.end for bar in one.bars()), chunks)
    assert (whole > one.busy + one.idle) == (schedule in STAGGERED)
    told = any(note.startswith("ranks begin") for note in estimate_bubble(one).notes)
    assert told == (schedule in STAGGERED)


def test_times_that_no_formula_is_for_are_those_of_the_run():
    # DualPipe's formula takes F for the input's half of a backward; here they differ.
    for schedule in ("zb-v", "dualpipe"):
        sizes = {"schedule": schedule, "stages": 4, "microbatches": 12, "backward": 2}
        one = Pipeline.parse(sizes)
        assert bubble_time(**sizes) == one.simulate()[0] * one.busy > 0
        shown = estimate_bubble(one)["bubble of ideal time"]
        assert shown == pytest.approx(float(one.simulate()[0]))


def test_a_microbatch_meets_half_of_what_a_rank_of_dualpipe_has():
    # DeepSeek-V3 2412.19437, table 2: parameters twice, PP + 1 times a stage's share.
    both = estimate_bubble(Pipeline("dualpipe", 4, 8)).items
    held = next(item for item in both if item.name == "in flight on rank 0")
    assert (held.value, "half of the rank" in held.convention) == (5, True)


@pytest.mark.parametrize("schedule", ["zb-h2", "zb-v", "dualpipe"])
@pytest.mark.parametrize("costs", [*product((1, 2, 3), repeat=3)])
def test_no_formula_is_printed_for_times_that_it_is_not_of(schedule, costs):
    # A weights' half that is longer than F or B delays what others wait for.
    times = dict(zip(("forward", "backward", "weight"), costs, strict=True))
    for p, m in ((2, 6), (4, 12)):
        sizes = {"schedule": schedule, "stages": p, "microbatches": m, **times}
        one = Pipeline.parse(sizes)
        assert bubble_time(**sizes) == one.simulate()[0] * one.busy, sizes


def test_grids_of_schedules_that_overlap_or_turn_back():
    turned = Pipeline.parse({"schedule": "zb-v", "stages": 2, "microbatches": 3})
    assert turned.grid().splitlines() == [
        "rank 0 | F0a F1a F2a F0b B0b W0b F1b B1b W1b "
        "B0a W0a F2b B2b W2b B1a W1a B2a W2a .",
        "rank 1 | .   F0a F0b F1a F1b B0b W0b F2a B0a "
        "W0a F2b B1b W1b B1a B2b B2a W1a W2b W2a",
    ]
    both = Pipeline.parse({"schedule": "dualpipe", "stages": 2, "microbatches": 4})
    assert both.grid().splitlines()[0].startswith("rank 0 | F0a F2b")


def test_grid_is_the_schedule():
    assert Pipeline("1f1b", 2, 2).grid().splitlines() == [
        "rank 0 | F0 F1 .  B0 .  B1",
        "rank 1 | .  F0 B0 F1 B1 .",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stages": 0}, "stages: got 0, expected at least 1"),
        ({"microbatches": -1}, "microbatches: got -1"),
        ({"schedule": "zb"}, "unknown schedule: got 'zb'"),
        ({"virtual_stages": 2}, "virtual_stages: got 2 for 1f1b, expected 1"),
        ({"schedule": "interleaved", "stages": 3}, "expected a multiple of 3"),
        ({"schedule": "zb-interleaved", "stages": 3}, "expected a multiple of 3"),
        ({"schedule": "zb-h2", "microbatches": 6}, "at least 2 p - 1 = 7 for zb-h2"),
        ({"schedule": "zb-v", "microbatches": 6}, "at least 2 p - 1 = 7 for zb-v"),
        ({"schedule": "dualpipe", "microbatches": 7}, "at least 2 p = 8 for dualpipe"),
        (
            {"schedule": "dualpipe", "microbatches": 9},
            "microbatches: got 9, expected an",
        ),
        ({"schedule": "dualpipe", "stages": 3}, "stages: got 3, expected an even"),
        ({"schedule": "zb-v", "forward": 1.5}, "forward: got 1.5, expected a whole"),
        ({"microbatches": 100_000}, "expected at most 20,000"),
    ],
)
def test_a_pipeline_that_cannot_be_is_named(change, message):
    given = {"schedule": "1f1b", "stages": 4, "microbatches": 8}
    with pytest.raises(EstimateError, match=message):
        Pipeline.parse(given | change).grid()
