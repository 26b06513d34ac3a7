"""One collective as an estimate: bytes, steps, time, and nccl-tests' bandwidths."""

from __future__ import annotations

from typing import Any

from readerkit.estimate.checks import check_amount
from readerkit.estimate.collectives import (
    ALPHA_BETA,
    NCCL_TESTS,
    NCCL_TESTS_OF,
    NCCL_TUNING,
    OF_ROOT,
    RANKS,
    bus_factor,
    collective_bytes,
    collective_steps,
    hierarchical_bytes,
    naive_all_reduce_bytes,
    ring_steps,
    tree_ring_crossover_bytes,
)
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.quantity import Number
from readerkit.model.language import Told
from readerkit.wording.numbers import counted


def estimate_collective(
    *,
    operation: str,
    size_bytes: Number,
    ranks: int,
    bandwidth_bytes_per_s: Number | None = None,
    latency_s: Number = 0,
    algorithm: str = "ring",
) -> Estimate:
    """Return bytes and steps of a collective; with a bandwidth, its time on such links.

    All links are alike.
    """
    sheet = Worksheet(
        Told(
            "{operation} over {ranks}, {algorithm}",
            operation=operation,
            ranks=counted(ranks, "rank"),
            algorithm=algorithm,
        )
    )
    size = sheet.given("S", size_bytes, "size in bytes")
    n = sheet.given("n", ranks, "ranks")
    how: Any = {"operation": operation, "ranks": n, "algorithm": algorithm}
    by = OF_ROOT.get(operation, "as much is received")
    sent = "moved by the root" if operation in OF_ROOT else "sent by each rank"
    tests = NCCL_TESTS_OF.get(operation)
    sheet.write(
        f"""
        {sent} [bytes] = sent | {tests or NCCL_TESTS} | size is the whole tensor; {by}
        steps [steps] = rounds | {tests or NCCL_TUNING} | {algorithm}, one after another
        """,
        sent=collective_bytes(size_bytes=size, **how),
        rounds=collective_steps(**how),
    )
    if bandwidth_bytes_per_s is not None:
        _time(sheet, sent, bandwidth_bytes_per_s, latency_s)
        _bandwidths(sheet, operation, n)
    if operation != "all-reduce":
        return sheet.estimate()
    naive = naive_all_reduce_bytes(size_bytes=size, ranks=n)
    sheet.add("naive all-reduce", naive, "bytes", "a count", "everything to everyone")
    if sheet["sent by each rank"]:
        sheet.write(
            """
            less than naive [times] = naive all-reduce / sent by each rank
                | a count | n/2 for a ring
            """
        )
    if latency_s and bandwidth_bytes_per_s is not None:
        cross = tree_ring_crossover_bytes(
            ranks=n, bandwidth_bytes_per_s=sheet["B"], latency_s=sheet["a"]
        )
        named = "the tree is faster below; one rank a node, the same links for both"
        sheet.add("tree and ring cross at", cross, "bytes", ALPHA_BETA, named)
    return sheet.estimate()


def _time(sheet: Worksheet, sent: str, bandwidth: Number, latency: Number) -> None:
    """Write down how long it takes on links of a bandwidth."""
    check_amount("bandwidth", sheet.given("B", bandwidth, "bandwidth of a link"))
    check_amount("latency", sheet.given("a", latency, "latency of a step"), zero=True)
    sheet.write(
        f"""
        time [seconds] = steps × a + {sent} / B | {ALPHA_BETA}
            | bandwidth per GPU and per direction
        """
    )


def _bandwidths(sheet: Worksheet, operation: str, ranks: int) -> None:
    """Write down what nccl-tests prints, of a collective that takes any time."""
    if sheet["time"] > 0 and sheet["S"] > 0:
        source = NCCL_TESTS_OF.get(operation, NCCL_TESTS)
        lacked = operation == "hypercube"
        counted = "what a rank lacks of the size" if lacked else "size"
        sheet.write(
            f"""
            algbw [bytes/s] = size / time | {source}
                | nccl-tests' algorithm bandwidth: {counted} over time
            busbw [bytes/s] = algbw × factor | {source}
                | nccl-tests' bus bandwidth: what a link's bandwidth bounds
            """,
            size=sheet["sent by each rank"] if lacked else sheet["S"],
            factor=bus_factor(operation=operation, ranks=ranks),
        )


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
    sheet = Worksheet(
        Told(
            "{operation} over {nodes} × {each} ranks",
            operation=operation,
            nodes=nodes,
            each=ranks_per_node,
        )
    )
    custom = "a ring on each level, one after the other"
    custom += f" | {nodes} nodes of {ranks_per_node} ranks"
    size = sheet.given("S", size_bytes, "size in bytes")
    k, g = sheet.given("k", nodes, "nodes"), sheet.given("g", ranks_per_node, RANKS)
    both = hierarchical_bytes(
        operation=operation, size_bytes=size, nodes=k, ranks_per_node=g
    )
    for where, mark, level, ranks, bandwidth, latency in (
        ("inside the node", "i", "inside", g, inside_bytes_per_s, inside_latency_s),
        ("between nodes", "b", "between", k, between_bytes_per_s, between_latency_s),
    ):
        check_amount("bandwidth", bandwidth)
        check_amount("latency", latency, zero=True)
        sheet.given(f"B_{mark}", bandwidth, f"bandwidth of a link {where}")
        sheet.given(f"a_{mark}", latency, f"latency of a step {where}")
        sheet.write(
            f"""
            sent {where} [bytes] = sent | {custom}
            steps {where} [steps] = rounds | {custom}
            """,
            sent=both[level],
            rounds=ring_steps(operation=operation, ranks=ranks),
        )
    sheet.write(
        f"""
        steps [steps] = steps inside the node + steps between nodes | {custom}
        time [seconds] = steps inside the node × a_i + sent inside the node / B_i
            + (steps between nodes × a_b + sent between nodes / B_b)
            | {ALPHA_BETA} | both levels
        """
    )
    _bandwidths(sheet, operation, k * g)
    return sheet.estimate()
