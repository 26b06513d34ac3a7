"""Anti-patterns of a layout, each with the number that condemns it.

A finding is a comparison: this layout against the same one without the fault, or
against a bound that its source gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from typing import Any

from readerkit.estimate.findings import Finding, Setting
from readerkit.estimate.fit import check_fit, misfits
from readerkit.estimate.layout import Layout
from readerkit.estimate.memory_timeline import first_failure
from readerkit.estimate.schedules import CHUNKED
from readerkit.estimate.setup import microbatches
from readerkit.estimate.step_time import StepTime
from readerkit.model.language import Told
from readerkit.wording.numbers import format_bytes, format_rate, format_seconds

MAX_BUBBLE = 0.2
"""Of total time; a pipeline with four times as many microbatches as ranks has 16%."""
MAX_COMMUNICATION = 0.2
"""Of total time."""


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
        *_bubble(setting),
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
        setting.cluster.gpu.memory_bytes,
        setting.reserve,
    )
    yield Finding(
        "does-not-fit",
        Told("the most loaded GPU holds more than it has"),
        Told("{held} at the peak; {why}", held=format_bytes(held, 2), why=failure),
        Told("more sharding (tp, pp, ZeRO), a smaller microbatch, or recompute"),
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
        Told(
            "--sync: gradients are summed after each of {count} microbatches",
            count=layout.microbatches,
        ),
        Told(
            "a step sends {now} for data parallelism, and {then} with no_sync, "
            "{share} shorter",
            now=format_bytes(now, 2),
            then=format_bytes(then, 2),
            share=f"{1 - after.total / before.total:.1%}",
        ),
        Told("--no-sync: one sum, after the last microbatch"),
    )


def _tensor_parallel(setting: Setting, now: StepTime) -> Iterator[Finding]:
    layout, per_node = setting.layout, setting.cluster.gpus_per_node
    if layout.tp <= per_node:
        return
    inside = layout._replace(tp=per_node, dp=layout.dp * layout.tp // per_node)
    if fewer := _same_batch(layout, inside):
        inside = inside._replace(microbatches=fewer)
    number = Told("{share} of the step", share=f"{now.exposed['tp'] / now.total:.0%}")
    if not misfits(setting.shape, inside) and layout.tp % per_node == 0:
        then = setting.time(inside)
        share = then.exposed["tp"] / then.total
        number = Told(
            "{now}, against {share} with tp {tp} inside a node",
            now=number,
            share=f"{share:.0%}",
            tp=per_node,
        )
    cluster = setting.cluster
    yield Finding(
        "tp-across-nodes",
        Told(
            "tp {tp} on nodes of {size} GPUs: every layer's collectives cross the "
            "network",
            tp=layout.tp,
            size=per_node,
        ),
        Told(
            "{number} ({inside} a GPU inside, {between} between)",
            number=number,
            inside=format_rate(cluster.inside_bytes_per_s),
            between=format_rate(cluster.between_bytes_per_s),
        ),
        Told("tp {tp} at most; the rest as pipeline or data parallel", tp=per_node),
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
                Told(
                    "{axis} {size} does not divide a node of {node} GPUs",
                    axis=axis,
                    size=size,
                    node=per_node,
                ),
                Told(
                    "{over} of {groups} groups have members in two nodes, and each "
                    "waits for {between} instead of {inside}",
                    over=over,
                    groups=groups,
                    between=format_rate(setting.cluster.between_bytes_per_s),
                    inside=format_rate(setting.cluster.inside_bytes_per_s),
                ),
                Told("a divisor of {node}", node=per_node),
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
            Told(
                "dp {dp} with {each} sequences each: too little compute for the sums "
                "of gradients",
                dp=layout.dp,
                each=each,
            ),
            Told(
                "{share} of the step is data parallel, with {batch} sequences over "
                "{dp} replicas",
                share=f"{share:.0%}",
                batch=layout.global_batch,
                dp=layout.dp,
            ),
            Told("a larger global batch, or fewer replicas of more ranks"),
        )


def check_batch(*, global_batch: int, dp: int) -> Finding | None:
    """Return the finding of a batch with less than a sequence for each replica."""
    if global_batch >= dp:
        return None
    return Finding(
        "tiny-batch-large-dp",
        Told("a global batch of {batch} on dp {dp}", batch=global_batch, dp=dp),
        Told(
            "{each} sequences for each replica: {idle} of them ({share}) have nothing "
            "to do",
            each=f"{global_batch / dp:g}",
            idle=dp - global_batch,
            share=f"{1 - global_batch / dp:.0%}",
        ),
        Told(
            "a global batch of {dp} at least, or dp {batch}", dp=dp, batch=global_batch
        ),
    )


def _bubble(setting: Setting) -> Iterator[Finding]:
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
    if layout.schedule in CHUNKED:
        enough = -(-enough // p) * p  # it takes them in groups
    yield Finding(
        "few-microbatches",
        Told(
            "pp {p} with {m}: the pipeline is filled and drained for little",
            p=p,
            m=microbatches(m),
        ),
        Told(
            "bubble {total} of total time, {ideal} of ideal: {formula}",
            total=f"{total:.1%}",
            ideal=f"{ideal.value:.1%}",
            formula=f"{ideal.formula} = {ideal.substitution}",
        ),
        Told(
            "{count} microbatches for {share}, or more chunks, or fewer stages",
            count=enough,
            share=f"{MAX_BUBBLE:.0%}",
        ),
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
        Told(
            "{k} microbatches of {size} where {fewer} of {larger} fit",
            k=k,
            size=layout.micro_batch,
            fewer=larger.microbatches,
            larger=larger.micro_batch,
        ),
        Told(
            "{held} of {usable} would be held; a step sends {now} for data parallelism "
            "now, {then} then, and is {saved} shorter",
            held=format_bytes(setting.held(larger), 2),
            usable=format_bytes(setting.usable_bytes, 2),
            now=format_bytes(setting.sent(layout), 2),
            then=format_bytes(setting.sent(larger), 2),
            saved=format_seconds(saved, 1),
        ),
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
                    Told(
                        "ZeRO {stage} with {count} microbatches, where ZeRO 1 fits",
                        stage=layout.zero,
                        count=layout.microbatches,
                    ),
                    Told(
                        "the step would be {saved} shorter: stage {stage} communicates "
                        "for each microbatch, stage 1 once",
                        saved=f"{saved:.1%}",
                        stage=layout.zero,
                    ),
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
                Told("full recompute where {kind} fits", kind=kind),
                Told(
                    "{held} of {usable}, and the step {saved} shorter",
                    held=format_bytes(setting.held(lighter), 2),
                    usable=format_bytes(setting.usable_bytes, 2),
                    saved=f"{saved:.1%}",
                ),
                f"--recompute {kind}",
            )
            return
