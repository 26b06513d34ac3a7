"""The time that traffic takes on a cluster's links, by where the ranks of a group are.

Ranks are laid out as Megatron lays them: tensor parallel first, then context, data and
pipeline, so that the chattiest groups are neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from readerkit.errors import EstimateError
from readerkit.estimate.hardware import Cluster
from readerkit.estimate.layout import Layout
from readerkit.estimate.offload import Moved
from readerkit.estimate.quantity import Number
from readerkit.estimate.volumes import Traffic


def stride_of(traffic: Traffic, layout: Layout, cluster: Cluster) -> int:
    """Return how far apart, in ranks, neighbours of a group are.

    A message between two of a pipeline or a ring that spans nodes is told where it
    leaves one: a step waits for that.
    """
    axis, tp, cp = traffic.axis, layout.tp, layout.cp
    if axis == "dp" and traffic.ranks != layout.replicas:
        return layout.expert_ranks  # the replicas of experts
    apart = {"cp": tp, "ep": layout.etp or tp, "dp": tp, "pp": tp * cp * layout.dp}
    stride = apart.get(axis, 1)
    of = {"pp": layout.pp, "cp": cp}.get(axis, 0)
    if traffic.ranks == 2 and stride * of > cluster.gpus_per_node:
        return max(stride, cluster.gpus_per_node)
    return stride


def ranks_in_node(cluster: Cluster, ranks: int, stride: int) -> int:
    """Return how many ranks of a group share a node."""
    return max(1, min(ranks, cluster.gpus_per_node // stride))


def check_nodes(cluster: Cluster, layout: Layout) -> None:
    """Raise where a job does not come to whole nodes.

    Raises:
        EstimateError: part of a node would stay empty.
    """
    per_node = cluster.gpus_per_node
    if layout.world_size > per_node and layout.world_size % per_node:
        raise EstimateError(
            f"dp × tp × pp × cp: got {layout.world_size}, expected whole nodes of "
            f"{per_node} ({cluster.name})"
        )


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
    found: dict[str, float] = {}
    for traffic in traffics:
        stride = stride_of(traffic, layout, cluster)
        apart = layout.stages_of_rank if traffic.axis == "dp" else 1
        seconds = group_seconds(cluster, traffic, stride, link_efficiency, apart)
        found[traffic.axis] = found.get(traffic.axis, 0.0) + seconds
    return found


def offload_seconds(
    moved: Iterable[Moved], bandwidths: Mapping[str, Number | None]
) -> dict[str, float]:
    """Return the time that offload takes on each link, none of it hidden.

    Raises:
        EstimateError: no bandwidth of a link that it needs.
    """
    found: dict[str, float] = {}
    for one in moved:
        bandwidth = bandwidths[one.link]
        if bandwidth is None:
            raise EstimateError(
                f"offload: got no bandwidth of {one.link}, expected --"
                f"{one.link.lower()}-bandwidth of one GPU"
            )
        found[one.link] = found.get(one.link, 0.0) + float(one.bytes / bandwidth)
    return found
