"""Why a plan is as it is: a layout part by part, and why one GPU does not do."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from readerkit.estimate.defaults import TRIED_SCHEDULES
from readerkit.estimate.hardware import Cluster
from readerkit.estimate.layout import Layout
from readerkit.estimate.link_time import ranks_in_node
from readerkit.estimate.parameters import parameter_count
from readerkit.estimate.plan_cuts import PlanRequest
from readerkit.estimate.schedules import STAGGERED
from readerkit.estimate.setup import microbatches
from readerkit.estimate.step_time import LINKS, StepTime
from readerkit.model.language import Told
from readerkit.wording.numbers import (
    SECONDS_PER_DAY,
    format_billions,
    format_bytes,
    format_digits,
    format_rate,
)


def reasons(question: PlanRequest, layout: Layout, time: StepTime) -> Iterator[str]:
    """Yield what a layout costs, part by part."""
    cluster, shares = question.cluster, time.exposed
    if layout.tp > 1:
        share = shares["tp"] / time.total
        if layout.tp <= cluster.gpus_per_node:
            yield Told(
                "tp {tp} stays inside the node: {rate} a GPU, {share} of the step",
                tp=layout.tp,
                rate=format_rate(cluster.inside_bytes_per_s),
                share=f"{share:.1%}",
            )
        else:
            yield Told(
                "tp {tp} crosses nodes: {share} of the step",
                tp=layout.tp,
                share=f"{share:.1%}",
            )
    if layout.pp > 1:
        how = (_chunks(layout), named_schedule(layout))
        yield Told(
            "pp {pp} over {count}{chunks}{schedule}: bubble {bubble}; messages {sent}",
            pp=layout.pp,
            count=microbatches(layout.microbatches),
            chunks=how[0],
            schedule=how[1],
            bubble=f"{time.bubble_share:.1%}",
            sent=f"{shares['pp'] / time.total:.1%}",
        )
        if layout.schedule in STAGGERED:
            yield Told(
                "ranks of {schedule} end one after another: longer by that where the "
                "optimizer waits for all",
                schedule=layout.schedule,
            )
    for axis, size, told in (
        ("cp", layout.cp, "{axis} {size}: {share} of the step shows"),
        ("ep", layout.ep, "{axis} {size}: {share} of the step"),
    ):
        if size > 1:
            shown = f"{shares[axis] / time.total:.1%}"
            yield Told(told, axis=axis, size=size, share=shown)
    if layout.folds_experts:
        yield _folding(layout, f"{shares.get('etp', 0) / time.total:.1%}")
    if layout.replicas > 1:
        yield _replicas(layout, cluster, f"{shares['dp'] / time.total:.1%}")
    if layout.recompute == "full":
        yield Told(
            "full recompute: a third more compute, because activations do not fit"
        )
    if layout.offload != "none":
        share = sum(shares.get(link, 0) for link in LINKS) / time.total
        yield Told(
            "{offload}: {share} of the step shows, what the CPU computes not counted",
            offload=layout.offload,
            share=f"{share:.1%}",
        )


def _folding(layout: Layout, share: str) -> Told:
    if layout.etp <= 1:
        return Told("etp {etp}: an expert is whole on a rank", etp=layout.etp)
    return Told(
        "etp {etp}: an expert is over {etp} ranks: {share} of the step",
        etp=layout.etp,
        share=share,
    )


def _replicas(layout: Layout, cluster: Cluster, share: str) -> Told:
    sharded = (
        Told("nothing"),
        Told("the optimizer"),
        Told("optimizer and gradients"),
        Told("all states"),
    )
    group = ranks_in_node(cluster, layout.replicas, layout.tp)
    inside = group == layout.replicas
    return Told(
        "{count} replicas, {where}, shard {sharded}: {share} of the step shows",
        count=layout.replicas,
        where=Told("inside a node")
        if inside
        else Told("{count} of them in a node", count=group),
        sharded=sharded[layout.zero],
        share=share,
    )


def _chunks(layout: Layout) -> str:
    if layout.virtual_stages == 1:
        return ""
    return Told(", {count} chunks", count=layout.virtual_stages)


def named_schedule(layout: Layout) -> str:
    """Return the schedule of a layout, where a reader would take it for another."""
    return "" if layout.schedule in TRIED_SCHEDULES else f", {layout.schedule}"


def memory_reason(question: PlanRequest) -> str:
    """Return whether the states fit one GPU."""
    params = parameter_count(question.shape)
    kept = question.kept
    states = kept.total * params
    usable = question.usable_bytes
    text = Told(
        "{bytes} B × {params} parameters = {states} of weights, gradients and "
        "optimizer; one GPU offers {usable}",
        bytes=kept.total,
        params=format_billions(params),
        states=format_bytes(states, 2),
        usable=format_bytes(usable, 2),
    )
    if states <= usable:
        return Told("fits one GPU, before activations: {text}", text=text)
    return Told(
        "does not fit: {text}, so {count} GPUs at the least",
        text=text,
        count=ceil(states / usable),
    )


def time_reason(question: PlanRequest, best: StepTime | None) -> str:
    """Return whether one GPU would take too long, by the best step; None: none fits."""
    if best is None:
        return Told("no time: nothing fits")
    alone = best.total * question.gpus
    if question.tokens is None:
        return Told(
            "a step of {tokens} tokens takes {best} s on one GPU; whether that is too "
            "slow depends on --tokens and --days"
            if question.gpus == 1
            else "a step of {tokens} tokens takes {best} s on {gpus} GPUs, {alone} s "
            "on one of the same efficiency; whether that is too slow depends on "
            "--tokens and --days",
            tokens=f"{question.step_tokens:,}",
            best=format_digits(best.total),
            gpus=question.gpus,
            alone=format_digits(alone),
        )
    steps = question.tokens / question.step_tokens
    days, alone_days = (
        seconds * steps / SECONDS_PER_DAY for seconds in (best.total, alone)
    )
    text = Told(
        "{tokens} tokens take {alone} days on one GPU of the same efficiency, {days} "
        "on {gpus}",
        tokens=f"{question.tokens:.3g}",
        alone=format_digits(alone_days),
        days=format_digits(days),
        gpus=question.gpus,
    )
    if question.deadline_days is None:
        return text
    deadline = question.deadline_days
    if alone_days <= deadline:
        told = "not too slow on one: {text}, and {deadline} are given"
        return Told(told, text=text, deadline=f"{deadline:g}")
    if days <= deadline:
        told = "too slow on one: {text}, and {deadline} are given"
        return Told(told, text=text, deadline=f"{deadline:g}")
    return Told(
        "too slow even so: {text}, and {deadline} are given: needs {count} GPUs",
        text=text,
        deadline=f"{deadline:g}",
        count=ceil(alone_days / deadline),
    )
