"""Anti-patterns of a layout, each with the number that condemns it.

A finding is a comparison: this layout against the same one without the fault, or
against a bound that its source gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, NamedTuple

from readerkit.estimate.layout import Layout, check_fit, misfits
from readerkit.estimate.setup import Setup
from readerkit.estimate.step_time import StepTime
from readerkit.estimate.step_traffic import dp_step_traffic
from readerkit.estimate.timeline import first_failure
from readerkit.wording.numbers import format_bytes, format_rate, format_seconds

MAX_BUBBLE = 0.2
"""Of total time; a pipeline with four times as many microbatches as ranks has 16%."""
MAX_COMMUNICATION = 0.2
"""Of total time."""


class Finding(NamedTuple):
    """One anti-pattern in a layout."""

    code: str
    what: str
    number: str
    """What condemns it."""
    instead: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(Setup):
    """A layout and what it is to run on."""

    layout: Layout

    def sent(self, layout: Layout) -> float:
        """Return the bytes that data parallelism sends with another layout."""
        traffics = dp_step_traffic(self.shape, layout, self.kept, no_sync=self.no_sync)
        return float(sum(traffic.sent_bytes for traffic in traffics))


def lint(setting: Setting) -> list[Finding]:
    """Return the anti-patterns of a layout, the gravest first.

    Raises:
        EstimateError: a layout that the model cannot be cut into.
    """
    check_fit(setting.shape, setting.layout)
    sync = list(_sync(setting))
    # What follows is weighed without that fault, or it would be blamed on the batch.
    setting = replace(setting, no_sync=True) if sync else setting
    now = setting.time(setting.layout)
    return [
        *_memory(setting),
        *sync,
        *_tensor_parallel(setting, now),
        *_straddling(setting),
        *_batch(setting, now),
        *_bubble(setting, now),
        *_accumulation(setting, now),
        *_zero(setting, now),
        *_recompute(setting, now),
    ]


def _memory(setting: Setting) -> Iterator[Finding]:
    held = setting.held(setting.layout)
    if held <= setting.usable_bytes:
        return
    failure = first_failure(
        setting.most_loaded(setting.layout),
        setting.kept,
        setting.cluster.gpu.memory_bytes,
        setting.reserve,
    )
    yield Finding(
        "does-not-fit",
        "the most loaded GPU holds more than it has",
        f"{format_bytes(held, 2)} at the peak; {failure}",
        "more sharding (tp, pp, ZeRO), a smaller microbatch, or recompute",
    )


def _sync(setting: Setting) -> Iterator[Finding]:
    """Yield the finding of gradients that are summed more often than needed."""
    layout, waiting = setting.layout, replace(setting, no_sync=True)
    now, then = setting.sent(layout), waiting.sent(layout)
    if setting.no_sync or now <= then:
        return
    before, after = setting.time(layout), waiting.time(layout)
    yield Finding(
        "needless-sync",
        f"--sync: gradients are summed after each of {layout.microbatches} "
        "microbatches",
        f"a step sends {format_bytes(now, 2)} for data parallelism, and "
        f"{format_bytes(then, 2)} "
        f"with no_sync, {1 - after.total / before.total:.1%} shorter",
        "--no-sync: one sum, after the last microbatch",
    )


def _tensor_parallel(setting: Setting, now: StepTime) -> Iterator[Finding]:
    layout, per_node = setting.layout, setting.cluster.gpus_per_node
    if layout.tp <= per_node:
        return
    inside = layout._replace(tp=per_node, dp=layout.dp * layout.tp // per_node)
    number = f"{now.exposed['tp'] / now.total:.0%} of the step"
    if not misfits(setting.shape, inside) and layout.tp % per_node == 0:
        then = setting.time(
            inside._replace(microbatches=_same_batch(layout, inside))
            if _same_batch(layout, inside)
            else inside
        )
        share = then.exposed["tp"] / then.total
        number += f", against {share:.0%} with tp {per_node} inside a node"
    cluster = setting.cluster
    yield Finding(
        "tp-across-nodes",
        f"tp {layout.tp} on nodes of {per_node} GPUs: every layer's collectives cross "
        "the network",
        f"{number} ({format_rate(cluster.inside_bytes_per_s)} a GPU inside, "
        f"{format_rate(cluster.between_bytes_per_s)} between)",
        f"tp {per_node} at most; the rest as pipeline or data parallel",
    )


def _same_batch(layout: Layout, other: Layout) -> int:
    """Return the microbatches that keep the global batch; 0: none does."""
    each = other.dp * other.micro_batch
    return 0 if layout.global_batch % each else layout.global_batch // each


def _straddling(setting: Setting) -> Iterator[Finding]:
    per_node, layout = setting.cluster.gpus_per_node, setting.layout
    if layout.world_size <= per_node:
        return
    for axis, size in (("tp", layout.tp), ("tp × cp", layout.tp * layout.cp)):
        if size < per_node and per_node % size:
            groups = layout.world_size // size
            over = sum(
                1
                for group in range(groups)
                if group * size // per_node != (group * size + size - 1) // per_node
            )
            yield Finding(
                "straddling-groups",
                f"{axis} {size} does not divide a node of {per_node} GPUs",
                f"{over} of {groups} groups have members in two nodes, and each waits "
                f"for {format_rate(setting.cluster.between_bytes_per_s)} instead of "
                f"{format_rate(setting.cluster.inside_bytes_per_s)}",
                f"a divisor of {per_node}",
            )
            return


def _batch(setting: Setting, now: StepTime) -> Iterator[Finding]:
    layout = setting.layout
    if layout.replicas == 1 or "dp" not in now.exposed:
        return
    share = now.exposed["dp"] / now.total
    if share > MAX_COMMUNICATION:
        each = layout.micro_batch * layout.microbatches
        yield Finding(
            "tiny-batch-large-dp",
            f"dp {layout.dp} with {each} sequences each: too little compute for the "
            "sums of gradients",
            f"{share:.0%} of the step is data parallel, with {layout.global_batch} "
            f"sequences over {layout.dp} replicas",
            "a larger global batch, or fewer replicas of more ranks",
        )


def check_batch(*, global_batch: int, dp: int) -> Finding | None:
    """Return the finding of a batch with less than a sequence for each replica."""
    if global_batch >= dp:
        return None
    return Finding(
        "tiny-batch-large-dp",
        f"a global batch of {global_batch} on dp {dp}",
        f"{global_batch / dp:g} sequences for each replica: {dp - global_batch} of "
        f"them ({1 - global_batch / dp:.0%}) have nothing to do",
        f"a global batch of {dp} at least, or dp {global_batch}",
    )


def _bubble(setting: Setting, now: StepTime) -> Iterator[Finding]:
    layout = setting.layout
    if layout.pp == 1:
        return
    p, m = layout.pp, layout.microbatches
    pipeline = layout.pipeline
    total = pipeline.bubble_of_total
    if total <= MAX_BUBBLE:
        return
    ideal: Any = pipeline.named().bubble
    # With a third of the work put off, a third of 1F1B's bubble is left.
    shorter = 3 if pipeline.splits_backward else pipeline.virtual_stages
    most = MAX_BUBBLE / (1 - MAX_BUBBLE)  # of ideal time
    enough = max(p, ceil(round((p - 1) / (shorter * most), 9)))
    yield Finding(
        "few-microbatches",
        f"pp {p} with {m} microbatches: the pipeline is filled and drained for little",
        f"bubble {total:.1%} of total time, {ideal.value:.1%} of ideal: "
        f"{ideal.formula} = {ideal.substitution}",
        f"{enough} microbatches for {MAX_BUBBLE:.0%}, or more chunks, or fewer stages",
    )


def _accumulation(setting: Setting, now: StepTime) -> Iterator[Finding]:
    layout = setting.layout
    if layout.pp > 1 or layout.microbatches == 1:
        return
    k = layout.microbatches
    larger = None
    for factor in range(k, 1, -1):
        one = layout._replace(
            micro_batch=layout.micro_batch * factor, microbatches=k // factor
        )
        if k % factor == 0 and setting.held(one) <= setting.usable_bytes:
            larger = one
            break
    if larger is None:
        return
    then = setting.time(larger)
    saved = now.total - then.total
    fewer = setting.sent(larger) < setting.sent(layout)
    if not fewer and saved <= 0.01 * now.total:
        return  # the same bytes in the same time: accumulation costs nothing here
    yield Finding(
        "needless-accumulation",
        f"{k} microbatches of {layout.micro_batch} where "
        f"{larger.microbatches} of {larger.micro_batch} fit",
        f"{format_bytes(setting.held(larger), 2)} of "
        f"{format_bytes(setting.usable_bytes, 2)} would be held; a step sends "
        f"{format_bytes(setting.sent(layout), 2)} for data parallelism now, "
        f"{format_bytes(setting.sent(larger), 2)} then, and is "
        f"{format_seconds(saved, 1)} shorter",
        f"--micro-batch {larger.micro_batch}",
    )


def _zero(setting: Setting, now: StepTime) -> Iterator[Finding]:
    layout = setting.layout
    if layout.replicas == 1:
        return  # nobody to share states with
    if layout.zero >= 2 and layout.microbatches > 1:
        lighter = layout._replace(zero=1)
        if setting.held(lighter) <= setting.usable_bytes:
            then = setting.time(lighter)
            saved = 1 - then.total / now.total
            if saved > 0.01:
                yield Finding(
                    "zero-with-accumulation",
                    f"ZeRO {layout.zero} with {layout.microbatches} microbatches, "
                    "where ZeRO 1 fits",
                    f"the step would be {saved:.1%} shorter: stage {layout.zero} "
                    "communicates for each microbatch, stage 1 once",
                    "ZeRO 1",
                )


def _recompute(setting: Setting, now: StepTime) -> Iterator[Finding]:
    layout = setting.layout
    if layout.recompute != "full":
        return
    for kind in ("none", "selective"):
        lighter = layout._replace(recompute=kind)
        if setting.held(lighter) <= setting.usable_bytes:
            saved = 1 - setting.time(lighter).total / now.total
            yield Finding(
                "needless-recompute",
                f"full recompute where {kind} fits",
                f"{format_bytes(setting.held(lighter), 2)} of "
                f"{format_bytes(setting.usable_bytes, 2)}, and the step {saved:.1%} "
                "shorter",
                f"--recompute {kind}",
            )
            return
