"""The time of a step on a cluster: compute, bubble, and communication that shows.

What is not known before a run is an assumption with a name: see ``Assumptions``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from readerkit.errors import EstimateError
from readerkit.estimate.bubble import Pipeline
from readerkit.estimate.checks import check_amount, check_fraction
from readerkit.estimate.defaults import LINK_SHARE, MEMORY_PASSES, OVERLAP, PRECISION
from readerkit.estimate.flops import layer_flops_per_token, step_flops
from readerkit.estimate.hardware import Cluster
from readerkit.estimate.layout import Layout
from readerkit.estimate.link_time import axis_seconds, offload_seconds
from readerkit.estimate.memory import rank_layer_bytes
from readerkit.estimate.offload import offload_traffic
from readerkit.estimate.quantity import Number
from readerkit.estimate.rank_layers import layers_of_rank, telling_ranks
from readerkit.estimate.recompute import layers_again, module_flops, modules_again
from readerkit.estimate.shape import Shape
from readerkit.estimate.states import precision
from readerkit.estimate.step_traffic import traffic_of_step

BLOCKING = ("tp", "ep", "etp", "pp")
"""Axes whose traffic stands in the way of each microbatch."""
LINKS = ("PCIe", "NVMe")
"""What offload moves over."""


class Assumptions(NamedTuple):
    """What only a measurement would tell; each can be given instead.

    How near the defaults come to published step times on A100 and H100, ``estimate plan
    --against all`` shows; a test holds it.
    """

    kernel_efficiency: float | None = None
    """Share of peak that matrix kernels reach while they run; None: the GPU's own."""
    memory_passes: float = MEMORY_PASSES
    """How often each kept activation crosses the GPU's memory, forward and backward."""
    link_efficiency: float = LINK_SHARE
    """Share of a link's bandwidth that collectives reach."""
    overlap: float = OVERLAP
    """Share of traffic of dp, cp and offload that compute hides, at most."""
    pcie_bandwidth: Number | None = None
    """Of offload: bytes a second of one GPU to its CPU, one way after the other."""
    nvme_bandwidth: Number | None = None
    """Of offload: bytes a second of one GPU's share of NVMe, reading or writing."""

    @classmethod
    def parse(
        cls,
        *,
        kernel_efficiency: float | None,
        memory_passes: float,
        link_efficiency: float,
        overlap: float,
        pcie_bandwidth: Number | None = None,
        nvme_bandwidth: Number | None = None,
    ) -> Assumptions:
        """Return assumptions that can be.

        Raises:
            EstimateError: a share that is not between 0 and 1, or a negative number.
        """
        for name, share in (
            ("kernel_efficiency", kernel_efficiency),
            ("link_efficiency", link_efficiency),
        ):
            if share is not None and not check_fraction(name, share):
                raise EstimateError(f"{name}: got 0, expected more than zero")
        check_fraction("overlap", overlap)
        check_amount("memory_passes", memory_passes, zero=True)
        links = pcie_bandwidth, nvme_bandwidth
        for name, link in zip(("pcie", "nvme"), links, strict=True):
            if link is not None:
                check_amount(f"{name}_bandwidth", link)
        return cls(kernel_efficiency, memory_passes, link_efficiency, overlap, *links)

    @property
    def bandwidths(self) -> dict[str, Number | None]:
        """The bandwidth of each link of offload."""
        return {"PCIe": self.pcie_bandwidth, "NVMe": self.nvme_bandwidth}


class StepTime(NamedTuple):
    """Where the seconds of one step go; ``total`` is their sum."""

    compute: float
    bubble: float
    exposed: dict[str, float]
    """Communication that compute does not hide, by axis."""
    alone: Mapping[str, float]
    """The same, with what it hides."""
    total: float
    mfu: float

    @property
    def hidden(self) -> float:
        """Communication behind compute."""
        return sum(self.alone.values()) - sum(self.exposed.values())

    @property
    def communication_share(self) -> float:
        """Exposed communication over the whole step."""
        return sum(self.exposed.values()) / self.total

    @property
    def bubble_share(self) -> float:
        """Idle time of the pipeline over the whole step."""
        return self.bubble / self.total


