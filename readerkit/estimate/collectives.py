"""One collective: bytes, steps, time, and the bandwidths that nccl-tests prints.

A size is nccl-tests' size: the whole tensor (what an all-gather ends with, what a
reduce-scatter starts from). Bytes are those that one rank sends; it receives as many.
A bandwidth is per GPU and per direction.
"""

from __future__ import annotations

from typing import Any

from readerkit.errors import EstimateError
from readerkit.estimate.checks import check_amount, check_choice, check_count
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.quantity import (
    Number,
    Quantity,
    divide,
    log2ceil,
    maximum,
    minimum,
)

OPERATIONS = (
    "all-reduce",
    "reduce-scatter",
    "all-gather",
    "broadcast",
    "reduce",
    "all-to-all",
    "send-recv",
)
ALGORITHMS = ("ring", "tree", "hierarchical", "naive")
HIERARCHICAL = ("all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast")
NCCL_TESTS = "NVIDIA/nccl-tests: doc/PERFORMANCE.md"
NCCL_TUNING = "NVIDIA/nccl: src/graph/tuning.cc"
ALPHA_BETA = "alpha-beta model: steps × latency + bytes / bandwidth"


def bus_factor(*, operation: str, ranks: int) -> Number:
    """Return busbw / algbw: how often a link carries each byte at the optimum.

    Source: NVIDIA/nccl-tests: doc/PERFORMANCE.md.
    """
    check_choice("operation", operation, OPERATIONS)
    n = check_count("ranks", ranks)
    if operation == "all-reduce":
        return divide(2 * (n - 1), n)
    if operation in ("reduce-scatter", "all-gather", "all-to-all"):
        return divide(n - 1, n)
    return 1


def ring_all_reduce_bytes(*, size_bytes: Number, ranks: int) -> Number:
    """Return 2 (n - 1) / n × size: a reduce-scatter, then an all-gather."""
    return collective_bytes(operation="all-reduce", size_bytes=size_bytes, ranks=ranks)


def ring_all_gather_bytes(*, size_bytes: Number, ranks: int) -> Number:
    """Return (n - 1) / n × size, the size being the whole result."""
    return collective_bytes(operation="all-gather", size_bytes=size_bytes, ranks=ranks)


def ring_reduce_scatter_bytes(*, size_bytes: Number, ranks: int) -> Number:
    """Return (n - 1) / n × size, the size being the whole input."""
    return collective_bytes(
        operation="reduce-scatter", size_bytes=size_bytes, ranks=ranks
    )


def all_to_all_bytes(*, size_bytes: Number, ranks: int) -> Number:
    """Return (n - 1) / n × size: all but the part that stays."""
    return collective_bytes(operation="all-to-all", size_bytes=size_bytes, ranks=ranks)


def naive_all_reduce_bytes(*, size_bytes: Number, ranks: int) -> Number:
    """Return (n - 1) × size: everyone sends everything to everyone."""
    return collective_bytes(
        operation="all-reduce", size_bytes=size_bytes, ranks=ranks, algorithm="naive"
    )


def tree_all_reduce_bytes(*, size_bytes: Number, ranks: int) -> Number:
    """Return 2 × size, whatever the number of ranks.

    In a double binary tree a rank is inside one tree and a leaf of the other: half the
    size up in each, and half the size down to each of two children.
    """
    return collective_bytes(
        operation="all-reduce", size_bytes=size_bytes, ranks=ranks, algorithm="tree"
    )


def collective_bytes(
    *, operation: str, size_bytes: Number, ranks: int, algorithm: str = "ring"
) -> Number:
    """Return the bytes that the busiest rank sends."""
    check_choice("operation", operation, OPERATIONS)
    _check_algorithm(operation, algorithm)
    size = check_amount("size_bytes", size_bytes, zero=True)
    n = check_count("ranks", ranks)
    if n == 1 or algorithm == "naive":  # nobody to send to, or everything to everyone
        return size * (n - 1)
    if algorithm == "tree":
        # Of two ranks each is a leaf once; a broadcast only goes down.
        once = n == 2 or operation != "all-reduce"
        return divide(size if once else 2 * size)
    if operation == "all-reduce":
        return divide(2 * (n - 1) * size, n)
    if operation in ("reduce-scatter", "all-gather", "all-to-all"):
        return divide((n - 1) * size, n)
    return divide(size)


def hierarchical_bytes(
    *, operation: str, size_bytes: Number, nodes: int, ranks_per_node: int
) -> dict[str, Number]:
    """Return what the busiest rank sends inside its node, and between nodes.

    An all-reduce is a reduce-scatter in the node, an all-reduce of that shard between
    nodes, and an all-gather in the node; a reduce-scatter or an all-gather is half of
    it. An all-to-all sends twice: to its peers in the node on behalf of other nodes,
    then on. A broadcast crosses nodes once, then fills them.
    """
    check_choice("operation", operation, HIERARCHICAL)
    size = check_amount("size_bytes", size_bytes, zero=True)
    k, g = check_count("nodes", nodes), check_count("ranks_per_node", ranks_per_node)
    if operation == "broadcast":
        inside, between = minimum(1, g - 1), minimum(1, k - 1)
        return {"inside": size * inside, "between": size * between}
    if operation == "all-to-all":
        return {
            "inside": divide((g - 1) * size, g),
            "between": divide((k - 1) * size, k),
        }
    twice = 2 if operation == "all-reduce" else 1
    return {
        "inside": divide(twice * (g - 1) * size, g),
        "between": divide(twice * (k - 1) * size, k * g),
    }


