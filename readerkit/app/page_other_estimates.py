"""What the page of estimates shows of formats, recompute, inference, one layer ..."""

from __future__ import annotations

from typing import Any

from readerkit.app.catalog import find_cluster, find_gpu
from readerkit.app.page_worked_estimate import as_flags, layout_of, shape_of, trained
from readerkit.estimate.buckets import estimate_buckets
from readerkit.estimate.collective_estimate import estimate_collective
from readerkit.estimate.collectives import OPERATIONS
from readerkit.estimate.defaults import CLUSTER, PRECISION, RESERVE
from readerkit.estimate.flops_estimate import estimate_flops
from readerkit.estimate.inference import estimate_inference
from readerkit.estimate.item import Estimate
from readerkit.estimate.layer_estimate import estimate_largest, estimate_layers
from readerkit.estimate.nccl import estimate_nccl_latency
from readerkit.estimate.plan import name_axes
from readerkit.render.html.estimate_examples import EstimateGroup, Worked
from readerkit.wording.next_command import written
from readerkit.wording.numbers import format_bytes, format_rate

OFFLOAD: tuple[str, dict[str, Any]] = ("llama-2-7b", {"dp": 8, "flash": True})
FORMATS = (PRECISION, "fp8-13", "fp8lm-7")
SERVED: dict[str, Any] = {"tp": 8, "ep": 32, "dp": 32}
FOLDED: dict[str, Any] = {"tp": 4, "ep": 32, "dp": 8, "etp": 1}
CONTEXT, BATCH = 8192, 128
"""Tokens of a sequence, and sequences at once."""
RECOMPUTED: dict[str, dict[str, Any]] = {
    "none": {"recompute": "none"},
    "selective": {"recompute": "selective"},
    "modules": {"recompute": "layernorm,mlp"},
    "16 layers": {"recompute": "full", "recompute_layers": 16},
    "full": {"recompute": "full"},
}
RANKS, SIZE = 8, 10**9


def more() -> tuple[EstimateGroup, ...]:
    """Return the questions that have no section of their own."""
    return (
        _offloaded(),
        _formats(),
        _recomputed(),
        _served(),
        _gained(),
        _collectives(),
        *_others(),
    )


def _offloaded() -> EstimateGroup:
    model, sizes = OFFLOAD
    return EstimateGroup(
        f"offload: {model}, {name_axes(layout_of(sizes))}, ZeRO 3",
        tuple(
            trained(kind, model, "a100-80gb", sizes | {"zero": 3, "offload": kind})
            for kind in ("none", "optimizer-cpu", "states-nvme")
        ),
    )


def _formats() -> EstimateGroup:
    model, sizes = OFFLOAD
    return EstimateGroup(
        f"formats of states: {model}, {name_axes(layout_of(sizes))}, ZeRO 1",
        tuple(
            trained(name, model, "h100-80gb", sizes | {"zero": 1}, name)
            for name in FORMATS
        ),
    )


def _recomputed() -> EstimateGroup:
    """Return what Megatron's kinds of recompute leave to be held."""
    model, sizes = OFFLOAD
    return EstimateGroup(
        f"recompute: {model}, {name_axes(layout_of(sizes))}, ZeRO 1",
        tuple(
            trained(
                name,
                model,
                "h100-80gb",
                sizes | {"flash": False} | each,
            )
            for name, each in RECOMPUTED.items()
        ),
    )