# --- 1. compute -----------------------------------------------------------------------


def attention_kind(layout: Layout) -> str:
    """Return how scores are counted: flash attention skips what the mask hides."""
    return "causal" if layout.flash else "full"


Held = list[tuple[int, tuple[int, int]]]
"""Ranks of a pipeline, each with its dense and its expert layers."""


def microbatch_flops(shape: Shape, layout: Layout, held: Held) -> float:
    """Return the FLOPs of one microbatch on one GPU of the slowest of some ranks."""
    tokens = layout.micro_batch * layout.sequence / (layout.tp * layout.cp)
    kind = attention_kind(layout)
    dense, moe = (
        layer_flops_per_token(
            shape, sequence=layout.sequence, attention=kind, moe=is_moe
        )
        for is_moe in (False, True)
    )
    modules, slowest = modules_again(layout), 0.0
    again_dense, again_moe = (
        module_flops(shape, modules, sequence=layout.sequence, moe=is_moe)
        if modules
        else 0
        for is_moe in (False, True)
    )
    for rank, (dense_layers, moe_layers) in held:
        twice, twice_moe = layers_again(layout, dense_layers, moe_layers)
        flops = (3 * dense_layers + twice) * dense + dense_layers * again_dense
        if moe_layers:
            flops += (3 * moe_layers + twice_moe) * moe + moe_layers * again_moe
        if layout.ends(rank)[1]:
            flops += 3 * 2 * shape.hidden * shape.vocab
        slowest = max(slowest, flops)
    return tokens * slowest / layout.stages_of_rank


def microbatch_memory_bytes(
    shape: Shape, layout: Layout, held: Held, *, element_bytes: int = 2
) -> float:
    """Return the activations of one microbatch on the rank of some with most layers.

    What norms, dropout, softmax and activations read and write is counted in passes
    over them; they wait for memory, not for arithmetic.
    """
    dense, moe = (
        rank_layer_bytes(shape, layout, "none", moe=is_moe, element_bytes=element_bytes)
        if shape.experts or not is_moe
        else 0
        for is_moe in (False, True)
    )
    most = 0.0
    for _, layers in held:
        # Of what is run again one forward more, a third of three passes.
        again = layers_again(layout, *layers)
        passes = [each + more / 3 for each, more in zip(layers, again, strict=True)]
        most = max(most, float(passes[0] * dense + passes[1] * moe))
    return most / layout.stages_of_rank


def slowest_microbatch(
    shape: Shape, layout: Layout, *, element_bytes: int = 2
) -> tuple[float, float]:
    """Return the FLOPs and the bytes of activations of a microbatch, at their most."""
    ranks = telling_ranks(shape, layout.pp)
    held = [(rank, layers_of_rank(shape, layout, rank)) for rank in ranks]
    moved = microbatch_memory_bytes(shape, layout, held, element_bytes=element_bytes)
    return microbatch_flops(shape, layout, held), moved


def microbatch_seconds(
    shape: Shape,
    layout: Layout,
    cluster: Cluster,
    assumptions: Assumptions,
    *,
    element_bytes: int = 2,
) -> float:
    """Return the time of one microbatch's forward and backward on the slowest rank."""
    flops, moved = slowest_microbatch(shape, layout, element_bytes=element_bytes)
    efficiency = assumptions.kernel_efficiency or cluster.gpu.kernel_efficiency
    return (
        flops / (cluster.gpu.flops_per_s * efficiency)
        + moved * assumptions.memory_passes / cluster.gpu.memory_bytes_per_s
    )


# --- 2. together ----------------------------------------------------------------------


def compose(
    *,
    microbatch_s: float,
    per_microbatch_s: float,
    once_s: float,
    context_s: float,
    microbatches: int,
    idle: float,
    overlap: float,
) -> tuple[float, float, float, float]:
    """Return compute, bubble, and what is exposed of ``once`` and of ``context``.

    ``per_microbatch`` (tensor, expert and pipeline parallel) stands in the way of each
    microbatch and so fills and drains with it: ``idle`` says how many of these a rank
    waits for. ``once`` is data parallel. Neither can hide behind more compute than
    there is.
    """
    compute = microbatches * microbatch_s
    one = microbatch_s + per_microbatch_s
    ramp = idle * one
    exposed_context = unhidden(context_s, compute, overlap)
    exposed_once = unhidden(once_s, compute, overlap)
    return compute, ramp, exposed_once, exposed_context