def hierarchical_steps(*, operation: str, nodes: int, ranks_per_node: int) -> Number:
    """Return the rounds of both levels, each a ring."""
    check_choice("operation", operation, HIERARCHICAL)
    return sum(
        ring_steps(operation=operation, ranks=ranks)
        for ranks in (ranks_per_node, nodes)
    )


def ring_steps(*, operation: str, ranks: int) -> Number:
    """Return the rounds of a ring: 2 (n - 1) for an all-reduce, n - 1 for others."""
    check_choice("operation", operation, OPERATIONS)
    n = check_count("ranks", ranks)
    if operation == "send-recv":
        return minimum(1, n - 1)
    return (2 if operation == "all-reduce" else 1) * (n - 1)


def tree_steps(
    *, nodes: int, ranks_per_node: int = 1, operation: str = "all-reduce"
) -> Number:
    """Return the hops of NCCL's tree, up and down: a chain in the node, a tree between.

    A broadcast or a reduce goes one way.

    Source: NVIDIA/nccl: src/graph/tuning.cc, where the tree's latency is
    2 ((ranks per node - 1) intra + log2(nodes) inter); it rounds the logarithm down,
    the depth of the tree is the logarithm rounded up. Equal for powers of two.
    """
    k, g = check_count("nodes", nodes), check_count("ranks_per_node", ranks_per_node)
    ways = 2 if operation == "all-reduce" else 1
    return ways * (g - 1 + log2ceil(k))


def collective_steps(*, operation: str, ranks: int, algorithm: str = "ring") -> Number:
    """Return the rounds of a collective, one after another."""
    _check_algorithm(operation, algorithm)
    if algorithm == "tree":
        return tree_steps(nodes=ranks, operation=operation)
    if algorithm == "ring":
        return ring_steps(operation=operation, ranks=ranks)
    return minimum(1, check_count("ranks", ranks) - 1)


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
    sent = collective_bytes(
        operation=operation, size_bytes=size_bytes, ranks=ranks, algorithm=algorithm
    )
    steps = collective_steps(operation=operation, ranks=ranks, algorithm=algorithm)
    bandwidth = check_amount("bandwidth", bandwidth_bytes_per_s)
    latency = check_amount("latency", latency_s, zero=True)
    return steps * latency + divide(sent, bandwidth)


def algorithm_bandwidth(*, size_bytes: Number, seconds: Number) -> Number:
    """Return algbw in bytes/s: size / time."""
    size = check_amount("size_bytes", size_bytes)
    return divide(size, check_amount("seconds", seconds))


def bus_bandwidth(
    *, operation: str, size_bytes: Number, ranks: int, seconds: Number
) -> Number:
    """Return busbw in bytes/s: algbw × factor, which a link's bandwidth bounds."""
    return algorithm_bandwidth(size_bytes=size_bytes, seconds=seconds) * bus_factor(
        operation=operation, ranks=ranks
    )


def tree_ring_crossover_bytes(
    *, ranks: int, bandwidth_bytes_per_s: Number, latency_s: Number
) -> Number:
    """Return the all-reduce size where tree and ring take the same time; 0: none.

    Ring 2 (n-1) a + 2 (n-1)/n S/B, tree 2 ceil(log2 n) a + 2 S/B: equal at
    S = a B n (n - 1 - ceil(log2 n)). Below it the tree is faster.
    """
    n = check_count("ranks", ranks)
    latency = check_amount("latency", latency_s, zero=True)
    bandwidth = check_amount("bandwidth", bandwidth_bytes_per_s)
    return latency * bandwidth * n * maximum(0, n - 1 - log2ceil(n))


def _check_algorithm(operation: str, algorithm: str) -> None:
    check_choice("algorithm", algorithm, ALGORITHMS)
    trees = ("all-reduce", "broadcast", "reduce")
    if algorithm == "tree" and operation not in trees:
        raise EstimateError(
            f"algorithm: got tree for {operation}, expected ring (a tree sums or "
            f"spreads whole tensors: {', '.join(trees)})"
        )
    if algorithm == "naive" and operation != "all-reduce":
        raise EstimateError(
            f"algorithm: got naive for {operation}, expected ring or tree"
        )
    if algorithm == "hierarchical":
        raise EstimateError("algorithm: hierarchical needs nodes and ranks_per_node")


# --- as an estimate -------------------------------------------------------------------


