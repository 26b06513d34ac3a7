"""The search behind a plan: every way to cut a model, each weighed once.

A layout is tp, pp, cp, ep, dp and a ZeRO stage; its variants are microbatch size,
recompute and pipeline chunks. The best variant that fits stands for its layout. What
variants share (weights of a stage, activations of a layer, traffic of a microbatch) is
made once, by the functions that ``memory`` and ``step_time`` are made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from operator import add

from readerkit.errors import EstimateError
from readerkit.estimate.layout import Layout, misfits, stage_layers
from readerkit.estimate.link_time import axis_seconds, group_seconds, strides
from readerkit.estimate.memory import (
    ActivationPieces,
    activation_pieces,
    gathered_bytes,
    rank_weights,
    state_bytes,
    telling_ranks,
)
from readerkit.estimate.pipeline import Pipeline
from readerkit.estimate.quantity import Number
from readerkit.estimate.setup import Setup
from readerkit.estimate.step_time import compose, microbatch_seconds
from readerkit.estimate.step_traffic import dp_step_traffic, model_step_traffic

MICRO_BATCHES = (1, 2, 4, 8, 16)
MAX_CHUNKS = 8
MIN_CONTEXT = 4096
"""Tokens of a sequence on one rank below which context parallel is not tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest(Setup):
    """What is to be trained on what."""

    gpus: int
    global_batch: int
    sequence: int = 4096
    flash: bool = True
    tokens: Number | None = None
    """Of the whole training, for days; None: only a step is timed."""
    deadline_days: Number | None = None
    means: Layout | None = None
    """Whose ZeRO stage, recompute and sequence parallelism alone; None: any."""

    @property
    def step_tokens(self) -> int:
        """Tokens of one step."""
        return self.global_batch * self.sequence


# --- 1. every way to cut --------------------------------------------------------------


