"""Bytes, steps and bandwidths of collectives; each count is also made by simulation."""

import pytest

from readerkit.errors import EstimateError
from readerkit.estimate.collective_estimate import (
    estimate_collective,
    estimate_hierarchical,
)
from readerkit.estimate.collectives import (
    OPERATIONS,
    bus_bandwidth,
    bus_factor,
    collective_bytes,
    collective_seconds,
    hierarchical_bytes,
    ring_steps,
    tree_ring_crossover_bytes,
    tree_steps,
)


@pytest.mark.parametrize("ranks", [1, 2, 3, 8, 64])
def test_factors_are_those_of_nccl_tests(ranks):
    # doc/PERFORMANCE.md, Summary; src/sendrecv.cu, gather.cu, scatter.cu, hypercube.cu.
    n = ranks
    expected = {
        "all-reduce": 2 * (n - 1) / n,
        "reduce-scatter": (n - 1) / n,
        "all-gather": (n - 1) / n,
        "all-to-all": (n - 1) / n,
        "broadcast": 1,
        "reduce": 1,
        "send-recv": 1,
        "gather": (n - 1) / n,
        "scatter": (n - 1) / n,
        "hypercube": 1,
    }
    assert {op: bus_factor(operation=op, ranks=n) for op in OPERATIONS} == expected


def simulated_ring_all_reduce(ranks: int, chunk_bytes: int) -> tuple[list[int], int]:
    """Pass chunks around a ring until every rank has every sum; count what is sent."""
    held = [[{rank} for _ in range(ranks)] for rank in range(ranks)]
    sent, steps = [0] * ranks, 0
    for step in range(2 * (ranks - 1)):
        passing = [(rank, (rank - step) % ranks) for rank in range(ranks)]
        values = [set(held[rank][chunk]) for rank, chunk in passing]
        for (rank, chunk), value in zip(passing, values, strict=True):
            held[(rank + 1) % ranks][chunk] |= value
            sent[rank] += chunk_bytes
        steps += 1
    assert all(chunk == set(range(ranks)) for rank in held for chunk in rank)
    return sent, steps


@pytest.mark.parametrize("ranks", [2, 3, 4, 7, 8])
def test_ring_is_what_a_ring_sends(ranks):
    sent, steps = simulated_ring_all_reduce(ranks, chunk_bytes=100)
    size = 100 * ranks
    for each in sent:
        assert each == collective_bytes(
            operation="all-reduce", size_bytes=size, ranks=ranks
        )
    assert steps == ring_steps(operation="all-reduce", ranks=ranks)


def test_seed_ring_of_8_gpus_and_10_gb_is_17_5_and_not_20():
    estimate = estimate_collective(
        operation="all-reduce", size_bytes=10e9, ranks=8, bandwidth_bytes_per_s=50e9
    )
    assert estimate["sent by each rank"] == 17.5e9
    assert estimate["naive all-reduce"] == 70e9
    assert estimate["less than naive"] == 4
    assert estimate["time"] == 0.35
    assert estimate["busbw"] == pytest.approx(50e9)


@pytest.mark.parametrize(
    ("nodes", "per_node", "hops"),
    [(1, 1, 0), (2, 1, 2), (8, 1, 6), (14, 1, 8), (1, 8, 14), (4, 8, 18), (16, 8, 22)],
)
def test_tree_is_a_chain_in_the_node_and_a_tree_between(nodes, per_node, hops):
    assert tree_steps(nodes=nodes, ranks_per_node=per_node) == hops


@pytest.mark.parametrize("ranks", [4, 8, 64, 1024])
def test_ring_and_tree_take_the_same_time_at_the_crossover(ranks):
    links = {"ranks": ranks, "bandwidth_bytes_per_s": 50e9, "latency_s": 5e-6}
    size = tree_ring_crossover_bytes(**links)
    assert size == pytest.approx(
        5e-6 * 50e9 * ranks * (ranks - 1 - (ranks.bit_length() - 1))
    )

    def seconds(algorithm, factor):
        return collective_seconds(
            size_bytes=size * factor, algorithm=algorithm, **links
        )

    assert seconds("ring", 1) == pytest.approx(seconds("tree", 1))
    assert seconds("tree", 0.5) < seconds("ring", 0.5)
    assert seconds("tree", 2) > seconds("ring", 2)


