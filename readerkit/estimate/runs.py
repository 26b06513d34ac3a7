"""Steps that others published: what was measured, and what is predicted for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any, NamedTuple

from readerkit.errors import EstimateError
from readerkit.estimate.checks import check_amount, check_choice
from readerkit.estimate.defaults import PRECISION, RESERVE, TRIED_SCHEDULES
from readerkit.estimate.fit import check_fit
from readerkit.estimate.flops import narayanan_flops_per_iteration, step_flops
from readerkit.estimate.hardware import Cluster
from readerkit.estimate.layout import Layout
from readerkit.estimate.plan_cuts import PlanRequest, cut_of
from readerkit.estimate.plan_search import Search
from readerkit.estimate.shape import Shape
from readerkit.estimate.step_time import Assumptions

FIRST = 5
"""Among how many of a plan's first cuts a published one should be."""
NEAR, FAR = 0.15, 0.25
"""Errors of a prediction: what is aimed at for most, and for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A published step: what ran where in which layout, and how long it took."""

    name: str
    source: str
    half: str
    """``fit`` or ``judge``; of an unconfirmed row neither: empty."""
    shape: Shape
    cluster: Cluster
    layout: Layout
    seconds: float
    """Of a step, as measured."""
    convention: str
    assumed: str

    @classmethod
    def parse(
        cls, name: str, entry: Mapping[str, Any], shape: Shape, cluster: Cluster
    ) -> Run:
        """Return a run from its entry in a file.

        Raises:
            EstimateError: a layout that cannot be, or no time.
        """
        layout = Layout.parse({"recompute": "selective"} | dict(entry["layout"]))
        check_fit(shape, layout)
        unconfirmed = entry.get("unconfirmed", False)
        where = (entry[key] for key in ("source", "edition", "table", "row"))
        return cls(
            name=name,
            source=", ".join(map(str, where)),
            half="" if unconfirmed else str(entry.get("half") or ""),
            shape=shape,
            cluster=cluster,
            layout=layout,
            seconds=_seconds(entry["measured"], shape, layout),
            convention=str(entry.get("precision", PRECISION)),
            assumed=str(entry.get("assumed") or ""),
        )

    def question(
        self, assumptions: Assumptions, reserve: float = RESERVE
    ) -> PlanRequest:
        """Return what a planner would be asked for this run."""
        return PlanRequest(
            shape=self.shape,
            cluster=self.cluster,
            gpus=self.layout.world_size,
            global_batch=self.layout.global_batch,
            sequence=self.layout.sequence,
            convention=self.convention,
            reserve=reserve,
            flash=self.layout.flash,
            assumptions=assumptions,
            schedules=tuple(dict.fromkeys((*TRIED_SCHEDULES, self.layout.schedule))),
            offloads=tuple(dict.fromkeys(("none", self.layout.offload))),
            etps=tuple(dict.fromkeys((0, self.layout.etp))),
        )


def _seconds(measured: Mapping[str, Any], shape: Shape, layout: Layout) -> float:
    """Return the seconds of a step from what was published of it."""
    seconds, tflops = measured.get("seconds"), measured.get("tflops")
    if (seconds is None) == (tflops is None):
        raise EstimateError("measured: expected seconds, or tflops")
    if seconds is not None:
        return float(check_amount("measured seconds", seconds))
    counts = check_choice("counts", str(measured.get("counts")), _COUNTS)
    rate = check_amount("measured tflops", tflops) * 1e12 * layout.world_size
    return float(_COUNTS[counts](shape, layout) / rate)


def _narayanan(shape: Shape, layout: Layout) -> float:
    return float(
        narayanan_flops_per_iteration(
            batch=layout.global_batch,
            sequence=layout.sequence,
            layers=shape.layers,
            hidden=shape.hidden,
            vocab=shape.vocab,
        )
    )


def _causal(shape: Shape, layout: Layout) -> float:
    batch, sequence = layout.global_batch, layout.sequence
    return float(step_flops(shape, batch=batch, sequence=sequence, attention="causal"))


_COUNTS = {"narayanan": _narayanan, "causal": _causal}


class CutPlace(NamedTuple):
    """Where a plan puts a cut: tp, pp, cp, ep and dp, whatever the ZeRO stage."""

    place: int | None
    """Among the cuts that fit; None: it does not fit."""
    cuts: int
    """How many fit."""
    best: Layout | None
    best_seconds: float | None


class Compared(NamedTuple):
    """A published run beside what is predicted for it."""

    run: Run
    predicted: float
    """Seconds of its step, in its own layout."""
    same_means: CutPlace
    """With its own ZeRO stage, recompute and sequence parallelism alone."""
    any_means: CutPlace
    """With all that a plan tries: what it would be told today."""

    @property
    def error(self) -> float:
        """Of the prediction, as a share of what was measured."""
        return self.predicted / self.run.seconds - 1


def predict(run: Run, assumptions: Assumptions) -> float:
    """Return the predicted seconds of a run's step in its own layout."""
    return run.question(assumptions).time(run.layout).total


def compare(run: Run, assumptions: Assumptions, reserve: float = RESERVE) -> Compared:
    """Return a run beside its prediction, and where a plan ranks how it was cut."""
    question, own = run.question(assumptions, reserve), cut_of(run.layout)
    return Compared(
        run=run,
        predicted=predict(run, assumptions),
        same_means=_place(replace(question, means=run.layout), own),
        any_means=_place(question, own),
    )


def _place(question: PlanRequest, own: tuple[int, ...]) -> CutPlace:
    search = Search(question)
    search.run()
    fastest: dict[tuple[int, ...], tuple[float, Layout]] = {}
    for each in search.best:
        if each.layout is not None:
            cut = cut_of(each.layout)
            if cut not in fastest or each.seconds < fastest[cut][0]:
                fastest[cut] = each.seconds, each.layout
    order = sorted(fastest, key=lambda cut: round(fastest[cut][0], 9))
    seconds, best = fastest[order[0]] if order else (None, None)
    place = order.index(own) + 1 if own in fastest else None
    return CutPlace(place, len(order), best, seconds)


class HalfTally(NamedTuple):
    """How near the predictions of one half came."""

    runs: int
    near: int
    """Within ``NEAR``."""
    not_far: int
    """Within ``FAR``."""
    first: int
    """Whose cut is among the ``FIRST`` with its own means."""
    first_of_any: int
    """Whose cut is among the ``FIRST`` of all that a plan tries."""
    worst: float


def tally(compared: Iterable[Compared]) -> dict[str, HalfTally]:
    """Return for each half how near the predictions came."""
    halves: dict[str, list[Compared]] = {}
    for each in compared:
        if each.run.half:
            halves.setdefault(each.run.half, []).append(each)
    return {
        half: HalfTally(
            runs=len(rows),
            near=sum(abs(each.error) <= NEAR for each in rows),
            not_far=sum(abs(each.error) <= FAR for each in rows),
            first=sum((each.same_means.place or inf) <= FIRST for each in rows),
            first_of_any=sum((each.any_means.place or inf) <= FIRST for each in rows),
            worst=max((each.error for each in rows), key=abs),
        )
        for half, rows in sorted(halves.items())
    }
