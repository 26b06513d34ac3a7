"""Schedules against drawn tables, torch's own orders and closed formulas."""

import os
import re
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from itertools import product

import pytest
from torch.distributed.pipelining import schedules as torch_schedules

from mini_impls import schedules, timeline
from mini_impls.demos import schedules as demo
from mini_impls.schedules import (
    Step,
    get_orders,
    get_pp_rank_microbatches,
    get_schedule_table,
)
from mini_impls.timeline import (
    Transfer,
    add_send_recv,
    draw,
    get_bubble,
    get_peak_in_flight,
    get_timeline,
)
from readerkit.estimate.zero_bubble import zb_interleaved
from readerkit.model.expression import evaluate

# Drawn by hand from the papers: GPipe figure 2c (with the backwards in the order in
# which torch and Megatron take them) and Narayanan 2021 figures 3 and 4, at unit costs.
DRAWN = [
    (
        ("gpipe", 2, 3, 1, 1),
        """
        rank 0 | F0 F1 F2 .  .  B0 B1 B2
        rank 1 | .  F0 F1 F2 B0 B1 B2 .
        """,
    ),
    (
        ("gpipe", 4, 4, 1, 1),
        """
        rank 0 | F0 F1 F2 F3 .  .  .  .  .  .  B0 B1 B2 B3
        rank 1 | .  F0 F1 F2 F3 .  .  .  .  B0 B1 B2 B3 .
        rank 2 | .  .  F0 F1 F2 F3 .  .  B0 B1 B2 B3 .  .
        rank 3 | .  .  .  F0 F1 F2 F3 B0 B1 B2 B3 .  .  .
        """,
    ),
    (
        ("1f1b", 1, 2, 1, 1),
        """
        rank 0 | F0 B0 F1 B1
        """,
    ),
    (
        ("1f1b", 2, 3, 1, 1),
        """
        rank 0 | F0 F1 .  B0 F2 B1 .  B2
        rank 1 | .  F0 B0 F1 B1 F2 B2 .
        """,
    ),
    (
        ("1f1b", 2, 3, 1, 2),
        """
        rank 0 | F0 F1 .  .  B0 B0 F2 B1 B1 .  B2 B2
        rank 1 | .  F0 B0 B0 F1 B1 B1 F2 B2 B2 .  .
        """,
    ),
    (
        ("1f1b", 4, 4, 1, 1),
        """
        rank 0 | F0 F1 F2 F3 .  .  .  B0 .  B1 .  B2 .  B3
        rank 1 | .  F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3 .
        rank 2 | .  .  F0 F1 .  B0 F2 B1 F3 B2 .  B3 .  .
        rank 3 | .  .  .  F0 B0 F1 B1 F2 B2 F3 B3 .  .  .
        """,
    ),
    (
        ("1f1b", 4, 2, 1, 1),  # fewer microbatches than ranks: all but the last warm up
        """
        rank 0 | F0 F1 .  .  .  .  .  B0 .  B1
        rank 1 | .  F0 F1 .  .  .  B0 .  B1 .
        rank 2 | .  .  F0 F1 .  B0 .  B1 .  .
        rank 3 | .  .  .  F0 B0 F1 B1 .  .  .
        """,
    ),
    (
        ("interleaved", 2, 2, 2, 1),
        """
        rank 0 | F0a F1a F0b F1b .   B0b .   B1b B0a B1a
        rank 1 | .   F0a F1a F0b B0b F1b B1b B0a B1a .
        """,
    ),
    (
        ("interleaved", 1, 1, 2, 1),  # one rank has chunks too, and names them
        """
        rank 0 | F0a F0b B0b B0a
        """,
    ),
    (
        ("interleaved", 2, 4, 2, 1),
        """
        rank 0 | F0a F1a F0b F1b F2a B0b F3a B1b F2b B0a F3b B1a .   B2b .   B3b B2a B3a
        rank 1 | .   F0a F1a F0b B0b F1b B1b F2a B0a F3a B1a F2b B2b F3b B3b B2a B3a .
        """,
    ),
    (
        ("zb-h1", 2, 3, 1, 1),
        """
        rank 0 | F0 F1 .  B0 W0 F2 B1 W1 B2 W2
        rank 1 | .  F0 B0 F1 B1 W0 F2 B2 W1 W2
        """,
    ),
    (
        ("zb-h1", 4, 4, 1, 1),
        """
        rank 0 | F0 F1 F2 F3 .  .  .  B0 W0 B1 W1 B2 W2 B3 W3
        rank 1 | .  F0 F1 F2 .  .  B0 F3 B1 W0 B2 W1 B3 W2 W3
        rank 2 | .  .  F0 F1 .  B0 F2 B1 F3 B2 W0 B3 W1 W2 W3
        rank 3 | .  .  .  F0 B0 F1 B1 F2 B2 F3 B3 W0 W1 W2 W3
        """,
    ),
]

