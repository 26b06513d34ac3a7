"""Which layout: what the search found, ranked, with reasons; and what fell out.

What is ranked is computed anew by ``memory`` and ``step_time``, so that a plan can be
checked item by item.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

from readerkit.errors import EstimateError
from readerkit.estimate.checks import (
    MAX_RANKS,
    check_amount,
    check_count,
    check_reserve,
    check_training,
)
from readerkit.estimate.layout import Layout
from readerkit.estimate.memory import RankMemory
from readerkit.estimate.plan_cuts import PlanRequest
from readerkit.estimate.plan_reasons import (
    memory_reason,
    named_schedule,
    reasons,
    time_reason,
)
from readerkit.estimate.plan_search import Best, Search
from readerkit.estimate.states import precision
from readerkit.estimate.step_time import StepTime
from readerkit.model.language import Told
from readerkit.wording.numbers import format_bytes

_OFF = "optimizer-cpu"


class Ranked(NamedTuple):
    """A layout that fits, in its best variant."""

    layout: Layout
    memory: RankMemory
    time: StepTime
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rejected:
    """Layouts that fall out for one reason, and the one that came nearest."""

    why: str
    count: int
    example: str


class Plan(NamedTuple):
    """The answer: layouts in order, and what became of the others."""

    question: PlanRequest
    ranked: tuple[Ranked, ...]
    rejected: tuple[Rejected, ...]
    examined: int
    """Variants that were weighed."""
    fitting: int
    """Layouts with a variant that fits."""
    memory_reason: str
    time_reason: str


def plan(question: PlanRequest, *, top: int = 5) -> Plan:
    """Return the layouts that fit, fastest first, and what became of the others.

    Raises:
        EstimateError: a question that no cluster can be asked.
    """
    _check(question)
    question.check_tried()
    check_count("top", top)
    search = Search(question)
    search.run()
    fitting = [best for best in search.best if best.fastest is not None]
    # Of two that are as fast, the one that needs less of everything.
    fitting.sort(key=lambda best: (round(best.seconds, 9), best.least_bytes))
    ranked = tuple(
        rank_layout(question, best.layout)
        for best in fitting[:top]
        if best.layout is not None
    )
    return Plan(
        question=question,
        ranked=ranked,
        rejected=tuple(_rejected(question, search, fitting[top:], ranked)),
        examined=search.examined,
        fitting=len(fitting),
        memory_reason=memory_reason(question),
        time_reason=time_reason(question, ranked[0].time if ranked else None),
    )


def _check(question: PlanRequest) -> None:
    check_count("gpus", question.gpus, most=MAX_RANKS)
    check_count("global batch", question.global_batch)
    check_count("sequence", question.sequence)
    check_reserve(question.reserve)
    if question.tokens is not None:
        check_training("tokens", question.tokens, of=question.step_tokens)
    if question.deadline_days is not None:
        check_amount("days", question.deadline_days)
    precision(question.convention)
    per_node = question.cluster.gpus_per_node
    if question.gpus > per_node and question.gpus % per_node:
        raise EstimateError(
            f"gpus: got {question.gpus}, expected whole nodes of {per_node} "
            f"({question.cluster.name})"
        )


def rank_layout(question: PlanRequest, layout: Layout) -> Ranked:
    """Return a layout with its memory, its time, and why it is as it is."""
    time = question.time(layout)
    why = tuple(reasons(question, layout, time))
    return Ranked(layout, question.most_loaded(layout), time, why)


def loss(recompute: str, time: StepTime) -> tuple[str, float]:
    """Return the largest loss of a layout beside its own compute, and its share."""
    parts: dict[str, float] = {
        Told("communication of {axis}", axis=axis): took
        for axis, took in time.exposed.items()
    }
    parts[Told("bubble")] = time.bubble
    if recompute == "full":
        parts[Told("recompute")] = time.compute / 4
    cause = max(parts, key=lambda name: parts[name])
    return cause, parts[cause] / time.total


def name_layout(layout: Layout) -> str:
    """Return a layout in one line: its axes, and the ZeRO stage."""
    off = "" if layout.offload == "none" else f", {layout.offload}"
    return f"{name_axes(layout)}{named_schedule(layout)}, ZeRO {layout.zero}{off}"


def name_axes(layout: Layout) -> str:
    """Return the axes of a layout in one line; context and experts above one alone."""
    axes = (("dp", layout.dp), ("tp", layout.tp), ("pp", layout.pp))
    more = (("cp", layout.cp), ("ep", layout.ep))
    words = [f"{axis} {size}" for axis, size in axes]
    words += [f"{axis} {size}" for axis, size in more if size > 1]
    words += [f"etp {layout.etp}"] * layout.folds_experts
    return ", ".join(words)


def _rejected(
    question: PlanRequest,
    search: Search,
    fitting: list[Best],
    ranked: tuple[Ranked, ...],
) -> Iterator[Rejected]:
    lost = [best for best in search.best if best.fastest is None]
    misfit = [best for best in lost if best.least_bytes > search.usable]
    if misfit:
        nearest = min(misfit, key=lambda best: best.least_bytes)
        yield Rejected(
            Told("does not fit"),
            len(misfit),
            Told(
                "nearest: {layout} needs {held} of {usable}",
                layout=name_layout(nearest.leanest),
                held=format_bytes(nearest.least_bytes, 2),
                usable=format_bytes(question.usable_bytes, 2),
            ),
        )
    if len(lost) > len(misfit):
        yield Rejected(
            Told("fits, but has no time"),
            len(lost) - len(misfit),
            Told("as {why}", why=search.untimed),
        )
    if not ranked and question.offloads == ("none",):
        yield from _offloaded(question)
    yield from _slower(fitting, search, ranked)
    for why, (count, example) in search.dropped.items():
        yield Rejected(why, count, Told("such as: {example}", example=example))


def _offloaded(question: PlanRequest) -> Iterator[Rejected]:
    """Say whether anything fits with the optimizer off the GPU; its time is not known.

    That takes a trainer that can, and the bandwidth of its PCIe.
    """
    free = question.assumptions._replace(pcie_bandwidth=inf)
    search = Search(replace(question, offloads=(_OFF,), assumptions=free))
    search.run()
    fitting = [best for best in search.best if best.fastest]
    if fitting:
        nearest = min(fitting, key=lambda best: best.least_bytes)
        yield Rejected(
            Told("would fit with {where}", where=_OFF),
            len(fitting),
            Told(
                "such as: {layout} with {held}; {options} ranks them",
                layout=name_layout(nearest.leanest),
                held=format_bytes(nearest.least_bytes, 2),
                options=f"--offload {_OFF} --pcie-bandwidth RATE",
            ),
        )


def _slower(
    fitting: list[Best], search: Search, ranked: tuple[Ranked, ...]
) -> Iterator[Rejected]:
    """Yield the layouts that fit and are not shown, by what costs them most."""
    causes: dict[str, list[tuple[float, Best, float]]] = {}
    for best in fitting:
        assert best.fastest
        time = search.time(best)
        cause, share = loss(best.fastest.recompute, time)
        causes.setdefault(cause, []).append((time.total, best, share))
    for cause, group in sorted(causes.items(), key=lambda pair: -len(pair[1])):
        seconds, slowest, share = max(group, key=lambda each: each[0])
        assert slowest.fastest
        times = seconds / ranked[0].time.total
        yield Rejected(
            Told("slower: {cause}", cause=cause),
            len(group),
            Told(
                "at worst: {layout}, {times} times the best, {share} of its step is "
                "{cause}",
                layout=name_layout(slowest.fastest.layout(slowest.zero)),
                times=f"{times:.1f}",
                share=f"{share:.0%}",
                cause=cause,
            ),
        )
