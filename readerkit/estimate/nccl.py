"""NCCL's own model of latency: what its tuner adds to the bytes, by algorithm.

The constants are those of one release; another has others.
"""

from __future__ import annotations

from readerkit.errors import EstimateError
from readerkit.estimate.checks import MAX_RANKS, check_choice, check_count
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.model.language import Told

RELEASE = "2.20.3-1"
SOURCE = f"NVIDIA/nccl {RELEASE} (b647562): src/graph/tuning.cc, ncclTopoTuneModel"
LINKS = {"nvlink": (3.4, 28, 2.8), "pci": (5.7, 28, 2.8)}
"""Microseconds of a hop in a node: of a ring, a tree, a chain of CollNet."""
OVERHEAD_US = {"intel": 1, "amd": 2}
"""Of posting to the network, by the vendor of the CPU."""
RINGS = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1}
"""Times that a ring goes round."""


def estimate_nccl_latency(
    *,
    ranks: int,
    nodes: int = 1,
    operation: str = "all-reduce",
    link: str = "nvlink",
    cpu: str = "intel",
) -> Estimate:
    """Return the latency of each algorithm with the Simple protocol.

    Raises:
        EstimateError: ranks that are not alike on all nodes, or a word that is none.
    """
    check_choice("operation", operation, RINGS)
    hop, *_ = LINKS[check_choice("link", link, LINKS)]
    check_choice("cpu", cpu, OVERHEAD_US)
    if check_count("ranks", ranks, least=2, most=MAX_RANKS) % check_count(
        "nodes", nodes, most=MAX_RANKS
    ):
        raise EstimateError(f"ranks: got {ranks}, expected a multiple of {nodes} nodes")
    sheet = Worksheet(
        Told(
            "NCCL {release}: latency of {operation}, Simple protocol",
            release=RELEASE,
            operation=operation,
        )
    )
    sheet.given("n", ranks, "ranks")
    sheet.given("k", nodes, "nodes")
    sheet.given("ways", RINGS[operation], "times round the ring")
    # A hop in a node waits for the network, where there is one: three posts of it.
    inside = max(hop, 3 * OVERHEAD_US[cpu]) if nodes > 1 else hop
    ring = "8.4e-6 + ways × (n - 1) × hop"
    if nodes > 1:
        crossing = "2 × k" if operation == "all-reduce" else "k - 1"
        ring = f"8.4e-6 + (ways × (n - 1) - ({crossing})) × hop + ({crossing}) × 14e-6"
    sheet.given("hop", inside / 1e6, "a ring's hop in a node")
    custom = f"{SOURCE} | {link} in the node"
    sheet.write(
        f"""
        ring [seconds] = {ring}
            | {custom}, {cpu} CPU; network 14 us a hop, the card's own left out
        """
    )
    if operation == "all-reduce":
        _write_all_reduce(sheet, link, nodes, custom)
    return sheet.estimate()


def _write_all_reduce(sheet: Worksheet, link: str, nodes: int, custom: str) -> None:
    """Write down what only an all-reduce has: trees, chains and switches that sum."""
    _, tree, chain = LINKS[link]
    sheet.given("tree hop", tree / 1e6, "a tree's hop in a node")
    sheet.given("chain hop", chain / 1e6, "a chain's hop in a node")
    sheet.write(
        f"""
        tree [seconds] = 2 × ((n / k - 1) × tree hop + floor(log2(k)) × 28e-6)
            | {custom}; network 28 us a hop; the logarithm rounded down
        CollNet chain [seconds] = 2 × (n / k - 1) × chain hop + 30e-6
            | {custom}; network 30 us; with switches that sum (SHARP)
        """
    )
    if link == "nvlink":
        sheet.write(
            f"""
            NVLS [seconds] = 23e-6 + min(1, k - 1) × 18e-6
                | {SOURCE} | NVSwitch sums in the node, network 18 us
            """
        )
        if nodes > 1:
            sheet.write(
                f"""
                NVLS tree [seconds] = 23e-6 + 2 × floor(log2(k)) × 14e-6
                    | {SOURCE} | NVSwitch sums in the node, network 14 us a hop
                """
            )
