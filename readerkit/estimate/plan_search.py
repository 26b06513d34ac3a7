"""The search behind a plan: every way to cut a model, each weighed once.

A layout is tp, pp, cp, ep, etp, dp and a ZeRO stage; its variants are microbatch size,
recompute, offload, and the schedule of a pipeline with its chunks. The best variant
that fits stands for its layout. What variants share is made once (``plan_pieces``), and
times are made for what fits and may be the best alone.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf
from operator import add
from typing import NamedTuple

from readerkit.errors import EstimateError
from readerkit.estimate.bubble import Flight, Pipeline
from readerkit.estimate.fit import misfits
from readerkit.estimate.layout import Layout
from readerkit.estimate.plan_cuts import (
    PlanRequest,
    PlanVariant,
    Way,
    cuts,
    placements,
    variants,
    ways,
    why_not,
)
from readerkit.estimate.plan_pieces import GrowingTime, PlanPieces, SharedSeconds
from readerkit.estimate.rank_layers import telling_ranks
from readerkit.estimate.step_time import (
    LINKS,
    StepTime,
    attention_kind,
    compose,
    ideal_seconds,
    idle_of,
    spend,
    unhidden,
)
from readerkit.model.language import Told

MIN_CONTEXT = 4096
"""Tokens of a sequence on one rank below which context parallel is not tried."""


class Best:
    """The best variant of one layout so far, and the one that needs least memory."""

    __slots__ = ("fastest", "least", "least_bytes", "seconds", "step", "zero")

    def __init__(self, zero: int) -> None:
        self.zero = zero
        self.seconds: float = inf
        self.fastest: PlanVariant | None = None
        """None: nothing fits yet."""
        self.step: _Step | None = None
        """Its times."""
        self.least_bytes: float = inf
        self.least: PlanVariant | None = None

    @property
    def layout(self) -> Layout | None:
        """The fastest variant that fits."""
        return self.fastest.layout(self.zero) if self.fastest else None

    @property
    def leanest(self) -> Layout:
        """The variant that needs least memory."""
        assert self.least is not None
        return self.least.layout(self.zero)


@lru_cache(maxsize=65_536)
def _flights(pipeline: Pipeline, ranks: tuple[int, ...]) -> tuple[Flight, ...]:
    return tuple(map(pipeline.flight, ranks))


class _Step(NamedTuple):
    """The times that a variant of a layout comes to."""

    shared: SharedSeconds
    idle: float
    once: float
    """Data parallel."""
    moved: list[float]
    """Offload, link by link."""


class Search:
    """One pass over all variants, with the pieces they share made once."""

    def __init__(self, question: PlanRequest) -> None:
        self.question = question
        self.pieces = PlanPieces(question)
        self.usable = question.usable_bytes
        self.ideal_s = ideal_seconds(
            question.shape,
            question.cluster,
            batch=question.global_batch,
            sequence=question.sequence,
            attention=attention_kind(Layout(flash=question.flash)),
            gpus=question.gpus,
        )
        self.examined = 0
        self.dropped: dict[str, tuple[int, str]] = {}
        self.untimed = ""
        """Why a variant that fits has no time, where that is so."""
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
                self._drop(Told("cannot be cut"), Told(reasons[0]))
            elif cut.cp > 1 and cut.sequence // cut.cp < MIN_CONTEXT:
                self._drop(
                    Told("context cut too short"),
                    Told(
                        "cp {cp} leaves {tokens} tokens a rank, too few for kernels to "
                        "reach the efficiency assumed ({least})",
                        cp=cut.cp,
                        tokens=cut.sequence // cut.cp,
                        least=MIN_CONTEXT,
                    ),
                )
            else:
                self._weigh_all(cut)

    def _drop(self, why: str, example: str) -> None:
        count, first = self.dropped.get(why, (0, example))
        self.dropped[why] = count + 1, first

    def _weigh_all(self, cut: Layout) -> None:
        """Weigh a cut under every schedule and offload."""
        question, found = self.question, dict[int, Best]()
        tried = ways(question.shape, question.schedules, cut.pp)
        for placed, alike in placements(question, cut, tried):
            for offload in question.offloads:
                off = placed._replace(offload=offload) if offload != "none" else placed
                self._weigh(off, alike, found)
        if found:
            self.best += found.values()
            return
        way = tried[0] if tried else (question.schedules[0], 1)
        m = question.global_batch // cut.dp if tried else None
        [why, *_] = why_not(question.shape, cut.pp, way, m)
        tried_all = ", ".join(question.schedules)
        self._drop(Told("no pipeline ({schedules})", schedules=tried_all), Told(why))

    def _weigh(
        self, placed: Layout, tried: tuple[Way, ...], found: dict[int, Best]
    ) -> None:
        """Weigh the variants whose layers are on the same ranks."""
        question, stages = self.question, self.pieces.stages(placed)
        ranks = telling_ranks(question.shape, placed.pp)
        sizes = [
            (micro_batch, [(each, _flights(each, ranks)) for each in pipelines])
            for micro_batch, pipelines in variants(question, placed, tried)
        ]
        if not sizes:
            return
        held = self.pieces.states(placed, stages)
        best = [found.setdefault(at.zero, Best(at.zero)) for at in stages]
        sums: list[list[GrowingTime]] = [[] for _ in stages]
        for recompute in question.recomputes:
            one = placed._replace(recompute=recompute)
            pieces, compute = self.pieces.activations(one), self.pieces.microbatch(one)
            # No step is shorter than its compute.
            shortest = compute * (question.global_batch // placed.dp)
            self.examined += len(stages) * sum(len(each) for _, each in sizes)
            growing: list[GrowingTime] = []
            for micro_batch, pipelines in sizes:
                several = [piece.times(micro_batch) for piece in pieces]
                shared: SharedSeconds | None = None
                for pipeline, flights in pipelines:
                    work = [
                        piece.peak(pipeline, flight)
                        for piece, flight in zip(several, flights, strict=True)
                    ]
                    for at, each in enumerate(best):
                        needed = max(map(add, held[at], work))
                        fits = needed <= self.usable and shortest < each.seconds
                        if not fits and needed >= each.least_bytes:
                            continue
                        variant = PlanVariant(placed, micro_batch, recompute, pipeline)
                        if needed < each.least_bytes:
                            each.least_bytes, each.least = needed, variant
                        if fits:
                            growing = growing or self.pieces.growing(one, compute)
                            shared = shared or SharedSeconds(
                                *(grows.of(micro_batch) for grows in growing)
                            )
                            sums[at] = sums[at] or self.pieces.sums(stages[at])
                            self._time(each, variant, shared, sums[at])

    def _time(
        self,
        best: Best,
        variant: PlanVariant,
        shared: SharedSeconds,
        sums: list[GrowingTime],
    ) -> None:
        """Take a variant that fits for the best of its layout, if it is faster."""
        pipeline, overlap = variant.pipeline, self.question.assumptions.overlap
        m = pipeline.microbatches
        once, *moved = [each.of(m) for each in sums]
        sends = shared.send * variant.more_chunks
        blocking = shared.tp + shared.ep + shared.etp + sends + shared.tie / m
        compute, ramp, exposed, context = compose(
            microbatch_s=shared.microbatch,
            per_microbatch_s=blocking,
            once_s=once,
            context_s=shared.context * m,
            microbatches=m,
            idle=1,
            overlap=overlap,
        )
        total = compute + exposed + context + blocking * m
        for seconds in moved:
            total += unhidden(seconds, compute, overlap)
        if total >= best.seconds:
            return  # before a schedule is run for its idle time
        try:
            idle = idle_of(pipeline, again=int(variant.recompute == "full"))
        except EstimateError as error:
            self.untimed = str(error)
            return
        total += idle * ramp
        if total < best.seconds:
            best.seconds, best.fastest = total, variant
            best.step = _Step(shared, idle, once, moved)

    def time(self, best: Best) -> StepTime:
        """Return where the time of a layout's best variant goes."""
        variant, step, question = best.fastest, best.step, self.question
        assert variant and step
        one, m = step.shared, variant.pipeline.microbatches
        pp = one.send * variant.more_chunks * m + one.tie
        each = {"tp": one.tp, "ep": one.ep, "etp": one.etp, "cp": one.context}
        axes = {axis: seconds * m for axis, seconds in each.items()}
        axes |= {"pp": pp, "dp": step.once} | dict(zip(LINKS, step.moved, strict=False))
        return spend(
            {axis: seconds for axis, seconds in axes.items() if seconds},
            microbatch_s=one.microbatch,
            microbatches=m,
            idle=step.idle,
            overlap=question.assumptions.overlap,
            ideal_s=self.ideal_s,
        )
