"""One collective: bytes, steps, time, and the bandwidths that nccl-tests prints.

A size is nccl-tests' size: the whole tensor (what an all-gather ends with, what a
reduce-scatter starts from). Bytes are those that one rank sends; it receives as many.
A bandwidth is per GPU and per direction.
"""

from __future__ import annotations

from fractions import Fraction

from readerkit.errors import EstimateError
from readerkit.estimate.quantity import (
    Estimate,
    Item,
    Number,
    check_amount,
    check_choice,
    check_count,
    divide,
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
HIERARCHICAL = (
    "all-reduce",
    "reduce-scatter",
    "all-gather",
    "all-to-all",
    "broadcast",
)
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
        return divide(Fraction(2 * (n - 1), n))
    if operation in ("reduce-scatter", "all-gather", "all-to-all"):
        return divide(Fraction(n - 1, n))
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
    if n == 1:
        return 0
    if algorithm == "naive":
        return divide(size * (n - 1))
    if algorithm == "tree":
        # Of two ranks each is a leaf once; a broadcast only goes down.
        once = n == 2 or operation != "all-reduce"
        return divide(size) if once else divide(2 * size)
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
        return {"inside": size if g > 1 else 0, "between": size if k > 1 else 0}
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


def hierarchical_steps(*, operation: str, nodes: int, ranks_per_node: int) -> int:
    """Return the rounds of both levels, each a ring."""
    check_choice("operation", operation, HIERARCHICAL)
    return sum(
        ring_steps(operation=operation, ranks=ranks)
        for ranks in (nodes, ranks_per_node)
    )


def ring_steps(*, operation: str, ranks: int) -> int:
    """Return the rounds of a ring: 2 (n - 1) for an all-reduce, n - 1 for others."""
    check_choice("operation", operation, OPERATIONS)
    n = check_count("ranks", ranks)
    if operation == "send-recv":
        return min(1, n - 1)
    return (2 if operation == "all-reduce" else 1) * (n - 1)


def tree_steps(
    *, nodes: int, ranks_per_node: int = 1, operation: str = "all-reduce"
) -> int:
    """Return the hops of NCCL's tree, up and down: a chain in the node, a tree between.

    A broadcast or a reduce goes one way.

    Source: NVIDIA/nccl: src/graph/tuning.cc, where the tree's latency is
    2 ((ranks per node - 1) intra + log2(nodes) inter); it rounds the logarithm down,
    the depth of the tree is the logarithm rounded up. Equal for powers of two.
    """
    k, g = check_count("nodes", nodes), check_count("ranks_per_node", ranks_per_node)
    ways = 2 if operation == "all-reduce" else 1
    return ways * (g - 1 + (k - 1).bit_length())


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
    steps = (
        tree_steps(nodes=ranks, operation=operation)
        if algorithm == "tree"
        else ring_steps(operation=operation, ranks=ranks)
        if algorithm == "ring"
        else min(1, ranks - 1)
    )
    bandwidth = check_amount("bandwidth", bandwidth_bytes_per_s)
    return steps * check_amount("latency", latency_s, zero=True) + sent / bandwidth


def algorithm_bandwidth(*, size_bytes: Number, seconds: Number) -> Number:
    """Return algbw in bytes/s: size / time."""
    return check_amount("size_bytes", size_bytes) / check_amount("seconds", seconds)


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
    saved = n - 1 - (n - 1).bit_length()
    return (
        check_amount("latency", latency_s, zero=True)
        * check_amount("bandwidth", bandwidth_bytes_per_s)
        * n
        * max(0, saved)
    )


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
    sent = collective_bytes(
        operation=operation, size_bytes=size_bytes, ranks=ranks, algorithm=algorithm
    )
    seconds = collective_seconds(
        operation=operation,
        size_bytes=size_bytes,
        ranks=ranks,
        bandwidth_bytes_per_s=bandwidth_bytes_per_s,
        latency_s=latency_s,
        algorithm=algorithm,
    )
    n, steps = ranks, 0
    if algorithm == "tree":
        steps, formula, source = (
            tree_steps(nodes=n, operation=operation),
            f"{'2 × ' if operation == 'all-reduce' else ''}ceil(log2 {n})",
            NCCL_TUNING,
        )
    else:
        steps = ring_steps(operation=operation, ranks=n) if algorithm == "ring" else 1
        twice = "2 × " if operation == "all-reduce" and algorithm == "ring" else ""
        formula = f"{twice}({n} - 1)" if algorithm == "ring" else "all at once"
        source = NCCL_TUNING
    items = [
        Item(
            "sent by each rank",
            sent,
            "bytes",
            _bytes_formula(operation, algorithm, n),
            NCCL_TESTS,
            "size is the whole tensor; as much is received",
        ),
        Item(
            "steps", steps, "steps", formula, source, f"{algorithm}, one after another"
        ),
        Item(
            "time",
            seconds,
            "seconds",
            f"{steps} × {latency_s:g} s + {sent} B / {bandwidth_bytes_per_s} B/s",
            ALPHA_BETA,
            "bandwidth per GPU and per direction",
        ),
    ]
    if seconds > 0 and size_bytes > 0:
        factor = bus_factor(operation=operation, ranks=n)
        algbw = algorithm_bandwidth(size_bytes=size_bytes, seconds=seconds)
        items += [
            Item("algbw", algbw, "bytes/s", "size / time", NCCL_TESTS),
            Item("busbw", algbw * factor, "bytes/s", f"algbw × {factor:g}", NCCL_TESTS),
        ]
    if operation == "all-reduce":
        naive = naive_all_reduce_bytes(size_bytes=size_bytes, ranks=n)
        items.append(
            Item("naive all-reduce", naive, "bytes", f"({n} - 1) × size", "a count")
        )
        if sent:
            items.append(
                Item(
                    "less than naive",
                    naive / sent,
                    "times",
                    "naive / sent; n/2 for a ring",
                    "a count",
                )
            )
    if operation == "all-reduce" and latency_s:
        cross = tree_ring_crossover_bytes(
            ranks=n, bandwidth_bytes_per_s=bandwidth_bytes_per_s, latency_s=latency_s
        )
        items.append(
            Item(
                "tree and ring cross at",
                cross,
                "bytes",
                "a B n (n - 1 - ceil(log2 n)); the tree is faster below",
                ALPHA_BETA,
                "one rank a node, the same links for both",
            )
        )
    return Estimate(f"{operation} over {n} ranks, {algorithm}", tuple(items))


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
    levels = {"nodes": nodes, "ranks_per_node": ranks_per_node}
    sent = hierarchical_bytes(operation=operation, size_bytes=size_bytes, **levels)
    inside, between = (
        ring_steps(operation=operation, ranks=ranks)
        for ranks in (ranks_per_node, nodes)
    )
    seconds = (
        inside * check_amount("latency", inside_latency_s, zero=True)
        + between * check_amount("latency", between_latency_s, zero=True)
        + sent["inside"] / check_amount("bandwidth", inside_bytes_per_s)
        + sent["between"] / check_amount("bandwidth", between_bytes_per_s)
    )
    n, source = nodes * ranks_per_node, "a ring on each level, one after the other"
    shape = f"{nodes} nodes of {ranks_per_node} ranks"
    items = [
        Item("sent inside the node", sent["inside"], "bytes", shape, source),
        Item("sent between nodes", sent["between"], "bytes", shape, source),
        Item("steps", inside + between, "steps", f"{inside} + {between}", source),
        Item("time", seconds, "seconds", "both levels", ALPHA_BETA),
    ]
    if seconds > 0 and size_bytes > 0:
        algbw = algorithm_bandwidth(size_bytes=size_bytes, seconds=seconds)
        factor = bus_factor(operation=operation, ranks=n)
        items += [
            Item("algbw", algbw, "bytes/s", "size / time", NCCL_TESTS),
            Item("busbw", algbw * factor, "bytes/s", f"algbw × {factor:g}", NCCL_TESTS),
        ]
    return Estimate(f"{operation} over {nodes} × {ranks_per_node} ranks", tuple(items))


def _bytes_formula(operation: str, algorithm: str, n: int) -> str:
    if n == 1:
        return "one rank sends nothing"
    if algorithm == "naive":
        return f"({n} - 1) × size"
    if algorithm == "tree" and operation != "all-reduce":
        return "size: half in each of two trees"
    if algorithm == "tree":
        return (
            "2 × size: size/2 up each of two trees, size/2 down to each of two children"
        )
    if operation == "all-reduce":
        return f"2 ({n} - 1)/{n} × size"
    if operation in ("reduce-scatter", "all-gather", "all-to-all"):
        return f"({n} - 1)/{n} × size"
    return "size"
