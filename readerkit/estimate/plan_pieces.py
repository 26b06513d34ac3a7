"""What the variants of a plan share, each piece made once.

Weights of a stage, activations of a layer, the times of a microbatch: by the functions
that ``memory`` and ``step_time`` are made of.
"""

from __future__ import annotations

from typing import NamedTuple

from readerkit.estimate.layout import Layout
from readerkit.estimate.link_time import (
    axis_seconds,
    group_seconds,
    offload_seconds,
    stride_of,
)
from readerkit.estimate.memory import (
    ActivationPieces,
    activation_pieces,
    gathered_bytes,
    rank_weights,
    state_bytes,
)
from readerkit.estimate.offload import offload_traffic
from readerkit.estimate.plan_cuts import PlanRequest
from readerkit.estimate.quantity import Number
from readerkit.estimate.rank_layers import telling_ranks
from readerkit.estimate.states import OFFLOAD
from readerkit.estimate.step_time import microbatch_seconds
from readerkit.estimate.step_traffic import dp_step_traffic, model_step_traffic


class SharedSeconds(NamedTuple):
    """Times that the variants of one microbatch size and recompute share."""

    microbatch: float
    tp: float
    ep: float
    etp: float
    send: float
    """The messages of the pipeline, for one microbatch and chunk."""
    tie: float
    """The sum of a tied table, once in a step."""
    context: float
    """Context parallel, for one microbatch."""


class GrowingTime(NamedTuple):
    """A time with one microbatch, or one sequence in it, and for each more."""

    one: float
    more: float

    def of(self, number: int) -> float:
        """Return the time of so many."""
        return self.one + self.more * (number - 1)


class PlanPieces:
    """The pieces of one request."""

    def __init__(self, question: PlanRequest) -> None:
        self.question, self.kept = question, question.kept

    def stages(self, placed: Layout) -> list[Layout]:
        """Return a cut with each ZeRO stage; FSDP beside a pipeline is one (Llama 3).

        What each microbatch sums and gathers anew counts in the time. Without replicas
        there is nothing to shard, but for what offload takes.
        """
        least = OFFLOAD[placed.offload].stage
        stages = self.question.zeros if placed.replicas > 1 else (least,)
        return [placed._replace(zero=zero) for zero in stages if zero >= least]

    def activations(self, one: Layout) -> list[ActivationPieces]:
        """Return the activations of each telling rank, before a schedule holds them."""
        question = self.question
        return activation_pieces(
            question.shape,
            one,
            telling_ranks(question.shape, one.pp),
            element_bytes=self.kept.activation,
        )

    def microbatch(self, one: Layout) -> float:
        """Return the seconds that the slowest rank computes for a microbatch of one."""
        question = self.question
        return microbatch_seconds(
            question.shape,
            one,
            question.cluster,
            question.assumptions,
            element_bytes=self.kept.activation,
        )

    def states(self, placed: Layout, stages: list[Layout]) -> list[list[Number]]:
        """Return for each stage what each telling rank holds, whatever the microbatch.

        All stages cut the same weights.
        """
        shape = self.question.shape
        weights = [
            (rank, *rank_weights(shape, placed, rank))
            for rank in telling_ranks(shape, placed.pp)
        ]
        return [
            [
                sum(state_bytes(dense, expert, stage, self.kept)[:3])
                + gathered_bytes(shape, stage, self.kept, rank)
                for rank, dense, expert in weights
            ]
            for stage in stages
        ]

    def sums(self, stage: Layout) -> list[GrowingTime]:
        """Return the times of data parallelism, and of each link of offload.

        Stage 2 sums again for each microbatch, stage 3 gathers again too.
        """
        grow = stage.zero >= 2 or stage.offload != "none"
        first = self._sum_seconds(stage)
        if not grow:
            return [GrowingTime(each, 0.0) for each in first]
        second = self._sum_seconds(stage._replace(microbatches=2))
        return [GrowingTime(a, b - a) for a, b in zip(first, second, strict=True)]

    def _sum_seconds(self, stage: Layout) -> list[float]:
        question = self.question
        traffics = dp_step_traffic(question.shape, stage, self.kept)
        efficiency = question.assumptions.link_efficiency
        seconds = axis_seconds(traffics, stage, question.cluster, efficiency)
        moved = offload_traffic(question.shape, stage, self.kept)
        links = offload_seconds(moved, question.assumptions.bandwidths)
        return [sum(seconds.values()), *links.values()]

    def growing(self, one: Layout, compute: float) -> list[GrowingTime]:
        """Return the times of a microbatch of one sequence, and what each more adds."""
        first = self._shared(one, compute)
        second = self._shared(one._replace(micro_batch=2), 2 * compute)
        return [GrowingTime(a, b - a) for a, b in zip(first, second, strict=True)]

    def _shared(self, base: Layout, compute: float) -> SharedSeconds:
        """Return the times of one microbatch; each more takes as long."""
        question, cluster = self.question, self.question.cluster
        efficiency = question.assumptions.link_efficiency
        times = dict.fromkeys(("tp", "ep", "etp", "send", "pp", "cp"), 0.0)
        for traffic in model_step_traffic(question.shape, base, self.kept):
            sends = traffic.axis == "pp" and traffic.operation == "send-recv"
            key = "send" if sends else traffic.axis
            stride = stride_of(traffic, base, cluster)
            times[key] += group_seconds(cluster, traffic, stride, efficiency)
        return SharedSeconds(compute, *times.values())