def test_two_ranks_have_no_crossover():
    links = {"ranks": 2, "bandwidth_bytes_per_s": 1e9, "latency_s": 1e-6}
    assert tree_ring_crossover_bytes(**links) == 0


def test_two_levels_send_a_node_th_between_nodes():
    levels = {"nodes": 4, "ranks_per_node": 8}

    def sent(operation):
        return hierarchical_bytes(operation=operation, size_bytes=8000, **levels)

    assert sent("all-reduce") == {"inside": 14000, "between": 1500}
    assert sent("all-gather") == {"inside": 7000, "between": 750}
    assert sent("reduce-scatter") == sent("all-gather")
    assert sent("all-to-all") == {"inside": 7000, "between": 6000}
    assert sent("broadcast") == {"inside": 8000, "between": 8000}
    # In sum a reduce-scatter sends what a flat ring does: (n - 1)/n of the size.
    assert sum(sent("all-gather").values()) == 8000 * 31 / 32
    estimate = estimate_hierarchical(
        size_bytes=8000,
        nodes=4,
        ranks_per_node=8,
        inside_bytes_per_s=1000,
        between_bytes_per_s=100,
        inside_latency_s=0.5,
        between_latency_s=1,
    )
    assert estimate["time"] == 14 * 0.5 + 6 * 1 + 14 + 15


def test_a_tree_spreads_in_as_many_hops_as_it_is_deep():
    one = {"operation": "broadcast", "ranks": 8, "size_bytes": 800}
    assert collective_bytes(**one, algorithm="tree") == 800
    assert collective_seconds(
        **one, algorithm="tree", bandwidth_bytes_per_s=100, latency_s=1
    ) == pytest.approx(3 + 8)


@pytest.mark.parametrize("ranks", [2, 8, 64])
def test_a_hypercube_doubles_what_each_rank_has(ranks):
    held, sent, steps, mask = [{rank} for rank in range(ranks)], 0, 0, 1
    while mask < ranks:
        sent, steps = sent + 100 * len(held[0]), steps + 1
        held = [held[rank] | held[rank ^ mask] for rank in range(ranks)]
        mask *= 2
    assert all(each == set(range(ranks)) for each in held)
    one = estimate_collective(
        operation="hypercube",
        size_bytes=100 * ranks,
        ranks=ranks,
        bandwidth_bytes_per_s=50,
    )
    assert (one["sent by each rank"], one["steps"]) == (sent, steps)
    # Its program counts what a rank lacks, and multiplies by 1.
    assert one["algbw"] == one["busbw"] == 50


def test_one_rank_sends_nothing():
    for operation in OPERATIONS:
        assert collective_bytes(operation=operation, size_bytes=10, ranks=1) == 0


def test_one_rank_has_the_ring_formula():
    one, eight = (
        estimate_collective(operation="all-reduce", size_bytes=10, ranks=ranks)
        for ranks in (1, 8)
    )
    assert one.items[0].formula == eight.items[0].formula


def test_busbw_of_a_measured_time():
    # nccl-tests' own columns: 128 MiB over 8 GPUs in 1 ms.
    busbw = bus_bandwidth(
        operation="all-reduce", size_bytes=134217728, ranks=8, seconds=1e-3
    )
    assert busbw == pytest.approx(134.217728e9 * 1.75)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ranks": 0}, "ranks: got 0, expected at least 1"),
        ({"size_bytes": -1}, "size_bytes: got -1, expected zero or more"),
        ({"size_bytes": float("nan")}, "size_bytes: got nan"),
        ({"operation": "allreduce"}, "got 'allreduce', expected .*all-reduce"),
        ({"algorithm": "trees"}, "unknown algorithm: got 'trees', expected .*tree"),
        (
            {"operation": "hypercube", "ranks": 6},
            "ranks: got 6 for hypercube, expected a power of 2",
        ),
        (
            {"algorithm": "tree", "operation": "all-gather"},
            "algorithm: got tree for all-gather, expected ring",
        ),
        (
            {"algorithm": "naive", "operation": "all-to-all"},
            "algorithm: got naive for all-to-all, expected ring$",
        ),
    ],
)
def test_a_collective_that_cannot_be_is_named(change, message):
    given = {"operation": "all-reduce", "size_bytes": 8, "ranks": 2}
    with pytest.raises(EstimateError, match=message):
        collective_bytes(**given | change)
