"""The step of one layout, part by part: its time, its MFU, and the memory it needs."""

from __future__ import annotations

from readerkit.estimate.fit import check_fit
from readerkit.estimate.flops import (
    FORWARD,
    KORTHIKANTI,
    TOKENS,
    attention_words,
    forward_flops_per_token,
)
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.layout import Layout
from readerkit.estimate.schedules import STAGGERED, UNSYNCHRONIZED
from readerkit.estimate.setup import Setup
from readerkit.estimate.step_time import (
    BLOCKING,
    LINKS,
    StepTime,
    attention_kind,
    idle_microbatches,
    slowest_microbatch,
)
from readerkit.model.language import Told

MODEL = "readerkit's model of a step (readerkit/estimate/step_time.py)"


def estimate_step(setup: Setup, layout: Layout) -> Estimate:
    """Return the time of a step in a layout, its parts, its MFU, and its memory.

    Raises:
        EstimateError: a layout that the model cannot be cut into.
    """
    check_fit(setup.shape, layout)
    sheet = Worksheet(
        Told(
            "a step on one GPU of {cluster}"
            if layout.world_size == 1
            else "a step on {gpus} GPUs of {cluster}",
            gpus=layout.world_size,
            cluster=setup.cluster.name,
        )
    )
    parts = _parts(sheet, setup, layout)
    kind = attention_kind(layout)
    words = attention_words(setup.shape, kind)
    batch = sheet.given("batch", layout.global_batch, "sequences of a step")
    tokens = sheet.given("s", layout.sequence, "tokens of a sequence")
    sheet.given("GPUs", layout.world_size, "of the layout")
    sheet.write(
        f"""
        step time [seconds] = {" + ".join(parts)} | {MODEL} | nothing else is waited for
        {TOKENS} [tokens] = batch × s | a count | of all data-parallel ranks
        tokens a second [tokens/s] = {TOKENS} / step time | a count | of the whole job
        {FORWARD} [FLOPs] = forward | {KORTHIKANTI} | {words}
        model FLOPs [FLOPs] = 3 × {TOKENS} × {FORWARD} | {KORTHIKANTI}
            | nothing recomputed, {words}
        FLOP/s per GPU [FLOP/s] = model FLOPs / step time / GPUs | a count
            | of model FLOPs, {words}
        MFU [fraction] = model FLOPs / (step time × GPUs × peak)
            | Chowdhery et al. 2204.02311, appendix B
            | {setup.mfu_convention(layout.flash)}
        """,
        batch=batch,
        forward=forward_flops_per_token(
            setup.shape.named(), sequence=tokens, attention=kind
        ),
    )
    _memory(sheet, setup, layout)
    if more := _nodes(setup, layout):
        sheet.notes.append(more)
    if layout.schedule in STAGGERED:
        sheet.notes.append(UNSYNCHRONIZED)
    if layout.offload != "none":
        sheet.notes.append("what the CPU computes for the update comes on top")
    return sheet.estimate()


def _parts(sheet: Worksheet, setup: Setup, layout: Layout) -> list[str]:
    """Write down where the time goes, and return the names of what adds up to it."""
    time, assumed = setup.time(layout), setup.assumptions
    sheet.given("o_c", assumed.overlap, "share of traffic that compute hides at most")
    sheet.given("m", layout.microbatches, "microbatches of a rank")
    _compute(sheet, setup, layout)
    for axis in time.alone:
        _communication(sheet, setup, axis, time)
    shown = [_part(axis) for axis, seconds in time.exposed.items() if seconds]
    if time.bubble:
        waits = [_part(axis) for axis in BLOCKING if time.exposed.get(axis)]
        once = " + ".join(["compute", *waits])
        sheet.given(
            "I_m",
            idle_microbatches(setup.shape, layout),
            "microbatches that a rank could do while it waits (estimate bubble)",
        )
        sheet.write(
            f"bubble [seconds] = I_m × ({once}) / m | {MODEL}"
            f" | {layout.schedule}: idle time, as of estimate bubble"
        )
    parts = ["compute", *shown, *(["bubble"] if time.bubble else [])]
    behind = [axis for axis in time.alone if axis not in BLOCKING]
    if behind:
        alone = " + ".join(f"T_{axis}" for axis in behind)
        less = "".join(f" - {_part(axis)}" for axis in behind if time.exposed[axis])
        sheet.write(
            f"hidden communication [seconds] = {alone}{less} | {MODEL}"
            f" | behind compute, in no sum; {_links(setup)}"
        )
    return parts


