"""The time of a step on a cluster: compute, bubble, and communication that shows.

Ranks are laid out as Megatron lays them: tensor parallel first, then context, data and
pipeline, so that the chattiest groups are neighbours. What is not known before a run is
an assumption with a name: see ``Assumptions``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from readerkit.errors import EstimateError
from readerkit.estimate.checks import check_amount, check_fraction
from readerkit.estimate.flops import (
    attention_flops_per_token,
    layer_flops_per_token,
    step_flops,
)
from readerkit.estimate.hardware import Cluster
from readerkit.estimate.layout import Layout
from readerkit.estimate.memory import (
    layers_of_rank,
    rank_layer_bytes,
    telling_ranks,
)
from readerkit.estimate.shape import Shape
from readerkit.estimate.states import precision
from readerkit.estimate.step_traffic import traffic_of_step
from readerkit.estimate.volumes import Traffic


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What only a measurement would tell; each can be given instead.

    With the defaults, published step times on A100 and H100 come out within 15%: a test
    holds them (Korthikanti et al. 2205.05198, table 5; Narayanan et al. 2104.04473,
    table 1; Dubey et al. 2407.21783, table 4).
    """

    kernel_efficiency: float | None = None
    """Share of peak that matrix kernels reach while they run; None: the GPU's own."""
    memory_passes: float = 8.0
    """How often each kept activation crosses the GPU's memory, forward and backward."""
    link_efficiency: float = 0.7
    """Share of a link's bandwidth that collectives reach."""
    overlap: float = 0.5
    """Share of data- and context-parallel traffic that compute hides, at most."""

    @classmethod
    def parse(
        cls,
        *,
        kernel_efficiency: float | None,
        memory_passes: float,
        link_efficiency: float,
        overlap: float,
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
        return cls(kernel_efficiency, memory_passes, link_efficiency, overlap)


@dataclass(frozen=True, slots=True)
class StepTime:
    """Where the seconds of one step go; ``total`` is their sum."""

    compute: float
    bubble: float
    exposed: dict[str, float]
    """Communication that compute does not hide, by axis."""
    hidden: float
    total: float
    mfu: float

    @property
    def communication_share(self) -> float:
        """Exposed communication over the whole step."""
        return sum(self.exposed.values()) / self.total

    @property
    def bubble_share(self) -> float:
        """Idle time of the pipeline over the whole step."""
        return self.bubble / self.total


# --- 1. groups on the cluster ---------------------------------------------------------


def strides(layout: Layout) -> dict[str, int]:
    """Return how far apart neighbours of a group are, in ranks, for each axis."""
    tp, cp, dp = layout.tp, layout.cp, layout.dp
    return {"tp": 1, "cp": tp, "ep": tp, "dp": tp, "pp": tp * cp * dp}


def ranks_in_node(cluster: Cluster, ranks: int, stride: int) -> int:
    """Return how many ranks of a group share a node."""
    return max(1, min(ranks, cluster.gpus_per_node // stride))


def group_seconds(
    cluster: Cluster,
    traffic: Traffic,
    stride: int,
    link_efficiency: float,
    apart: int = 1,
) -> float:
    """Return the time of a group's collectives on the links it spans.

    ``apart`` is how many parts it has that are far from each other.

    A ring over several nodes leaves each through the network cards of all its ranks
    there, as NCCL's channels do; so the ring is as fast as they are together, or as the
    links inside. Of its steps as many cross nodes as there are nodes.
    """
    n = traffic.ranks
    g = ranks_in_node(cluster, n // apart, stride)
    nodes = -(-n // g)
    if n == 1:
        return 0.0
    inside, between = (
        cluster.inside_bytes_per_s * link_efficiency,
        cluster.between_bytes_per_s * link_efficiency,
    )
    size, calls = traffic.size_bytes, traffic.calls
    if traffic.operation == "send-recv":
        crosses = stride * 2 > cluster.gpus_per_node
        one = size / (between if crosses else inside)
        hop = cluster.between_latency_s if crosses else cluster.inside_latency_s
        return float(calls * (one + hop))
    if traffic.operation == "all-to-all":
        one = max(size * (g - 1) / n / inside, size * (n - g) / n / between)
    else:
        bandwidth = inside if nodes == 1 else min(inside, between * g)
        twice = 2 if traffic.operation == "all-reduce" else 1
        one = twice * size * (n - 1) / n / bandwidth
    turns = 2 if traffic.operation == "all-reduce" else 1
    latency = turns * (
        (n - nodes) * cluster.inside_latency_s + (nodes - 1) * cluster.between_latency_s
    )
    return float(calls * (one + latency))


def axis_seconds(
    traffics: Iterable[Traffic],
    layout: Layout,
    cluster: Cluster,
    link_efficiency: float,
) -> dict[str, float]:
    """Return the time of all collectives of each axis, none of it hidden."""
    distance = strides(layout)
    found: dict[str, float] = {}
    for traffic in traffics:
        stride = distance[traffic.axis]
        if traffic.axis == "dp" and traffic.ranks != layout.replicas:
            stride *= layout.ep  # the replicas of experts
        apart = layout.stages_of_rank if traffic.axis == "dp" else 1
        seconds = group_seconds(cluster, traffic, stride, link_efficiency, apart)
        found[traffic.axis] = found.get(traffic.axis, 0.0) + seconds
    return found


# --- 2. compute -----------------------------------------------------------------------


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
    passes = 4 if layout.recompute == "full" else 3
    slowest = 0.0
    for rank, (dense_layers, moe_layers) in held:
        layers = dense_layers * dense + (moe_layers * moe if moe_layers else 0)
        flops = passes * layers
        if layout.recompute == "selective" and not layout.flash:
            scores = attention_flops_per_token(shape, sequence=layout.sequence)
            flops += (dense_layers + moe_layers) * scores
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
    again = 4 / 3 if layout.recompute == "full" else 1
    most = 0.0
    for _, (dense_layers, moe_layers) in held:
        most = max(most, float(dense_layers * dense + moe_layers * moe))
    return again * most / layout.stages_of_rank


def microbatch_seconds(
    shape: Shape,
    layout: Layout,
    cluster: Cluster,
    assumptions: Assumptions,
    *,
    element_bytes: int = 2,
) -> float:
    """Return the time of one microbatch's forward and backward on the slowest rank."""
    ranks = telling_ranks(shape, layout.pp)
    held = [(rank, layers_of_rank(shape, layout, rank)) for rank in ranks]
    flops = microbatch_flops(shape, layout, held)
    moved = microbatch_memory_bytes(shape, layout, held, element_bytes=element_bytes)
    efficiency = assumptions.kernel_efficiency or cluster.gpu.kernel_efficiency
    return (
        flops / (cluster.gpu.flops_per_s * efficiency)
        + moved * assumptions.memory_passes / cluster.gpu.memory_bytes_per_s
    )


# --- 3. together ----------------------------------------------------------------------


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
    exposed_context = max(context_s * (1 - overlap), context_s - compute)
    exposed_once = max(once_s * (1 - overlap), once_s - compute)
    return compute, ramp, exposed_once, exposed_context


def step_time(
    shape: Shape,
    layout: Layout,
    cluster: Cluster,
    assumptions: Assumptions,
    *,
    convention: str = "mixed-18",
    no_sync: bool = True,
) -> StepTime:
    """Return where the time of a step goes.

    Raises:
        EstimateError: a layout that the model cannot be cut into.
    """
    traffics = traffic_of_step(shape, layout, convention=convention, no_sync=no_sync)
    axes = axis_seconds(traffics, layout, cluster, assumptions.link_efficiency)
    peak = cluster.gpu.flops_per_s
    m = layout.microbatches
    blocking = axes.get("tp", 0.0) + axes.get("ep", 0.0) + axes.get("pp", 0.0)
    compute, bubble, once, context = compose(
        microbatch_s=microbatch_seconds(
            shape,
            layout,
            cluster,
            assumptions,
            element_bytes=precision(convention).activation,
        ),
        per_microbatch_s=blocking / m,
        once_s=axes.get("dp", 0.0),
        context_s=axes.get("cp", 0.0),
        microbatches=m,
        idle=idle_microbatches(layout),
        overlap=assumptions.overlap,
    )
    shown = axes | {"dp": once, "cp": context}
    exposed = {axis: shown[axis] for axis in axes}
    total = compute + bubble + sum(exposed.values())
    model = step_flops(
        shape,
        batch=layout.global_batch,
        sequence=layout.sequence,
        attention=attention_kind(layout),
    )
    return StepTime(
        compute=compute,
        bubble=bubble,
        exposed=exposed,
        hidden=sum(axes.values()) - sum(exposed.values()),
        total=total,
        mfu=model / (total * layout.world_size * peak),
    )


def idle_microbatches(layout: Layout) -> float:
    """Return the idle time of a rank in times of a microbatch: ``estimate bubble``'s.

    A backward takes two forwards, one for the input and one for the weights, and a
    third where the forward is run again before it.
    """
    again = int(layout.recompute == "full")
    one = layout.pipeline
    if one.splits_backward:
        one = replace(one, backward=1 + again, weight=1)
    else:
        one = replace(one, backward=2 + again)
    return float(one.idle) / (3 + again)
