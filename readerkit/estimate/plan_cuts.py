"""What a plan searches: every way to cut a model, and the pipelines a cut can have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from readerkit.errors import EstimateError
from readerkit.estimate.bubble import Pipeline, check_schedule
from readerkit.estimate.checks import check_choice, check_count
from readerkit.estimate.defaults import SEQUENCE, TRIED_SCHEDULES
from readerkit.estimate.fit import misfits
from readerkit.estimate.layout import Layout
from readerkit.estimate.quantity import Number
from readerkit.estimate.setup import Setup
from readerkit.estimate.shape import Shape
from readerkit.estimate.states import OFFLOAD, STAGES

MICRO_BATCHES = (1, 2, 4, 8, 16)
MAX_CHUNKS = 8
Way = tuple[str, int]
"""A schedule, and the chunks of a rank under it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest(Setup):
    """What is to be trained on what, and what may be tried."""

    gpus: int
    global_batch: int
    sequence: int = SEQUENCE
    flash: bool = True
    tokens: Number | None = None
    """Of the whole training, for days; None: only a step is timed."""
    deadline_days: Number | None = None
    means: Layout | None = None
    """Whose ZeRO stage, recompute and sequence parallelism alone; None: any."""
    schedules: tuple[str, ...] = TRIED_SCHEDULES
    offloads: tuple[str, ...] = ("none",)
    etps: tuple[int, ...] | None = (0,)
    """Tensor-parallel ranks of an expert; 0: tp; None: every number."""

    @property
    def step_tokens(self) -> int:
        """Tokens of one step."""
        return self.global_batch * self.sequence

    @property
    def recomputes(self) -> tuple[str, ...]:
        """What is tried; flash attention has no scores that selective would drop."""
        if self.means:
            return (self.means.recompute,)
        return ("none", "full") if self.flash else ("none", "selective", "full")

    @property
    def zeros(self) -> tuple[int, ...]:
        """The ZeRO stages that are tried where there are replicas."""
        return (self.means.zero,) if self.means else STAGES

    @property
    def searched(self) -> dict[str, tuple[Any, ...]]:
        """What a plan tries of everything that is no size of a group."""
        own = self.means or Layout()
        found: dict[str, tuple[Any, ...]] = {
            "zero": self.zeros,
            "recompute": self.recomputes,
            "micro_batch": MICRO_BATCHES,
            "schedule": self.schedules,
            "virtual_stages": tuple(range(1, MAX_CHUNKS + 1)),
            "offload": self.offloads,
            "cp_kind": (own.cp_kind,),
            "sequence_parallel": (own.sequence_parallel,),
        }
        if self.shape.experts:
            etps = self.etps or ("any",)
            found["etp"] = tuple("tp" if each == 0 else each for each in etps)
        return found

    def check_tried(self) -> None:
        """Raise where something named cannot be tried.

        Raises:
            EstimateError: an unknown schedule or offload, or experts that are not.
        """
        for name in self.schedules:
            check_schedule(name)
        for name in self.offloads:
            check_choice("offload", name, OFFLOAD)
        for ranks in self.etps or ():
            check_count("etp", ranks, least=0)
            inner = self.shape.expert_ffn
            if ranks and inner and (inner % ranks or self.gpus % ranks):
                raise EstimateError(
                    f"etp: got {ranks}, expected a divisor of {inner} (expert_ffn) and "
                    f"of {self.gpus} (gpus)"
                )
        if self.etps != (0,) and not self.shape.experts:
            named = "all" if self.etps is None else self.etps[0]
            raise EstimateError(f"etp: got {named}, expected none (no experts)")