SIZES = [
    *(("zb-h1", p, m, 1) for p, m in product(range(1, 6), range(1, 9))),
    *(("gpipe", p, m, 1) for p, m in product(range(1, 6), range(1, 9))),
    *(("1f1b", p, m, 1) for p, m in product(range(1, 6), range(1, 9))),
    *(
        ("interleaved", p, p * groups, v)
        for p, groups, v in product(range(1, 6), range(1, 4), range(1, 5))
    ),
]


@pytest.mark.parametrize(("case", "drawn"), DRAWN, ids=lambda x: "-".join(map(str, x)))
def test_schedule_equals_the_drawn_table(case, drawn):
    name, world_size, num_microbatches, num_model_chunks, backward_cost = case
    orders = get_orders(name, world_size, num_microbatches, num_model_chunks)
    timeline = get_timeline(orders, backward_cost=backward_cost)
    expected = [line.strip() for line in drawn.strip().splitlines()]
    assert draw(timeline, world_size).splitlines() == expected


def test_docstrings_draw_what_is_yielded():
    for name, function in (
        ("gpipe", schedules.gpipe),
        ("1f1b", schedules.one_f_one_b),
        ("interleaved", schedules.interleaved),
        ("zb-h1", schedules.zb_h1),
    ):
        size = (2, 2, 2) if name == "interleaved" else (2, 3)
        picture = draw(get_timeline(get_orders(name, *size)), 2)
        lines = [line.strip() for line in (function.__doc__ or "").splitlines()]
        assert [x for x in lines if x.startswith("rank")] == picture.splitlines()


def test_every_rank_runs_every_step_once_and_forward_first():
    for case in SIZES:
        name, world_size, num_microbatches, num_model_chunks = case
        for rank, order in enumerate(get_orders(*case)):
            expected = {
                Step(kind, microbatch_id, chunk * world_size + rank)
                for kind in ("F", "B", "W")[: 3 if name == "zb-h1" else 2]
                for microbatch_id in range(num_microbatches)
                for chunk in range(num_model_chunks)
            }
            assert len(order) == len(expected), case
            assert set(order) == expected, case


def test_schedule_table_is_the_one_upstream_explains():
    table = get_schedule_table(5, 2, 3)
    assert [microbatch_id for microbatch_id, _ in table] == [
        0,
        1,
        2,
        0,
        1,
        2,
        3,
        4,
        3,
        4,
    ]
    assert [chunk for _, chunk in table] == [0, 0, 0, 1, 1, 1, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        # (m, v, group, p, rank) -> (total, all in warm-up, warm-up, remaining)
        ((8, 1, 1, 4, 0), (8, False, 3, 5)),
        ((8, 1, 1, 4, 3), (8, False, 0, 8)),
        ((2, 1, 1, 4, 0), (2, True, 2, 0)),
        ((8, 2, 4, 4, 0), (16, False, 10, 6)),
        ((8, 2, 4, 4, 3), (16, False, 4, 12)),
        ((4, 2, 4, 4, 0), (8, True, 8, 0)),
    ],
)
def test_warmup_counts(sizes, expected):
    *counts, world_size, rank = sizes
    got = get_pp_rank_microbatches(
        *counts, pipeline_parallel_size=world_size, pipeline_parallel_rank=rank
    )
    assert got == expected


