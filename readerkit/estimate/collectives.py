"""One collective: bytes, steps, time, and the bandwidths that nccl-tests prints.

A size is nccl-tests' size: the whole tensor (what an all-gather ends with, what a
reduce-scatter starts from). Bytes are those that one rank sends; it receives as many.
A bandwidth is per GPU and per direction.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from readerkit.errors import EstimateError
from readerkit.estimate.closed_form import ClosedForm, checked
from readerkit.estimate.quantity import Number, divide, log2ceil, minimum

OPERATIONS = (
    "all-reduce",
    "reduce-scatter",
    "all-gather",
    "broadcast",
    "reduce",
    "all-to-all",
    "send-recv",
    "gather",
    "scatter",
    "hypercube",
)
"""All that nccl-tests times; its hypercube is an all-gather in log2 n exchanges."""
CUT = ("reduce-scatter", "all-gather", "all-to-all", "gather", "scatter", "hypercube")
"""Those of which a rank keeps its own part."""
ALGORITHMS = ("ring", "tree", "hierarchical", "naive")
HIERARCHICAL = ("all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast")
NCCL_TESTS = "NVIDIA/nccl-tests: doc/PERFORMANCE.md"
NCCL_TESTS_OF = {
    each: f"NVIDIA/nccl-tests: src/{each.replace('-', '')}.cu"
    for each in ("send-recv", "gather", "scatter", "hypercube")
}
"""Where the page on performance has no factor."""
OF_ROOT = {
    "gather": "received by the root; every other rank sends 1/n of the size",
    "scatter": "sent by the root; every other rank receives 1/n of the size",
}
NCCL_TUNING = "NVIDIA/nccl: src/graph/tuning.cc"
RANKS = "ranks of a node"
ALPHA_BETA = "alpha-beta model: steps × latency + bytes / bandwidth"


@checked(operation=OPERATIONS)
def bus_factor(*, operation: str, ranks: int) -> Number:
    """Return busbw / algbw: how often a link carries each byte at the optimum.

    Source: NVIDIA/nccl-tests: doc/PERFORMANCE.md, and its programs. A hypercube's
    algbw is of the (n - 1)/n alone that a rank lacks, so that its factor is 1.
    """
    if operation == "all-reduce":
        return divide(2 * (ranks - 1), ranks)
    if operation == "hypercube":
        return 1
    return divide(ranks - 1, ranks) if operation in CUT else 1


@checked(zero="size_bytes", operation=OPERATIONS, algorithm=ALGORITHMS)
def collective_bytes(
    *, operation: str, size_bytes: Number, ranks: int, algorithm: str = "ring"
) -> Number:
    """Return the bytes that the busiest rank sends, or receives: the root of a gather.

    Naively everyone sends everything to everyone. In a double binary tree a rank is
    inside one tree and a leaf of the other: half the size up in each, and half the size
    down to each of two children, whatever the number of ranks.
    """
    _check_algorithm(operation, algorithm, ranks)
    size, n = size_bytes, ranks
    is_ring = algorithm == "ring" and operation in {"all-reduce", *CUT}
    # Everything to everyone, or nobody to send to, which the ring's formulas say too.
    if algorithm == "naive" or (n == 1 and not is_ring):
        return size * (n - 1)
    if algorithm == "tree":
        # Of two ranks each is a leaf once; a broadcast only goes down.
        once = n == 2 or operation != "all-reduce"
        return divide(size if once else 2 * size)
    if operation == "all-reduce":
        return divide(2 * (n - 1) * size, n)
    return divide((n - 1) * size, n) if operation in CUT else divide(size)


_all_reduce = partial(collective_bytes, operation="all-reduce")
ring_all_reduce_bytes = _all_reduce
naive_all_reduce_bytes = partial(_all_reduce, algorithm="naive")
tree_all_reduce_bytes = partial(_all_reduce, algorithm="tree")
ring_all_gather_bytes = partial(collective_bytes, operation="all-gather")
ring_reduce_scatter_bytes = partial(collective_bytes, operation="reduce-scatter")
all_to_all_bytes = partial(collective_bytes, operation="all-to-all")


@checked(zero="size_bytes", operation=HIERARCHICAL)
def hierarchical_bytes(
    *, operation: str, size_bytes: Number, nodes: int, ranks_per_node: int
) -> dict[str, Number]:
    """Return what the busiest rank sends inside its node, and between nodes.

    An all-reduce is a reduce-scatter in the node, an all-reduce of that shard between
    nodes, and an all-gather in the node; a reduce-scatter or an all-gather is half of
    it. An all-to-all sends twice: to its peers in the node on behalf of other nodes,
    then on. A broadcast crosses nodes once, then fills them.
    """
    size, k, g = size_bytes, nodes, ranks_per_node
    if operation == "broadcast":
        inside, between = minimum(1, g - 1), minimum(1, k - 1)
        return {"inside": size * inside, "between": size * between}
    ways, shards = (2 if operation == "all-reduce" else 1), k * g
    return {
        "inside": divide(ways * (g - 1) * size, g),
        "between": divide(
            ways * (k - 1) * size, k if operation == "all-to-all" else shards
        ),
    }


@checked(operation=OPERATIONS)
def ring_steps(*, operation: str, ranks: int) -> Number:
    """Return the rounds of a ring: 2 (n - 1) for an all-reduce, n - 1 for others.

    A root takes or gives n - 1 messages; a hypercube doubles what it has log2 n times.
    """
    if operation == "send-recv":
        return minimum(1, ranks - 1)
    if operation == "hypercube":
        return log2ceil(ranks)
    return (2 if operation == "all-reduce" else 1) * (ranks - 1)


@checked()
def tree_steps(
    *, nodes: int, ranks_per_node: int = 1, operation: str = "all-reduce"
) -> Number:
    """Return the hops of NCCL's tree, up and down: a chain in the node, a tree between.

    A broadcast or a reduce goes one way.

    Source: NVIDIA/nccl: src/graph/tuning.cc, where the tree's latency is
    2 ((ranks per node - 1) intra + log2(nodes) inter); it rounds the logarithm down,
    the depth of the tree is the logarithm rounded up. Equal for powers of two.
    """
    ways = 2 if operation == "all-reduce" else 1
    return ways * (ranks_per_node - 1 + log2ceil(nodes))


@checked(operation=OPERATIONS, algorithm=ALGORITHMS)
def collective_steps(*, operation: str, ranks: int, algorithm: str = "ring") -> Number:
    """Return the rounds of a collective, one after another."""
    _check_algorithm(operation, algorithm, ranks)
    if algorithm == "tree":
        return tree_steps(nodes=ranks, operation=operation)
    if algorithm == "ring":
        return ring_steps(operation=operation, ranks=ranks)
    return minimum(1, ranks - 1)


@checked(zero="latency_s size_bytes")
def collective_seconds(
    *,
    operation: str = "all-reduce",
    size_bytes: Number,
    ranks: int,
    bandwidth_bytes_per_s: Number,
    latency_s: Number = 0,
    algorithm: str = "ring",
) -> Number:
    """Return steps × latency + bytes / bandwidth, on links that are all alike."""
    how: Any = {"operation": operation, "ranks": ranks, "algorithm": algorithm}
    sent = collective_bytes(size_bytes=size_bytes, **how)
    return collective_steps(**how) * latency_s + divide(sent, bandwidth_bytes_per_s)


algorithm_bandwidth = ClosedForm("size_bytes / seconds")
"""algbw in bytes/s."""


def bus_bandwidth(
    *, operation: str, size_bytes: Number, ranks: int, seconds: Number
) -> Number:
    """Return busbw in bytes/s: algbw × factor, which a link's bandwidth bounds."""
    algbw: Number = algorithm_bandwidth(size_bytes=size_bytes, seconds=seconds)
    return algbw * bus_factor(operation=operation, ranks=ranks)


