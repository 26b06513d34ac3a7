"""What the results of labs 01 and 04 must show; every figure computed anew."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter

from readerkit.estimate.collectives import bus_bandwidth
from readerkit.labs.lab import ChecklistItem
from readerkit.labs.results import (
    DdpResult,
    DdpStep,
    FsdpResult,
    FsdpStep,
    Result,
)
from readerkit.model.freshness import MadeFrom, outdated, tell
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import format_bytes, format_rate, format_seconds

TOLERANCE = 1e-5
"""Of losses and parameters in fp32 after ten steps, where sums have another order."""


def check_origin(result: Result, today: MadeFrom) -> ChecklistItem:
    """Return whether the mini that was measured is the one at hand."""
    changed = outdated(result.made_from, today)
    where = result.environment
    evidence = (
        f"{tell(changed)}: run {typed('lab', result.lab, '--run')} again"
        if changed
        else f"{result.made}, {where.backend} on {where.devices} x {where.device}, "
        f"torch {where.torch}, load {where.load_average}"
    )
    fresh = bool(result.made_from) and not changed
    return ChecklistItem.of(
        "measured with the mini as it is, machine written down", fresh, evidence
    )


# --- lab 01 ---


def check_ddp(result: DdpResult) -> list[ChecklistItem]:
    """Return the checklist of lab 01 for a result."""
    training = result.training
    apart = max(
        (
            abs(a - b)
            for a, b in zip(training.losses, training.one_process, strict=False)
        ),
        default=float("inf"),
    )
    equal_length = len(training.losses) == len(training.one_process) >= 10
    alike = len(set(training.digests)) == 1
    sizes = {row.bytes for row in result.all_reduce}
    return [
        ChecklistItem.of(
            "two ranks or more ran",
            result.world_size >= 2 and len(training.digests) == result.world_size,
            f"{len(training.digests)} ranks",
        ),
        ChecklistItem.of(
            "the ranks hold the same parameters",
            alike,
            f"{len(set(training.digests))} digest over {len(training.digests)} ranks",
        ),
        ChecklistItem.of(
            "losses and parameters are those of one process",
            equal_length and max(apart, training.parameter_difference) <= TOLERANCE,
            f"{len(training.losses)} steps, loss within {apart:.1e}, parameters within "
            f"{training.parameter_difference:.1e}",
        ),
        ChecklistItem.of(
            "all-reduce time against size",
            len(sizes) >= 5 and all(row.median_s > 0 for row in result.all_reduce),
            _bus_bandwidths(result),
        ),
        ChecklistItem.of(
            "a step on one rank beside one on more",
            len(pairs := _ddp_pairs(result)) >= 3,
            "; ".join(_scaling(one, many) for one, many in pairs)
            or "no widths in both",
        ),
    ]


def _bus_bandwidths(result: DdpResult) -> str:
    if result.world_size < 2 or not all(row.median_s for row in result.all_reduce):
        return "a size without a time, or no second rank"
    if not result.all_reduce:
        return "no sizes"
    ordered = sorted(result.all_reduce, key=attrgetter("bytes"))
    texts = []
    for row in (ordered[0], ordered[-1]):
        rate = bus_bandwidth(
            operation="all-reduce",
            size_bytes=row.bytes,
            ranks=result.world_size,
            seconds=row.median_s,
        )
        texts.append(
            f"{row.bytes:,} B in {format_seconds(row.median_s)}, "
            f"busbw {format_rate(rate)}"
        )
    return f"{len(ordered)} sizes: " + "; ".join(texts)


def _ddp_pairs(result: DdpResult) -> list[tuple[DdpStep, DdpStep]]:
    alone = {s.hidden_size: s for s in result.steps if s.world_size == 1}
    return [
        (alone[step.hidden_size], step)
        for step in result.steps
        if step.world_size == result.world_size and step.hidden_size in alone
    ]


def _scaling(one: DdpStep, many: DdpStep) -> str:
    speed_up = (many.sequences / many.step_s) / (one.sequences / one.step_s)
    share = many.all_reduce_s / many.step_s
    return (
        f"width {many.hidden_size} ({format_bytes(many.gradient_bytes)}): "
        f"{speed_up:.2f}x the sequences a second, "
        f"{share:.0%} of the step is all-reduce"
    )


# --- lab 04 ---


def check_fsdp(result: FsdpResult) -> list[ChecklistItem]:
    """Return the checklist of lab 04 for a result."""
    worlds = sorted({step.world_size for step in result.steps})
    complete = (
        worlds == list(range(1, result.world_size + 1)) and result.world_size >= 2
    )
    policies = {step.policy for step in result.steps}
    everywhere = all(
        {s.policy for s in result.steps if s.world_size == world} == policies
        for world in worlds
    )
    wrong = [step for step in result.steps if not _collectives_fit(step)]
    seen = ", ".join(
        f"{step.policy} on {step.world_size}: {dict(step.collectives)}"
        for step in wrong[:1]
    )
    return [
        ChecklistItem.of(
            "throughput for 1 to N ranks",
            complete and all(step.step_s > 0 for step in result.steps),
            f"{', '.join(map(str, worlds)) or 'no'} ranks",
        ),
        ChecklistItem.of(
            "wrapping policies compared",
            len(policies) >= 2 and everywhere,
            "; ".join(_policies(result)),
        ),
        ChecklistItem.of(
            "collectives are those of the wrapping",
            bool(result.steps) and not wrong,
            seen
            or "a gather a group forward, one more backward for all but the root, a "
            "reduce-scatter a group; none on one rank",
        ),
        ChecklistItem.of(
            "scaling read off",
            complete,
            "; ".join(_efficiencies(result)),
        ),
    ]


def _collectives_fit(step: FsdpStep) -> bool:
    if step.world_size == 1:  # its shard is the whole: nothing is sent
        return not step.collectives
    expected = {"all_gather": 2 * step.groups - 1, "reduce_scatter": step.groups}
    return dict(step.collectives) == expected


def _policies(result: FsdpResult) -> Iterable[str]:
    for step in result.steps:
        if step.world_size == result.world_size:
            yield (
                f"{step.policy}: {step.tokens_per_s:,.0f} tokens/s, at most "
                f"{format_bytes(step.largest_group_bytes)} of parameters in a group"
            )


def _efficiencies(result: FsdpResult) -> Iterable[str]:
    ordered = sorted(result.steps, key=attrgetter("policy", "world_size"))
    for policy, steps in groupby(ordered, key=attrgetter("policy")):
        one, *more = steps
        texts = [
            f"{s.tokens_per_s / one.tokens_per_s / s.world_size:.0%} on {s.world_size}"
            for s in more
            if one.world_size == 1 and one.tokens_per_s
        ]
        yield f"{policy}: {', '.join(texts)} of linear"