def torch_order(name, world_size, num_microbatches, num_model_chunks, rank):
    """Compute steps of torch's schedule, without a process group."""
    if name in ("interleaved", "zb-h1", "zb-interleaved"):
        by_name = {
            "interleaved": torch_schedules.ScheduleInterleaved1F1B,
            "zb-h1": torch_schedules.ScheduleInterleavedZeroBubble,
            "zb-interleaved": torch_schedules.ScheduleInterleavedZeroBubble,
        }
        made = object.__new__(by_name[name])
        made.pp_group_size, made.n_local_stages = world_size, num_model_chunks
        made._n_microbatches = num_microbatches
        made.microbatches_per_round = world_size
        actions = made._calculate_single_rank_operations(rank)
    else:
        by_name = {
            "gpipe": torch_schedules.ScheduleGPipe,
            "1f1b": torch_schedules.Schedule1F1B,
        }
        made = object.__new__(by_name[name])
        made._num_stages, made._n_microbatches = world_size, num_microbatches
        actions = made._get_pipeline_order()[rank]
    kinds = {
        torch_schedules.F: "F",
        torch_schedules.FULL_BACKWARD: "B",
        torch_schedules.I: "B",
        torch_schedules.W: "W",
    }
    return [
        Step(kinds[a.computation_type], a.microbatch_index, a.stage_index)
        for a in actions
        if a is not None and a.computation_type in kinds
    ]


def test_orders_are_torchs():
    for case in SIZES:
        name, world_size, num_microbatches, num_model_chunks = case
        if name == "1f1b" and num_microbatches < world_size:
            continue  # torch refuses; Megatron, and this file, shorten the warm-up
        if name == "interleaved" and num_model_chunks == 1:
            continue  # plain 1F1B here; torch warms up twice as long all the same
        for rank, order in enumerate(get_orders(*case)):
            if name == "1f1b" and rank == world_size - 1:
                continue  # torch's table (not its run) counts from microbatch 1 there
            assert order == torch_order(*case, rank), (case, rank)


def test_an_order_that_estimates_run_is_torchs():
    for p, rounds, v in product((1, 2, 3, 4), (1, 2, 3), (1, 2, 3)):
        for rank in range(p):
            order = list(zb_interleaved(rank, p, p * rounds, v))
            assert order == torch_order("zb-interleaved", p, p * rounds, v, rank)


@pytest.mark.parametrize("backward_cost", [1, 2, 3])
def test_bubble_from_dependencies_equals_the_formula(backward_cost):
    for case in SIZES:
        name, world_size, num_microbatches, num_model_chunks = case
        if name == "zb-h1":
            continue
        timeline = get_timeline(get_orders(*case), backward_cost=backward_cost)
        of_ideal, of_total = get_bubble(timeline, world_size)
        ideal = Fraction(world_size - 1, num_model_chunks * num_microbatches)
        assert of_ideal == ideal, case
        assert of_total == ideal / (1 + ideal), case


@pytest.mark.parametrize("costs", [(1, 1, 1), (2, 2, 1), (1, 2, 1), (2, 3, 2)])
def test_split_backward_fills_the_bubble_with_weight_gradients(costs):
    forward, backward, weight = costs
    for name, p, m, _ in SIZES:
        if name != "zb-h1":
            continue
        timeline = get_timeline(get_orders(name, p, m), *costs)
        busy = m * sum(costs)
        # Qi et al. 2401.10241: (p - 1)(F + B - W); below p microbatches less is filled.
        idle = (p - 1) * (forward + backward) - (min(m, p) - 1) * weight
        assert max(end for _, end in timeline.values()) - busy == idle, (p, m)
        assert get_bubble(timeline, p) == (
            Fraction(idle, busy),
            Fraction(idle, busy + idle),
        )


def test_weight_gradients_wait_for_their_own_backward_and_send_nothing():
    orders = get_orders("zb-h1", 3, 5)
    timeline = get_timeline(orders)
    for step, (start, _) in timeline.items():
        if step.kind == "W":
            own = Step("B", step.microbatch_id, step.stage)
            assert timeline[own][1] <= start
    sent = {
        transfer.made_by.kind
        for plan in add_send_recv(orders)
        for item in plan
        if isinstance(item, tuple)
        for transfer in item
    }
    assert sent == {"F", "B"}


