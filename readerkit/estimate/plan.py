"""Which layout: what the search found, ranked, with reasons; and what fell out.

What is ranked is computed anew by ``memory`` and ``step_time``, so that a plan can be
checked item by item.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from readerkit.errors import EstimateError
from readerkit.estimate.checks import (
    MAX_RANKS,
    check_amount,
    check_count,
    check_reserve,
)
from readerkit.estimate.layout import Layout
from readerkit.estimate.link_time import ranks_in_node
from readerkit.estimate.memory import RankMemory
from readerkit.estimate.parameters import parameter_count
from readerkit.estimate.plan_search import Best, PlanRequest, Search
from readerkit.estimate.states import precision
from readerkit.estimate.step_time import StepTime
from readerkit.wording.numbers import format_billions, format_bytes, format_rate


@dataclass(frozen=True, slots=True)
class Ranked:
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


@dataclass(frozen=True, slots=True)
class Plan:
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
    for name in ("tokens", "deadline_days"):
        value = getattr(question, name)
        if value is not None:
            check_amount(name, value)
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
        chunks = f", {layout.virtual_stages} chunks" * (layout.virtual_stages > 1)
        yield (
            f"pp {layout.pp} over {layout.microbatches} microbatches{chunks}: bubble "
            f"{time.bubble_share:.1%}; messages {shares['pp'] / time.total:.1%}"
        )
    if layout.cp > 1:
        yield f"cp {layout.cp}: {shares['cp'] / time.total:.1%} of the step shows"
    if layout.ep > 1:
        yield f"ep {layout.ep}: {shares['ep'] / time.total:.1%} of the step"
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


def loss(layout: Layout, time: StepTime) -> tuple[str, float]:
    """Return the largest loss of a layout beside its own compute, and its share."""
    parts = {f"communication of {axis}": took for axis, took in time.exposed.items()}
    parts["bubble"] = time.bubble
    if layout.recompute == "full":
        parts["recompute"] = time.compute / 4
    cause = max(parts, key=lambda name: parts[name])
    return cause, parts[cause] / time.total


def name_layout(layout: Layout) -> str:
    """Return a layout in one line: its axes, and the ZeRO stage."""
    return f"{name_axes(layout)}, ZeRO {layout.zero}"


def name_axes(layout: Layout) -> str:
    """Return the axes of a layout in one line; context and experts above one alone."""
    axes = (("dp", layout.dp), ("tp", layout.tp), ("pp", layout.pp))
    more = (("cp", layout.cp), ("ep", layout.ep))
    words = [f"{axis} {size}" for axis, size in axes]
    words += [f"{axis} {size}" for axis, size in more if size > 1]
    return ", ".join(words)


def _rejected(
    question: PlanRequest,
    search: Search,
    fitting: list[Best],
    ranked: tuple[Ranked, ...],
) -> Iterator[Rejected]:
    misfit = [best for best in search.best if best.fastest is None]
    if misfit:
        nearest = min(misfit, key=lambda best: best.least_bytes)
        assert nearest.leanest is not None
        yield Rejected(
            "does not fit",
            len(misfit),
            f"nearest: {name_layout(nearest.leanest)} needs "
            f"{format_bytes(nearest.least_bytes, 2)} of "
            f"{format_bytes(question.usable_bytes, 2)}",
        )
    yield from _slower(fitting, question, ranked)
    for why, (count, example) in search.dropped.items():
        yield Rejected(why, count, f"such as: {example}")


def _slower(
    fitting: list[Best], question: PlanRequest, ranked: tuple[Ranked, ...]
) -> Iterator[Rejected]:
    """Yield the layouts that fit and are not shown, by what costs them most."""
    causes: dict[str, list[tuple[float, Layout, float]]] = {}
    for best in fitting:
        assert best.layout is not None
        time = question.time(best.layout)
        cause, share = loss(best.layout, time)
        causes.setdefault(cause, []).append((time.total, best.layout, share))
    for cause, group in sorted(causes.items(), key=lambda pair: -len(pair[1])):
        seconds, slowest, share = max(group, key=lambda each: each[0])
        yield Rejected(
            f"slower: {cause}",
            len(group),
            f"at worst: {name_layout(slowest)}, {seconds / ranked[0].time.total:.1f} "
            f"times the best, {share:.0%} of its step is {cause}",
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
            f"a step of {question.step_tokens:,} tokens takes {best.total:.2f} s on "
            f"{question.gpus} GPUs, {alone:,.0f} s on one of the same efficiency; "
            "whether that is too slow depends on --tokens and --days"
        )
    steps = question.tokens / question.step_tokens
    days, alone_days = (seconds * steps / 86_400 for seconds in (best.total, alone))
    text = (
        f"{question.tokens:.3g} tokens take {alone_days:,.0f} days on one GPU of the "
        f"same efficiency, {days:,.1f} on {question.gpus}"
    )
    if question.deadline_days is None:
        return text
    deadline = question.deadline_days
    if alone_days <= deadline:
        return f"not too slow on one: {text}, and {deadline:g} are given"
    enough = "" if days <= deadline else f": needs {ceil(alone_days / deadline)} GPUs"
    verdict = "too slow on one" if days <= deadline else "too slow even so"
    return f"{verdict}: {text}, and {deadline:g} are given{enough}"