def unhidden(seconds: float, compute: float, overlap: float) -> float:
    """Return what shows of traffic of which compute hides a share at most."""
    return max(seconds * (1 - overlap), seconds - compute)


def spend(
    axes: Mapping[str, float],
    *,
    microbatch_s: float,
    microbatches: int,
    idle: float,
    overlap: float,
    ideal_s: float,
) -> StepTime:
    """Return where the time of a step goes, from what each axis takes alone.

    ``ideal_s`` is the time of the model's FLOPs on all GPUs at their peak.
    """
    blocking = sum(axes.get(axis, 0.0) for axis in BLOCKING)
    compute, bubble, once, context = compose(
        microbatch_s=microbatch_s,
        per_microbatch_s=blocking / microbatches,
        once_s=axes.get("dp", 0.0),
        context_s=axes.get("cp", 0.0),
        microbatches=microbatches,
        idle=idle,
        overlap=overlap,
    )
    shown = dict(axes) | {"dp": once, "cp": context}
    for link in LINKS:
        shown[link] = unhidden(axes.get(link, 0.0), compute, overlap)
    exposed = {axis: shown[axis] for axis in axes}
    total = compute + bubble + sum(exposed.values())
    return StepTime(
        compute=compute,
        bubble=bubble,
        exposed=exposed,
        alone=axes,
        total=total,
        mfu=ideal_s / total,
    )


def ideal_seconds(
    shape: Shape,
    cluster: Cluster,
    *,
    batch: int,
    sequence: int,
    attention: str,
    gpus: int,
) -> float:
    """Return the time of the model's FLOPs of a step on all GPUs at their peak."""
    flops = step_flops(shape, batch=batch, sequence=sequence, attention=attention)
    return float(flops / (gpus * cluster.gpu.flops_per_s))


def step_time(
    shape: Shape,
    layout: Layout,
    cluster: Cluster,
    assumptions: Assumptions,
    *,
    convention: str = PRECISION,
    no_sync: bool = True,
) -> StepTime:
    """Return where the time of a step goes.

    Raises:
        EstimateError: a layout that the model cannot be cut into.
    """
    traffics = traffic_of_step(shape, layout, convention=convention, no_sync=no_sync)
    axes = axis_seconds(traffics, layout, cluster, assumptions.link_efficiency)
    kept = precision(convention)
    moved = offload_traffic(shape, layout, kept, no_sync=no_sync)
    return spend(
        axes | offload_seconds(moved, assumptions.bandwidths),
        microbatch_s=microbatch_seconds(
            shape, layout, cluster, assumptions, element_bytes=kept.activation
        ),
        microbatches=layout.microbatches,
        idle=idle_microbatches(shape, layout),
        overlap=assumptions.overlap,
        ideal_s=ideal_seconds(
            shape,
            cluster,
            batch=layout.global_batch,
            sequence=layout.sequence,
            attention=attention_kind(layout),
            gpus=layout.world_size,
        ),
    )


def idle_microbatches(shape: Shape, layout: Layout) -> float:
    """Return the idle time of a rank in times of a microbatch: ``estimate bubble``'s.

    A backward takes two forwards, one for the input and one for the weights, and a
    third where the forward is run again before it: of all layers, or of some.
    """
    held = layers_of_rank(shape, layout, 0)
    layers, again = sum(held), sum(layers_again(layout, *held))
    if again in (0, layers):
        layers, again = 1, int(again > 0)
    return idle_of(layout.pipeline, layers, again)


@lru_cache(maxsize=65_536)
def idle_of(pipeline: Pipeline, layers: int = 1, again: int = 0) -> float:
    """Return the same for a rank of some layers, of which some are run again."""
    backward = (1 if pipeline.splits_backward else 2) * layers + again
    one = pipeline._replace(forward=layers, backward=backward, weight=layers)
    return float(one.idle / (3 * layers + again))