def _served() -> EstimateGroup:
    """Return what low-rank attention, FP8 and whole experts leave to answer with."""
    model, command = "deepseek-v3", f"{written('estimate', 'memory')} --inference"
    asked: tuple[tuple[str, str, int, dict[str, Any]], ...] = (
        ("bf16", "bf16", 2, SERVED),
        ("fp8", "fp8", 1, SERVED),
        ("fp8, whole experts, pages", "fp8", 1, FOLDED | {"page_tokens": 64}),
    )
    worked = []
    for name, weights, size, given in asked:
        cut = {axis: n for axis, n in given.items() if axis != "page_tokens"}
        estimate = estimate_inference(
            shape_of(model),
            tokens=CONTEXT,
            batch=BATCH,
            layout=layout_of(cut),
            page_tokens=given.get("page_tokens", 1),
            weight_bytes=size,
            gpu_bytes=find_gpu("h800-80gb").memory_bytes,
            reserve=RESERVE,
        )
        options = {"model": model, **given, "context": CONTEXT, "batch": BATCH}
        options |= {"weights": weights, "gpu": "h800-80gb"}
        worked.append(Worked(name, f"{command} {as_flags(options)}", estimate))
    return EstimateGroup(
        f"inference: {model}, {BATCH} sequences of {CONTEXT} tokens", tuple(worked)
    )


def _collectives() -> EstimateGroup:
    """Return all that nccl-tests times, over a ring in a node."""
    cluster = find_cluster(CLUSTER)
    bandwidth, latency = cluster.inside_bytes_per_s, cluster.inside_latency_s
    command, worked = f"{written('estimate', 'comm')}", []
    for operation in OPERATIONS:
        estimate = estimate_collective(
            operation=operation,
            size_bytes=SIZE,
            ranks=RANKS,
            bandwidth_bytes_per_s=bandwidth,
            latency_s=latency,
        )
        options = f"--ranks {RANKS} --bandwidth {_typed(format_rate(bandwidth))}"
        options += f" --latency-us {latency * 1e6:g}"
        asked = f"{command} {operation} {_typed(format_bytes(SIZE))} {options}"
        worked.append(Worked(operation, asked, estimate))
    return EstimateGroup(
        f"collectives of 1 GB over {RANKS} ranks in a node of dgx-h100", tuple(worked)
    )


def _typed(quantity: str) -> str:
    """Return a quantity as one word of a command."""
    return quantity.replace(" ", "")


def _gained() -> EstimateGroup:
    """Return the speed-up of a step that was measured in two settings."""
    model, gpu = "megatron-175b", "a100-80gb"
    step_s = 13.75
    given: dict[str, Any] = {"batch": 64, "gpus": 64, "before_s": 18.13}
    estimate = estimate_flops(
        shape_of(model),
        **given,
        seconds=step_s,
        sequence=2048,
        peak_flops_per_s=find_gpu(gpu).flops_per_s,
    )
    options = as_flags({"model": model, "gpu": gpu, "step_s": step_s, **given})
    asked = f"{written('estimate', 'flops')} {options}"
    return EstimateGroup(
        f"two settings of {model}", (Worked("speed-up", asked, estimate),)
    )


def _others() -> tuple[EstimateGroup, ...]:
    """Return one layer's activations, buckets, the largest model, NCCL's latency."""
    layer = {"tp": 8, "sequence": 2048, "flash": False}
    cut = {"dp": 64}
    states: dict[str, Any] = {"dp": 64, "zero": 3}
    ranks: dict[str, Any] = {"ranks": 64, "nodes": 8}
    gpu = "v100-32gb"
    largest = estimate_largest(
        gpu_bytes=find_gpu(gpu).memory_bytes,
        reserve=RESERVE,
        stage=states["zero"],
        world_size=states["dp"],
    )
    (activations,) = estimate_layers(shape_of("gpt3-175b"), layout_of(layer))
    buckets = estimate_buckets(shape_of("llama-2-7b"), layout_of(cut))
    latency = estimate_nccl_latency(**ranks)
    asked: tuple[tuple[str, dict[str, Any], Estimate], ...] = (
        ("layer", {"model": "gpt3-175b", **layer}, activations),
        ("buckets", {"model": "llama-2-7b", **cut}, buckets),
        ("largest", {"gpu": gpu, **states}, largest),
        ("nccl", ranks, latency),
    )
    return tuple(
        EstimateGroup(
            one.title,
            (Worked(name, f"{written('estimate', name)} {as_flags(given)}", one),),
        )
        for name, given, one in asked
    )