def estimate_collective(
    *,
    operation: str,
    size_bytes: Number,
    ranks: int,
    bandwidth_bytes_per_s: Number,
    latency_s: Number = 0,
    algorithm: str = "ring",
) -> Estimate:
    """Return bytes, steps, time and bandwidths of a collective on equal links."""
    sheet = Worksheet(f"{operation} over {ranks} ranks, {algorithm}")
    size, n, bandwidth = _symbols(size_bytes, ranks, bandwidth_bytes_per_s)
    latency = Quantity.given("a", latency_s, "latency of a step")
    alike = {"operation": operation, "ranks": n, "algorithm": algorithm}
    sent = collective_bytes(size_bytes=size, **alike)
    whole = "size is the whole tensor; as much is received"
    sent = sheet.add("sent by each rank", sent, "bytes", NCCL_TESTS, whole)
    steps, one = collective_steps(**alike), f"{algorithm}, one after another"
    steps = sheet.add("steps", steps, "steps", NCCL_TUNING, one)
    check_amount("bandwidth", bandwidth)
    seconds = steps * check_amount("latency", latency, zero=True)
    seconds += divide(sent, bandwidth)
    link = "bandwidth per GPU and per direction"
    time = sheet.add("time", seconds, "seconds", ALPHA_BETA, link)
    _bandwidths(sheet, operation, size, n, time)
    if operation == "all-reduce":
        naive = naive_all_reduce_bytes(size_bytes=size, ranks=n)
        everyone = "everything to everyone"
        naive = sheet.add("naive all-reduce", naive, "bytes", "a count", everyone)
        if sent:
            less = divide(naive, sent)
            sheet.add("less than naive", less, "times", "a count", "n/2 for a ring")
    if operation == "all-reduce" and latency_s:
        cross = tree_ring_crossover_bytes(
            ranks=n, bandwidth_bytes_per_s=bandwidth, latency_s=latency
        )
        named = "the tree is faster below; one rank a node, the same links for both"
        sheet.add("tree and ring cross at", cross, "bytes", ALPHA_BETA, named)
    return sheet.estimate()


def _symbols(size: Number, ranks: int, bandwidth: Number) -> tuple[Any, Any, Any]:
    return (
        Quantity.given("S", size, "size in bytes"),
        Quantity.given("n", ranks, "ranks"),
        Quantity.given("B", bandwidth, "bandwidth of a link"),
    )


def _bandwidths(
    sheet: Worksheet, operation: str, size: Number, ranks: int, time: Number
) -> None:
    """Write down what nccl-tests prints, of a collective that takes any time."""
    if not (time > 0 and size > 0):
        return
    algbw = algorithm_bandwidth(size_bytes=size, seconds=time)
    named = "nccl-tests' algorithm bandwidth: size over time"
    algbw = sheet.add("algbw", algbw, "bytes/s", NCCL_TESTS, named)
    busbw = algbw * bus_factor(operation=operation, ranks=ranks)
    named = "nccl-tests' bus bandwidth: what a link's bandwidth bounds"
    sheet.add("busbw", busbw, "bytes/s", NCCL_TESTS, named)


def estimate_hierarchical(
    *,
    operation: str = "all-reduce",
    size_bytes: Number,
    nodes: int,
    ranks_per_node: int,
    inside_bytes_per_s: Number,
    between_bytes_per_s: Number,
    inside_latency_s: Number = 0,
    between_latency_s: Number = 0,
) -> Estimate:
    """Return a collective in two levels: inside nodes, and between them."""
    sheet = Worksheet(f"{operation} over {nodes} × {ranks_per_node} ranks")
    source = "a ring on each level, one after the other"
    shape = f"{nodes} nodes of {ranks_per_node} ranks"
    size = Quantity.given("S", size_bytes, "size in bytes")
    k = Quantity.given("k", nodes, "nodes")
    g = Quantity.given("g", ranks_per_node, "ranks of a node")
    both = hierarchical_bytes(
        operation=operation, size_bytes=size, nodes=k, ranks_per_node=g
    )
    seconds: Number = 0
    levels = (
        ("inside the node", "i", "inside", g, inside_bytes_per_s, inside_latency_s),
        ("between nodes", "b", "between", k, between_bytes_per_s, between_latency_s),
    )
    for where, mark, level, ranks, bandwidth, latency in levels:
        sent = sheet.add(f"sent {where}", both[level], "bytes", source, shape)
        rounds = ring_steps(operation=operation, ranks=ranks)
        rounds = sheet.add(f"steps {where}", rounds, "steps", source, shape)
        check_amount("bandwidth", bandwidth)
        check_amount("latency", latency, zero=True)
        link = Quantity.given(f"B_{mark}", bandwidth, f"bandwidth of a link {where}")
        step = Quantity.given(f"a_{mark}", latency, f"latency of a step {where}")
        seconds += rounds * step + divide(sent, link)
    steps = sheet.total(["steps inside the node", "steps between nodes"])
    sheet.add("steps", steps, "steps", source, shape)
    time = sheet.add("time", seconds, "seconds", ALPHA_BETA, "both levels")
    _bandwidths(sheet, operation, size, k * g, time)
    return sheet.estimate()