def divisors(number: int) -> list[int]:
    """Return the divisors of a number, in order."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


def cuts(question: PlanRequest) -> Iterator[Layout]:
    """Yield every product tp × pp × cp × dp that is the number of GPUs, with ep."""
    shape, gpus = question.shape, question.gpus
    means = question.means or Layout()
    for tp in divisors(gpus):
        for pp in divisors(gpus // tp):
            for cp in divisors(gpus // tp // pp):
                dp = gpus // tp // pp // cp
                for ep in divisors(shape.experts) if shape.experts else [1]:
                    if dp * cp % ep == 0:
                        yield Layout(
                            dp=dp,
                            tp=tp,
                            pp=pp,
                            cp=cp,
                            ep=ep,
                            sequence=question.sequence,
                            flash=question.flash,
                            recompute="none",
                            sequence_parallel=means.sequence_parallel,
                            cp_kind=means.cp_kind,
                        )


def cut_of(layout: Layout) -> tuple[int, ...]:
    """Return what tells one cut from another, whatever the ZeRO stage."""
    return layout.tp, layout.pp, layout.cp, layout.ep, layout.dp


def variants(
    question: PlanRequest, cut: Layout
) -> Iterator[tuple[int, int, list[int]]]:
    """Yield microbatch size, microbatches, and the chunks that these allow."""
    each = question.global_batch // cut.dp
    chunks = [v for v in range(1, MAX_CHUNKS + 1) if _cuts_evenly(question, cut.pp, v)]
    for micro_batch in MICRO_BATCHES:
        if each % micro_batch:
            continue
        microbatches = each // micro_batch
        several = cut.pp > 1 and microbatches % cut.pp == 0
        yield micro_batch, microbatches, chunks if several else [1]


def _cuts_evenly(question: PlanRequest, pp: int, v: int) -> bool:
    try:
        stage_layers(question.shape.layers, pp, v)
    except EstimateError:
        return False
    return True


# --- 2. the search --------------------------------------------------------------------


@dataclass(slots=True)
class Best:
    """The best variant of one layout so far, and the one that needs least memory."""

    stage: Layout
    seconds: float = inf
    fastest: tuple[Layout, int, int] | None = None
    """Its microbatch, their number, and its chunks; None: nothing fits yet."""
    least_bytes: float = inf
    least: tuple[Layout, int, int] | None = None

    @property
    def layout(self) -> Layout | None:
        """The fastest variant that fits."""
        return _variant(self.stage, self.fastest) if self.fastest else None

    @property
    def leanest(self) -> Layout | None:
        """The variant that needs least memory."""
        return _variant(self.stage, self.least) if self.least else None


def _variant(stage: Layout, chosen: tuple[Layout, int, int]) -> Layout:
    base, microbatches, v = chosen
    return replace(
        base,
        zero=stage.zero,
        microbatches=microbatches,
        virtual_stages=v,
        schedule=_pipeline(base.pp, microbatches, v).schedule,
    )


def _pipeline(stages: int, microbatches: int, chunks: int) -> Pipeline:
    schedule = "interleaved" if chunks > 1 else "1f1b"
    return Pipeline(schedule, stages, microbatches, chunks)


@dataclass(frozen=True, slots=True)
class _Seconds:
    """Times that the variants of one microbatch size and recompute share."""

    microbatch: float
    blocking: float
    """Tensor and expert parallel, for one microbatch."""
    send: float
    """The messages of the pipeline, for one microbatch and chunk."""
    tie: float
    """The sum of a tied table, once in a step."""
    context: float
    """Context parallel, for one microbatch."""


class Search:
    """One pass over all variants, with the pieces they share made once."""

    def __init__(self, question: PlanRequest) -> None:
        self.question = question
        self.kept = question.kept
        # Flash attention has no scores to recompute: selective would be none.
        kinds = ("none", "full") if question.flash else ("none", "selective", "full")
        means = question.means
        self.recomputes = (means.recompute,) if means else kinds
        self.zeros = (means.zero,) if means else (0, 1, 2, 3)
        self.examined = 0
        self.dropped: dict[str, tuple[int, str]] = {}
        self.best: list[Best] = []

    def run(self) -> None:
        """Weigh every variant of every layout."""
        batch = self.question.global_batch
        for cut in cuts(self.question):
            reasons = misfits(self.question.shape, cut)
            if batch % cut.dp:
                reasons.append(
                    f"batch: got {batch}, expected a multiple of dp {cut.dp}"
                )
            if reasons:
                self._drop("cannot be cut", reasons[0])
            elif cut.cp > 1 and cut.sequence // cut.cp < MIN_CONTEXT:
                self._drop(
                    "context cut too short",
                    f"cp {cut.cp} leaves {cut.sequence // cut.cp} tokens a rank, too "
                    f"few for kernels to reach the efficiency assumed ({MIN_CONTEXT})",
                )
            else:
                self.best += self._weigh(cut)

    def _drop(self, why: str, example: str) -> None:
        count, first = self.dropped.get(why, (0, example))
        self.dropped[why] = count + 1, first

    def _stages(self, cut: Layout) -> list[Layout]:
        """Return a cut with each ZeRO stage; FSDP beside a pipeline is one (Llama 3).

        What each microbatch sums and gathers anew counts in the time.
        """
        stages = self.zeros if cut.replicas > 1 else (0,)
        return [replace(cut, zero=zero) for zero in stages]

    def _weigh(self, cut: Layout) -> list[Best]:
        """Return the best variant of a cut under each ZeRO stage."""
        question, usable = self.question, self.question.usable_bytes
        stages = self._stages(cut)
        held = self._states(cut, stages)
        once = [self._once(stage) for stage in stages]
        best = [Best(stage) for stage in stages]
        for micro_batch, microbatches, chunks in variants(question, cut):
            pipelines = [_pipeline(cut.pp, microbatches, v) for v in chunks]
            for recompute in self.recomputes:
                # Of one microbatch: how many there are is counted in below.
                base = replace(cut, micro_batch=micro_batch, recompute=recompute)
                pieces = self._pieces(base)
                seconds: _Seconds | None = None
                for pipeline in pipelines:
                    v = pipeline.virtual_stages
                    work = [
                        piece.held(pipeline) + piece.recomputed + piece.logits
                        for piece in pieces
                    ]
                    self.examined += len(stages)
                    for at, one in enumerate(best):
                        bytes_held = max(map(add, held[at], work))
                        if bytes_held < one.least_bytes:
                            one.least_bytes = bytes_held
                            one.least = base, microbatches, v
                        if bytes_held > usable:
                            continue
                        # Made only for what fits: most of the work is here.
                        seconds = seconds or self._seconds(base)
                        first, more = once[at]
                        sums = first + more * (microbatches - 1)
                        total = self._total(cut.pp, microbatches, v, seconds, sums)
                        if total < one.seconds:
                            one.seconds = total
                            one.fastest = base, microbatches, v
        return best

    def _pieces(self, base: Layout) -> list[ActivationPieces]:
        question = self.question
        return activation_pieces(
            question.shape,
            base,
            telling_ranks(question.shape, base.pp),
            element_bytes=self.kept.activation,
        )

    def _states(self, cut: Layout, stages: list[Layout]) -> list[list[Number]]:
        """Return for each stage what each telling rank holds, whatever the microbatch.

        All stages cut the same weights.
        """
        shape = self.question.shape
        weights = [
            (rank, *rank_weights(shape, cut, rank))
            for rank in telling_ranks(shape, cut.pp)
        ]
        return [
            [
                sum(state_bytes(dense, expert, stage, self.kept)[:3])
                + gathered_bytes(shape, stage, self.kept, rank)
                for rank, dense, expert in weights
            ]
            for stage in stages
        ]

    def _once(self, stage: Layout) -> tuple[float, float]:
        """Return the time of data parallelism: with one microbatch, and for each more.

        Stage 2 sums again for each microbatch, stage 3 gathers again too.
        """
        one = self._dp_seconds(stage)
        if stage.zero < 2:
            return one, 0.0
        return one, self._dp_seconds(replace(stage, microbatches=2)) - one

    def _dp_seconds(self, stage: Layout) -> float:
        question = self.question
        traffics = dp_step_traffic(question.shape, stage, self.kept)
        efficiency = question.assumptions.link_efficiency
        seconds = axis_seconds(traffics, stage, question.cluster, efficiency)
        return sum(seconds.values())

    def _seconds(self, base: Layout) -> _Seconds:
        """Return the times of one microbatch; all of them grow with their number."""
        question, cluster = self.question, self.question.cluster
        efficiency, distance = question.assumptions.link_efficiency, strides(base)
        times = dict.fromkeys(("tp", "ep", "send", "pp", "cp"), 0.0)
        for traffic in model_step_traffic(question.shape, base, self.kept):
            key = "send" if traffic.operation == "send-recv" else traffic.axis
            stride = distance[traffic.axis]
            times[key] += group_seconds(cluster, traffic, stride, efficiency)
        return _Seconds(
            microbatch=microbatch_seconds(
                question.shape,
                base,
                cluster,
                question.assumptions,
                element_bytes=self.kept.activation,
            ),
            blocking=times["tp"] + times["ep"],
            send=times["send"],
            tie=times["pp"],
            context=times["cp"],
        )

    def _total(self, pp: int, m: int, v: int, seconds: _Seconds, once: float) -> float:
        blocking = seconds.blocking + seconds.send * v + seconds.tie / m
        compute, bubble, exposed, context = compose(
            microbatch_s=seconds.microbatch,
            per_microbatch_s=blocking,
            once_s=once,
            context_s=seconds.context * m,
            microbatches=m,
            idle=(pp - 1) / v,
            overlap=self.question.assumptions.overlap,
        )
        return compute + bubble + exposed + context + blocking * m