def divisors(number: int) -> list[int]:
    """Return the divisors of a number, in order."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


def cuts(question: PlanRequest) -> Iterator[Layout]:
    """Yield every product tp × pp × cp × dp that is the number of GPUs, with experts'.

    Experts are cut over ep of the data-parallel ranks; with an etp of their own, over
    etp × ep of these and the tensor-parallel ones.
    """
    shape, gpus = question.shape, question.gpus
    means = question.means or Layout()
    eps = divisors(shape.experts) if shape.experts else [1]
    for tp in divisors(gpus):
        for pp in divisors(gpus // tp):
            for cp in divisors(gpus // tp // pp):
                dp = gpus // tp // pp // cp
                for etp in _etps(question, tp, dp * cp * tp):
                    for ep in eps:
                        over = dp * cp * tp if etp else dp * cp
                        if over % ((etp or 1) * ep) == 0:
                            yield Layout(
                                dp=dp,
                                tp=tp,
                                pp=pp,
                                cp=cp,
                                ep=ep,
                                etp=etp,
                                sequence=question.sequence,
                                flash=question.flash,
                                recompute="none",
                                sequence_parallel=means.sequence_parallel,
                                cp_kind=means.cp_kind,
                            )


def _etps(question: PlanRequest, tp: int, ranks: int) -> list[int]:
    """Return the tensor-parallel sizes of an expert beside a tp; as it: 0."""
    asked = (0, *divisors(ranks)) if question.etps is None else question.etps
    return sorted({0 if each == tp else each for each in asked})


def cut_of(layout: Layout) -> tuple[int, ...]:
    """Return what tells one cut from another, whatever the ZeRO stage."""
    sizes = layout.tp, layout.pp, layout.cp, layout.ep, layout.dp
    return (*sizes, layout.etp or layout.tp)


@lru_cache(maxsize=4096)
def ways(shape: Shape, schedules: tuple[str, ...], pp: int) -> tuple[Way, ...]:
    """Return the schedules, with their chunks, whose stages the layers divide into."""
    if pp == 1:
        return (("1f1b", 1),)
    return tuple(
        (name, v)
        for name in schedules
        for v in range(1, MAX_CHUNKS + 1)
        if not why_not(shape, pp, (name, v))
    )


def why_not(
    shape: Shape, pp: int, way: Way, microbatches: int | None = None
) -> list[str]:
    """Return what keeps a model from a schedule; by default it has microbatches."""
    name, v = way
    several = microbatches or 4 * pp
    alone = Layout(pp=pp, schedule=name, virtual_stages=v, microbatches=several)
    return misfits(shape, alone)


@lru_cache(maxsize=65_536)
def pipeline_of(way: Way, pp: int, microbatches: int) -> Pipeline | None:
    """Return a pipeline; None: not with so many microbatches."""
    sizes = {"stages": pp, "microbatches": microbatches, "virtual_stages": way[1]}
    try:
        return Pipeline.parse({"schedule": way[0]} | sizes)
    except EstimateError:
        return None


def variants(
    question: PlanRequest, cut: Layout, tried: tuple[Way, ...]
) -> Iterator[tuple[int, list[Pipeline]]]:
    """Yield microbatch sizes, and the pipelines that the rest of a batch allows."""
    each = question.global_batch // cut.dp
    for micro_batch in MICRO_BATCHES:
        if each % micro_batch == 0:
            found = (pipeline_of(way, cut.pp, each // micro_batch) for way in tried)
            pipelines = [pipeline for pipeline in found if pipeline]
            if pipelines:
                yield micro_batch, pipelines


def placements(
    question: PlanRequest, cut: Layout, tried: tuple[Way, ...]
) -> Iterator[tuple[Layout, tuple[Way, ...]]]:
    """Yield a cut with each placement of layers on ranks, and the ways that share it.

    Where layers differ, a rank's chunks say which of them it has.
    """
    differ = question.shape.plain_layers not in (0, question.shape.layers)
    found: dict[tuple[Any, ...], tuple[Layout, list[Way]]] = {}
    for name, group in groupby(tried, itemgetter(0)):
        placed = cut._replace(schedule=name)
        for _, v in group:
            tells = placed.stages_of_rank, placed.ends(0), v if differ else 1
            found.setdefault(tells, (placed, []))[1].append((name, v))
    for (*_, v), (placed, alike) in found.items():
        yield placed._replace(virtual_stages=v) if v > 1 else placed, tuple(alike)


class PlanVariant(NamedTuple):
    """One way to run a layout, under any ZeRO stage."""

    placed: Layout
    """The cut, with its offload and a schedule that puts layers on the same ranks."""
    micro_batch: int
    recompute: str
    pipeline: Pipeline

    @property
    def more_chunks(self) -> int:
        """How many chunks it has for each of its placement's."""
        return self.pipeline.virtual_stages // self.placed.virtual_stages

    def layout(self, zero: int) -> Layout:
        """Return all of it, as a layout."""
        return self.placed._replace(
            zero=zero,
            micro_batch=self.micro_batch,
            recompute=self.recompute,
            microbatches=self.pipeline.microbatches,
            virtual_stages=self.pipeline.virtual_stages,
            schedule=self.pipeline.schedule,
        )