def _compute(sheet: Worksheet, setup: Setup, layout: Layout) -> None:
    """Write down the time of arithmetic and of activations, of all microbatches."""
    assumed, gpu = setup.assumptions, setup.cluster.gpu
    flops, moved = slowest_microbatch(
        setup.shape, layout, element_bytes=setup.kept.activation
    )
    efficiency = assumed.kernel_efficiency or gpu.kernel_efficiency
    sheet.given("F_m", flops, "FLOPs of a microbatch on the slowest rank")
    sheet.given("A_m", moved, "bytes of its activations")
    sheet.given("e_k", efficiency, "share of the peak that kernels reach")
    sheet.given("r_m", assumed.memory_passes, "times that activations cross the memory")
    sheet.given("B_m", gpu.memory_bytes_per_s, "bytes a second of the GPU's memory")
    sheet.given("peak", gpu.flops_per_s, "FLOP/s of one GPU")
    source = "given" if assumed.kernel_efficiency else gpu.efficiency_source
    sheet.write(
        f"compute [seconds] = m × (F_m / (peak × e_k) + A_m × r_m / B_m) | {MODEL}"
        f" | kernels at {efficiency:.0%} of the peak ({source}), activations through"
        f" memory {assumed.memory_passes:g} times"
    )


def _part(axis: str) -> str:
    """Return the name of what shows of the traffic of an axis."""
    return f"offload over {axis}" if axis in LINKS else f"communication of {axis}"


def _communication(sheet: Worksheet, setup: Setup, axis: str, time: StepTime) -> None:
    """Write down what shows of the traffic of an axis, if anything does."""
    offload = axis in LINKS
    sheet.given(
        f"T_{axis}", time.alone[axis], "seconds of all its traffic, none hidden"
    )
    if not time.exposed[axis]:
        return
    hides = axis not in BLOCKING
    share = (
        f"{setup.assumptions.overlap:.0%} behind compute" if hides else "none hidden"
    )
    speed = "the bandwidth given, one way after the other" if offload else _links(setup)
    shows = f"max(T_{axis} × (1 - o_c), T_{axis} - compute)" if hides else f"T_{axis}"
    sheet.write(
        f"{_part(axis)} [seconds] = {shows} | {MODEL} | what shows; {speed}, {share}"
    )


def _links(setup: Setup) -> str:
    """Return how much of its bandwidth a link is taken to give, in words."""
    return f"links at {setup.assumptions.link_efficiency:.0%} of their bandwidth"


def _nodes(setup: Setup, layout: Layout) -> str:
    """Return how many nodes a job takes, and whether tensor parallelism leaves one."""
    per_node, gpus = setup.cluster.gpus_per_node, layout.world_size
    nodes = -(-gpus // per_node)
    if nodes == 1:
        return ""
    across = -(-layout.tp // per_node)
    beyond = f"; tp {layout.tp} spans {across} of them" if across > 1 else ""
    return f"{gpus} GPUs are {nodes} nodes of {per_node}{beyond}"


def _memory(sheet: Worksheet, setup: Setup, layout: Layout) -> None:
    """Write down what the most loaded GPU holds, and what is left of it."""
    sheet.given("memory", setup.most_loaded(layout).total)
    sheet.given("GPU memory", setup.cluster.gpu.memory_bytes, "as sold")
    sheet.given("r", setup.reserve, "share of a GPU kept free")
    sheet.write(
        f"""
        memory [bytes] = memory | estimate memory
            | {setup.convention}, the most loaded GPU at the peak of a step
        usable [bytes] = GPU memory × (1 - r)
            | an assumption: CUDA context, NCCL buffers, fragmentation
            | {setup.reserve:.0%} kept free
        left [bytes] = usable - memory | a count | what is usable, less the memory
        """
    )
    fits = "fits" if sheet["left"] >= 0 else "does not fit"
    sheet.notes.append(f"it {fits} the GPU; estimate memory says what holds how much")
