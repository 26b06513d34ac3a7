"""What offload moves: between a GPU and its CPU in a step, and between that and NVMe.

Each rank moves its own shard over its own PCIe (Rajbhandari et al. 2104.07857, section
6.1). What the CPU computes is not in it.
"""

from __future__ import annotations

from typing import NamedTuple

from readerkit.estimate.layout import Layout
from readerkit.estimate.memory import named_weights, rank_weights
from readerkit.estimate.quantity import Number, divide
from readerkit.estimate.shape import Shape
from readerkit.estimate.states import OFFLOAD, Precision

LOADED = "Rajbhandari et al. 2104.07857, section 4.1"
"""Weights are loaded for the forward and for the backward, gradients stored once."""


class Moved(NamedTuple):
    """Bytes of one way in one step of one GPU, and what they are."""

    link: str
    """``PCIe`` or ``NVMe``."""
    way: str
    bytes: Number
    why: str
    source: str


def offload_traffic(
    shape: Shape, layout: Layout, kept: Precision, *, no_sync: bool = True
) -> list[Moved]:
    """Return what one GPU's shard moves in a step, way by way; nothing: no offload."""
    off = OFFLOAD[layout.offload]
    if not off.takes:
        return []
    dense, expert = named_weights(*rank_weights(shape, layout, 0))
    share = divide(dense, layout.replicas) + divide(expert, layout.expert_replicas)
    m = layout.microbatches
    sums = m if layout.zero >= 2 or not no_sync else 1
    gradients, weights = sums * kept.gradient * share, kept.weight * share
    source, why = off.source, "updated weights, once"
    if "weights" in off.takes:
        source, why = LOADED, "weights, forward and backward of each microbatch"
        weights = 2 * m * weights
    summed = "each microbatch" if sums is m else "once"
    found = [
        Moved("PCIe", "to the CPU", gradients, f"gradients, {summed}", off.source),
        Moved("PCIe", "from the CPU", weights, why, source),
    ]
    if off.place != "NVMe":
        return found
    states = (kept.gradient + kept.optimizer) * share
    what = "gradients and optimizer, once for the update"
    out, back = states, states
    if "weights" in off.takes:
        out, back = states + kept.weight * share, states + weights
        what += "; weights, written once and read as often as they are loaded"
    return [
        *found,
        Moved("NVMe", "to NVMe", out, what, off.source),
        Moved("NVMe", "from NVMe", back, what, off.source),
    ]