def test_peak_in_flight_equals_the_formula():
    for case in SIZES:
        name, p, m, v = case
        for rank, order in enumerate(get_orders(*case)):
            if name == "gpipe":
                expected = m
            elif name == "zb-h1":
                expected = min(m, p)
            elif name == "1f1b" or v == 1:
                expected = min(m, p - rank)
            else:
                expected = min(m * v, 2 * (p - rank - 1) + (v - 1) * p + 1)
            assert get_peak_in_flight(order) == expected, (case, rank)


def run_rendezvous(plans):
    """Run plans whose sends wait for their receives; return who never ends, and where.

    A rank posts a whole exchange and waits for all of it. The n-th send to a peer meets
    that peer's n-th receive; what it carries must be what the receiver expects.
    """
    at, waiting = [0] * len(plans), [0] * len(plans)
    posted = {}  # (source, destination, end) -> ranks that wait, with what
    moved = True
    while moved:
        moved = False
        for rank, plan in enumerate(plans):
            if waiting[rank] or at[rank] == len(plan):
                continue
            item = plan[at[rank]]
            at[rank], moved = at[rank] + 1, True
            for transfer in item if isinstance(item, tuple) else ():
                pair = (rank, transfer.peer)
                if transfer.action == "recv":
                    pair = pair[::-1]
                posted.setdefault((pair, transfer.action), []).append(transfer.made_by)
                waiting[rank] += 1
        for (pair, action), made in posted.items():
            other = posted.get((pair, "recv"), [])
            while action == "send" and made and other:
                assert made.pop(0) == other.pop(0)
                waiting[pair[0]] -= 1
                waiting[pair[1]] -= 1
                moved = True
    return {
        rank: plan[at[rank] - 1] for rank, plan in enumerate(plans) if waiting[rank]
    }


def one_at_a_time(plans):
    return [
        [
            piece
            for item in plan
            for piece in ([(t,) for t in item] if isinstance(item, tuple) else [item])
        ]
        for plan in plans
    ]


def test_sends_never_deadlock_even_when_each_waits_for_its_receive():
    for case in SIZES:
        plans = add_send_recv(get_orders(*case))
        assert run_rendezvous(plans) == {}, case
        assert run_rendezvous(one_at_a_time(plans)) == {}, case


def test_the_simulation_sees_a_deadlock():
    plans = add_send_recv(get_orders("1f1b", 2, 4))
    swapped = [
        [item[::-1] if isinstance(item, tuple) else item for item in plan]
        for plan in plans
    ]
    assert run_rendezvous(swapped) == {}  # one exchange: its own order is free
    assert set(run_rendezvous(one_at_a_time(swapped))) == {0, 1}


def test_every_boundary_is_crossed_once_each_way():
    for case in SIZES:
        _, world_size, num_microbatches, num_model_chunks = case
        transfers = [
            (rank, transfer)
            for rank, plan in enumerate(add_send_recv(get_orders(*case)))
            for item in plan
            if isinstance(item, tuple)
            for transfer in item
        ]
        boundaries = world_size * num_model_chunks - 1 if world_size > 1 else 0
        counted = Counter(transfer.action for _, transfer in transfers)
        assert counted["send"] == counted["recv"] == 2 * num_microbatches * boundaries
        for rank, transfer in transfers:
            maker = transfer.made_by.stage % world_size
            assert maker == (rank if transfer.action == "send" else transfer.peer)
        assert len({t.made_by for _, t in transfers}) == counted["send"]


def test_inputs_arrive_before_the_step_and_results_leave_after_it():
    for case in SIZES:
        orders = get_orders(*case)
        num_stages = case[1] * case[3]
        for rank, plan in enumerate(add_send_recv(orders)):
            assert [x for x in plan if isinstance(x, Step)] == orders[rank]
            seen = set()
            for item in plan:
                for transfer in item if isinstance(item, tuple) else ():
                    assert (transfer.action == "recv") == (transfer.made_by not in seen)
                    seen.add(transfer.made_by)
                if isinstance(item, Step):
                    assert seen.issuperset(timeline.get_inputs(item, num_stages))
                    seen.add(item)