tree_ring_crossover_bytes = ClosedForm(
    "latency_s × bandwidth_bytes_per_s × ranks × max(0, ranks - 1 - log2ceil(ranks))",
    whole="ranks",
    zero="latency_s",
)
"""The all-reduce size where tree and ring take the same time; 0: none.

Ring 2 (n-1) a + 2 (n-1)/n S/B, tree 2 ceil(log2 n) a + 2 S/B: equal at
S = a B n (n - 1 - ceil(log2 n)). Below it the tree is faster.
"""


def _check_algorithm(operation: str, algorithm: str, ranks: int) -> None:
    if operation == "hypercube" and int(ranks) & (int(ranks) - 1):
        raise EstimateError(
            f"ranks: got {ranks} for hypercube, expected a power of 2: it pairs each "
            "rank with the one that differs in a bit"
        )
    trees = ("all-reduce", "broadcast", "reduce")
    if algorithm == "tree" and operation not in trees:
        raise EstimateError(
            f"algorithm: got tree for {operation}, expected ring (a tree sums or "
            f"spreads whole tensors: {', '.join(trees)})"
        )
    if algorithm == "naive" and operation != "all-reduce":
        others = "ring or tree" if operation in trees else "ring"
        raise EstimateError(f"algorithm: got naive for {operation}, expected {others}")
    if algorithm == "hierarchical":
        raise EstimateError("algorithm: hierarchical needs nodes and ranks_per_node")
