"""The step of one layout, part by part: its time, its MFU, and the memory it needs."""

from __future__ import annotations

from readerkit.estimate.flops import (
    FORWARD,
    KORTHIKANTI,
    TOKENS,
    attention_words,
    forward_flops_per_token,
)
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.layout import Layout, check_fit
from readerkit.estimate.setup import Setup
from readerkit.estimate.step_time import attention_kind
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
            "a step on {gpus} GPUs of {cluster}",
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
    sheet.given("peak", setup.cluster.gpu.flops_per_s, "FLOP/s of one GPU")
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
    if layout.offload != "none":
        sheet.notes.append("what the CPU computes for the update comes on top")
    return sheet.estimate()


def _parts(sheet: Worksheet, setup: Setup, layout: Layout) -> list[str]:
    """Write down where the time goes, and return the names of what adds up to it."""
    time, assumed = setup.time(layout), setup.assumptions
    gpu = setup.cluster.gpu
    efficiency = assumed.kernel_efficiency or gpu.kernel_efficiency
    links = f"links at {assumed.link_efficiency:.0%} of their bandwidth"
    parts = {
        "compute": (
            time.compute,
            f"kernels at {efficiency:.0%} of the peak "
            f"({'given' if assumed.kernel_efficiency else gpu.efficiency_source}), "
            f"activations through memory {assumed.memory_passes:g} times",
        ),
        "bubble": (time.bubble, f"{layout.schedule}: idle time, as of estimate bubble"),
    }
    for axis, seconds in time.exposed.items():
        offload = axis in ("PCIe", "NVMe")
        hides = offload or axis in ("dp", "cp")
        share = f", {assumed.overlap:.0%} behind compute" if hides else ", none hidden"
        name = f"offload over {axis}" if offload else f"communication of {axis}"
        speed = "the bandwidth given, one way after the other" if offload else links
        parts[name] = seconds, f"what shows; {speed}{share}"
    shown = {name: each for name, each in parts.items() if each[0]}
    hidden = (time.hidden, f"behind compute, in no sum; {links}")
    for name, (seconds, custom) in (shown | {"hidden communication": hidden}).items():
        sheet.given(name, seconds)
        sheet.write(f"{name} [seconds] = {name} | {MODEL} | {custom}")
    return list(shown)


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
