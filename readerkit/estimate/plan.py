"""Which layout: what the search found, ranked, with reasons; and what fell out.

What is ranked is computed anew by ``memory`` and ``step_time``, so that a plan can be
checked item by item.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, inf
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
from readerkit.estimate.link_time import ranks_in_node
from readerkit.estimate.memory import RankMemory
from readerkit.estimate.parameters import parameter_count
from readerkit.estimate.plan_cuts import SCHEDULES, PlanRequest
from readerkit.estimate.plan_search import Best, Search
from readerkit.estimate.states import precision
from readerkit.estimate.step_time import LINKS, StepTime
from readerkit.wording.numbers import format_billions, format_bytes, format_rate

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
        memory_reason=_memory_reason(question),
        time_reason=_time_reason(question, ranked),
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
    reasons = tuple(_reasons(question, layout, time))
    return Ranked(layout, question.most_loaded(layout), time, reasons)


def _reasons(question: PlanRequest, layout: Layout, time: StepTime) -> Iterator[str]:
    cluster, shares = question.cluster, time.exposed
    if layout.tp > 1:
        share = shares["tp"] / time.total
        if layout.tp <= cluster.gpus_per_node:
            yield (
                f"tp {layout.tp} stays inside the node: "
                f"{format_rate(cluster.inside_bytes_per_s)} a GPU, {share:.1%} of the "
                "step"
            )
        else:
            yield f"tp {layout.tp} crosses nodes: {share:.1%} of the step"
    if layout.pp > 1:
        how = f", {layout.virtual_stages} chunks" * (layout.virtual_stages > 1)
        how += _named_schedule(layout)
        yield (
            f"pp {layout.pp} over {layout.microbatches} microbatches{how}: bubble "
            f"{time.bubble_share:.1%}; messages {shares['pp'] / time.total:.1%}"
        )
    if layout.cp > 1:
        yield f"cp {layout.cp}: {shares['cp'] / time.total:.1%} of the step shows"
    if layout.ep > 1:
        yield f"ep {layout.ep}: {shares['ep'] / time.total:.1%} of the step"
    if layout.folds_experts:
        took = f"{shares.get('etp', 0) / time.total:.1%} of the step"
        cut = f"over {layout.etp} ranks: {took}" * (layout.etp > 1)
        cut = cut or "whole on a rank"
        yield f"etp {layout.etp}: an expert is {cut}"
    if layout.replicas > 1:
        sharded = ("nothing", "the optimizer", "optimizer and gradients", "all states")
        group = ranks_in_node(cluster, layout.replicas, layout.tp)
        where = (
            "inside a node"
            if group == layout.replicas
            else f"{group} of them in a node"
        )
        yield (
            f"{layout.replicas} replicas, {where}, shard {sharded[layout.zero]}: "
            f"{shares['dp'] / time.total:.1%} of the step shows"
        )
    if layout.recompute == "full":
        yield "full recompute: a third more compute, because activations do not fit"
    if layout.offload != "none":
        share = sum(shares.get(link, 0) for link in LINKS) / time.total
        yield (
            f"{layout.offload}: {share:.1%} of the step shows, what the CPU computes "
            "not counted"
        )


def _named_schedule(layout: Layout) -> str:
    """Return the schedule of a layout, where a reader would take it for another."""
    return "" if layout.schedule in SCHEDULES else f", {layout.schedule}"


def loss(recompute: str, time: StepTime) -> tuple[str, float]:
    """Return the largest loss of a layout beside its own compute, and its share."""
    parts = {f"communication of {axis}": took for axis, took in time.exposed.items()}
    parts["bubble"] = time.bubble
    if recompute == "full":
        parts["recompute"] = time.compute / 4
    cause = max(parts, key=lambda name: parts[name])
    return cause, parts[cause] / time.total


def name_layout(layout: Layout) -> str:
    """Return a layout in one line: its axes, and the ZeRO stage."""
    off = "" if layout.offload == "none" else f", {layout.offload}"
    return f"{name_axes(layout)}{_named_schedule(layout)}, ZeRO {layout.zero}{off}"


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
            "does not fit",
            len(misfit),
            f"nearest: {name_layout(nearest.leanest)} needs "
            f"{format_bytes(nearest.least_bytes, 2)} of "
            f"{format_bytes(question.usable_bytes, 2)}",
        )
    if len(lost) > len(misfit):
        yield Rejected(
            "fits, but has no time", len(lost) - len(misfit), f"as {search.untimed}"
        )
    if not ranked and question.offloads == ("none",):
        yield from _offloaded(question)
    yield from _slower(fitting, search, ranked)
    for why, (count, example) in search.dropped.items():
        yield Rejected(why, count, f"such as: {example}")


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
            f"would fit with {_OFF}",
            len(fitting),
            f"such as: {name_layout(nearest.leanest)} with "
            f"{format_bytes(nearest.least_bytes, 2)}; --offload {_OFF} "
            "--pcie-bandwidth RATE ranks them",
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
            f"slower: {cause}",
            len(group),
            f"at worst: {name_layout(slowest.fastest.layout(slowest.zero))}, "
            f"{times:.1f} times the best, {share:.0%} of its step is {cause}",
        )


def _memory_reason(question: PlanRequest) -> str:
    params = parameter_count(question.shape)
    kept = question.kept
    states = kept.total * params
    usable = question.usable_bytes
    text = (
        f"{kept.total} B × {format_billions(params)} parameters = "
        f"{format_bytes(states, 2)} of weights, gradients and optimizer; one GPU "
        f"offers {format_bytes(usable, 2)}"
    )
    if states <= usable:
        return f"fits one GPU, before activations: {text}"
    return f"does not fit: {text}, so {ceil(states / usable)} GPUs at the least"


def _time_reason(question: PlanRequest, ranked: tuple[Ranked, ...]) -> str:
    if not ranked:
        return "no time: nothing fits"
    best = ranked[0].time
    alone = best.total * question.gpus
    if question.tokens is None:
        return (
            f"a step of {question.step_tokens:,} tokens takes {_few(best.total)} s on "
            f"{question.gpus} GPUs, {_few(alone)} s on one of the same efficiency; "
            "whether that is too slow depends on --tokens and --days"
        )
    steps = question.tokens / question.step_tokens
    days, alone_days = (seconds * steps / 86_400 for seconds in (best.total, alone))
    text = (
        f"{question.tokens:.3g} tokens take {_few(alone_days)} days on one GPU of the "
        f"same efficiency, {_few(days)} on {question.gpus}"
    )
    if question.deadline_days is None:
        return text
    deadline = question.deadline_days
    if alone_days <= deadline:
        return f"not too slow on one: {text}, and {deadline:g} are given"
    enough = "" if days <= deadline else f": needs {ceil(alone_days / deadline)} GPUs"
    verdict = "too slow on one" if days <= deadline else "too slow even so"
    return f"{verdict}: {text}, and {deadline:g} are given{enough}"


def _few(value: float) -> str:
    """Return a time in three digits, or whole."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