def test_steady_state_is_one_paired_exchange():
    """What Megatron calls send_forward_recv_backward: both are posted, then awaited."""
    plan = add_send_recv(get_orders("1f1b", 2, 3))[0]
    assert plan == [
        Step("F", 0, 0),
        (Transfer("send", Step("F", 0, 0), 1),),
        Step("F", 1, 0),
        (
            Transfer("send", Step("F", 1, 0), 1),
            Transfer("recv", Step("B", 0, 1), 1),
        ),
        Step("B", 0, 0),
        Step("F", 2, 0),
        (
            Transfer("send", Step("F", 2, 0), 1),
            Transfer("recv", Step("B", 1, 1), 1),
        ),
        Step("B", 1, 0),
        (Transfer("recv", Step("B", 2, 1), 1),),
        Step("B", 2, 0),
    ]


def test_a_schedule_that_drops_a_step_is_refused():
    orders = get_orders("1f1b", 2, 3)
    orders[1].remove(Step("B", 1, 1))
    with pytest.raises(ValueError, match=r"cannot come: .*microbatch_id=1"):
        get_timeline(orders)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("interleaved", 4, 6, 2), "6 is not a multiple of 4"),
        (("interleaved", 4, 2, 2), "2 is not a multiple of 4"),
        (("1f1b", 2, 4, 2), "1f1b takes 1 chunk a rank, not 2"),
        (("gpipe", 2, 0, 1), r"at least 1: \(2, 0, 1\)"),
        (("zb", 2, 2, 1), "'zb' is none of gpipe, 1f1b, interleaved, zb-h1"),
    ],
)
def test_sizes_that_do_not_fit_are_named(args, message):
    with pytest.raises(ValueError, match=message):
        get_orders(*args)


def test_torch_is_not_imported():
    code = "import sys, mini_impls.timeline; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_command_prints_every_schedule_or_says_why_not(capsys):
    assert demo.main(["--world", "2", "--microbatches", "2"]) == 0
    assert "rank 1 | .   F0a F1a F0b B0b" in capsys.readouterr().out
    assert demo.main(["--world", "2", "--microbatches", "3"]) == 0
    parts = capsys.readouterr().out.strip().split("\n\n")
    assert [part.partition(":")[0] for part in parts] == list(schedules.SCHEDULES)
    assert ["rank 0 | " in part for part in parts] == [True, True, False, True]
    assert "3 is not a multiple of 2" in parts[2]


def test_a_reader_that_has_left_is_no_failure():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "mini_impls.schedules"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("option", "value"),
    [("--backward-cost", "-1"), ("--backward-cost", "0"), ("--chunks", "0")],
)
def test_sizes_and_costs_that_are_not_above_zero_are_one_message(capsys, option, value):
    assert demo.main([option, value]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith(f": {option} {value} is not above 0\n")


def test_more_work_than_can_be_drawn_is_refused(capsys):
    assert demo.main(["--microbatches", "100000000"]) == 2
    err = capsys.readouterr().err
    assert err.endswith(": 800,000,000 forwards are more than 100,000: take fewer\n")
    assert err.count("\n") == 1


@pytest.mark.parametrize("costs", [(0, 1, 1), (1, -1, 1), (1, 1, 0)])
def test_a_step_takes_time(costs):
    with pytest.raises(ValueError, match="a step of no time"):
        get_timeline(get_orders("zb-h1", 2, 2), *costs)


@pytest.mark.parametrize("costs", [(1, 1, 1), (1, 2, 1), (1, 3, 1), (2, 3, 2)])
def test_the_formula_beside_a_bubble_is_the_bubble(costs):
    for case in SIZES:
        bubble, _ = get_bubble(get_timeline(get_orders(*case), *costs), case[1])
        closed, formula = timeline.get_closed_bubble(*case, *costs)
        assert closed == bubble, case
        formula, _, where = formula.partition(", as ")
        is_short = case[0] == "zb-h1" and case[2] < case[1]
        assert where == ("m < p" if is_short else ""), case
        numbers = dict(zip("pmvFBW", (*case[1:], *costs), strict=True))
        product = re.sub(r"(?<=[\w)])(?=\()|(?<=\))(?=\w)", " * ", formula)
        assert evaluate(product, numbers) == float(bubble), case


def test_a_split_backward_holds_as_much_on_every_rank_as_1f1b_on_the_first():
    held = {
        name: list(map(get_peak_in_flight, get_orders(name, 4, 8)))
        for name in ("1f1b", "zb-h1")
    }
    assert held == {"1f1b": [4, 3, 2, 1], "zb-h1": [4, 4, 4, 4]}
