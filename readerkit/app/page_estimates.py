"""Computes what the site's page of estimates shows, from models and GPUs that ship."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any

from readerkit.app.catalog import find_cluster, find_gpu, find_model
from readerkit.app.catalog_list import list_catalog, list_prices
from readerkit.app.interface_translation import read_words
from readerkit.app.page_estimates_script import known_names
from readerkit.app.page_other_estimates import more
from readerkit.app.page_worked_estimate import (
    as_flags,
    layout_of,
    sent,
    shape_of,
    trained,
)
from readerkit.app.published_runs import compared_runs
from readerkit.estimate.bubble import Pipeline
from readerkit.estimate.bubble_estimate import estimate_bubble
from readerkit.estimate.checkpoint import estimate_checkpoint
from readerkit.estimate.collective_estimate import estimate_collective
from readerkit.estimate.defaults import CLUSTER, GLOBAL_BATCH, PRECISION, RESERVE
from readerkit.estimate.flops_estimate import estimate_flops
from readerkit.estimate.parameters import parameter_count
from readerkit.estimate.plan import Ranked, name_axes
from readerkit.estimate.plan import plan as make_plan
from readerkit.estimate.plan_cuts import PlanRequest
from readerkit.estimate.report_megatron import estimate_megatron_report
from readerkit.estimate.report_others import (
    Nodes,
    estimate_cookbook,
    estimate_deepspeed,
)
from readerkit.estimate.reports import CONVENTIONS
from readerkit.estimate.schedules import CHUNKED, SOURCES
from readerkit.estimate.setup import Setup
from readerkit.estimate.shape import Shape
from readerkit.estimate.step_estimate import estimate_step
from readerkit.render.html.estimate_examples import EstimateGroup, Examples, Worked
from readerkit.render.html.setting_card import Computing
from readerkit.wording.next_command import written
from readerkit.wording.numbers import format_bytes, format_rate, format_seconds

MEMORY: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("llama-2-7b", "h100-80gb", {"dp": 8, "flash": True}),
    ("llama-2-70b", "h100-80gb", {"dp": 8, "tp": 8, "flash": True}),
    ("mixtral-8x7b", "a100-80gb", {"dp": 32, "ep": 8, "tp": 2, "flash": True}),
)
TRAFFIC: tuple[tuple[str, dict[str, Any]], ...] = (
    ("llama-2-7b", {"dp": 8}),
    ("llama-2-70b", {"dp": 8, "tp": 8}),
    ("mixtral-8x7b", {"dp": 32, "ep": 8, "tp": 2}),
    ("mixtral-8x7b", {"dp": 8, "ep": 8, "tp": 4, "etp": 2}),
    ("llama-3-8b", {"dp": 2, "cp": 4, "cp_kind": "all-gather"}),
    ("llama-3-8b", {"dp": 2, "cp": 4, "cp_kind": "ulysses"}),
)
TOOLS: tuple[str, dict[str, Any]] = (
    "gpt3-175b",
    {"dp": 2, "tp": 8, "pp": 8, "microbatches": 16, "flash": True},
)
STATES = {"params": 7_000_000_000, "dp": 16, "zero": 2}
PIPELINE = {"stages": 4, "microbatches": 8}
STEP = {
    "dp": 6,
    "tp": 8,
    "pp": 64,
    "microbatches": 512,
    "sequence": 2048,
    "flash": True,
}
RING_RANKS = 16
RING_SIZES_MB = (1, 10, 100, 1000)
OWN_ROWS = {
    "models.yaml": """\
ours-7b:
  source: config.json of our own model
  dated: "2026-11-20"
  shape: {layers: 32, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336,
    gated_mlp: true, vocab: 32000, norm: rmsnorm, tied_embeddings: false}
""",
    "hardware.yaml": """\
dated: "2026-11-20"
gpus:
  h100-80gb: {memory_gb: 85.5, memory_gb_s: 3350, tflops: 989.4, link_gb_s: 450,
    source: nvidia-smi of our nodes, kernel_efficiency: 0.5,
    efficiency_source: our own steps}
""",
    "prices.yaml": """\
prices:
  - {vendor: runpod, gpu: h100-80gb, kind: on-demand, cloud: secure,
    usd_per_hour: "2.40", dated: "2026-11-20", source: our contract}
""",
}
"""Of a reader: a model more, another memory of a GPU, another price."""
PLANNED, GPUS, TOP = "llama-2-70b", 64, 3


@cache
def computing() -> Computing:
    """Return what settings in texts are computed with, and what is said of them."""
    words = read_words()
    return Computing(known_names(), words.estimates, words.conventions)


@cache
def work_out() -> Examples:
    """Return every estimate of the page, computed once by each process."""
    question = PlanRequest(
        shape=shape_of(PLANNED),
        cluster=find_cluster(CLUSTER),
        gpus=GPUS,
        global_batch=GLOBAL_BATCH,
        reserve=RESERVE,
    )
    made = make_plan(question, top=TOP)
    command = f"{written('estimate', 'plan')} --model {PLANNED} --gpus {GPUS}"
    return Examples(
        memory=tuple(_memory(*each) for each in MEMORY),
        traffic=tuple(_traffic(*each) for each in TRAFFIC),
        bubbles=_bubbles(),
        ring=_ring(),
        tools=_tools(),
        runs=(_steps(), _run(), _days()),
        more=more(),
        plan=made,
        plan_command=f"{command} --cluster {CLUSTER} --top {TOP}",
        best=_best(made.ranked[0]),
        catalog=list_catalog(),
        prices=list_prices(datetime.now(UTC).date()),
        catalog_command=written("estimate"),
        own_rows=OWN_ROWS,
        compared=compared_runs(),
        against_command=f"{written('estimate', 'plan')} --against all",
        known=known_names(),
        names_in_spanish=read_words().estimates,
        conventions_in_spanish=read_words().conventions,
    )


def _memory(model: str, gpu: str, values: dict[str, Any]) -> EstimateGroup:
    layout = name_axes(layout_of(values))
    stages = tuple(
        trained(f"ZeRO {stage}", model, gpu, values | {"zero": stage})
        for stage in range(4)
    )
    return EstimateGroup(f"{model} on {gpu}: {layout}", stages)


def _traffic(model: str, values: dict[str, Any]) -> EstimateGroup:
    layout = name_axes(layout_of(values))
    stages = tuple(
        sent(f"ZeRO {stage}", model, values | {"zero": stage}) for stage in (0, 1, 3)
    )
    kind = f" by {values['cp_kind']}" if "cp_kind" in values else ""
    return EstimateGroup(f"{model}: {layout}{kind}", stages)


def _bubbles() -> EstimateGroup:
    worked = []
    for name in SOURCES:
        # A schedule that does not split the backward takes both halves at once.
        sizes: dict[str, Any] = {"schedule": name} | PIPELINE
        if name in CHUNKED:
            sizes["virtual_stages"] = 2
        if not Pipeline(name).splits_backward:
            sizes["backward"] = 2
        pipeline = Pipeline.parse(sizes)
        drawn = tuple(pipeline.bars())
        command = f"{written('estimate', 'bubble')} {as_flags(sizes)}"
        worked.append(Worked(name, command, estimate_bubble(pipeline), drawn))
    p, m = PIPELINE.values()
    return EstimateGroup(
        f"{p} ranks, {m} microbatches; a backward takes as long as two forwards",
        tuple(worked),
    )


def _tools() -> EstimateGroup:
    """Return each tool's figure of a training, and our differences to it."""
    model, sizes = TOOLS
    values = sizes | {"sequence": 2048, "recompute": "selective"}
    layout, command = layout_of(values), written("estimate", "memory")
    # Megatron-LM pads the vocabulary, to 128 × tp.
    padded = Shape.parse(find_model(model) | {"vocab_multiple": 128})
    given = {"model": model, **values}
    asked: dict[str, dict[str, Any]] = {
        "megatron-report": given,
        "cookbook": given,
        "deepspeed": STATES,
    }
    nodes = Nodes(gpus=STATES["dp"])
    estimates = (
        estimate_megatron_report(padded, layout),
        estimate_cookbook(shape_of(model), layout),
        estimate_deepspeed(
            STATES["params"], nodes, stage=STATES["zero"], convention=PRECISION
        ),
    )
    return EstimateGroup(
        f"{model}: {name_axes(layout)}; and states of 7 billion parameters",
        tuple(
            Worked(tool, f"{command} --convention {tool} {as_flags(asked[tool])}", one)
            for tool, one in zip(CONVENTIONS, estimates, strict=True)
        ),
    )


def _ring() -> EstimateGroup:
    cluster = find_cluster(CLUSTER)
    bandwidth, latency = cluster.between_bytes_per_s, cluster.between_latency_s
    worked = []
    for size_mb in RING_SIZES_MB:
        for algorithm in ("ring", "tree"):
            options = {
                "ranks": RING_RANKS,
                "bandwidth": format_bytes(bandwidth).replace(" ", ""),
                "latency_us": f"{latency * 1e6:g}",
                "algorithm": algorithm,
            }
            estimate = estimate_collective(
                operation="all-reduce",
                size_bytes=size_mb * 10**6,
                ranks=RING_RANKS,
                bandwidth_bytes_per_s=bandwidth,
                latency_s=latency,
                algorithm=algorithm,
            )
            command = written("estimate", "comm", "all-reduce", f"{size_mb}MB")
            name = f"{algorithm}, {size_mb} MB"
            worked.append(Worked(name, f"{command} {as_flags(options)}", estimate))
    return EstimateGroup(
        f"an all-reduce over {RING_RANKS} ranks, between nodes of {CLUSTER}: "
        f"{format_rate(bandwidth)}, {format_seconds(latency)} a step",
        tuple(worked),
    )


def _steps() -> EstimateGroup:
    """Return the step of a published layout, under two kinds of recompute."""
    setup = Setup(
        shape=shape_of("megatron-1t"), cluster=find_cluster("dgx-a100"), reserve=RESERVE
    )
    worked = []
    for recompute in ("full", "none"):
        values = STEP | {"recompute": recompute}
        given = {"model": "megatron-1t", "cluster": "dgx-a100", **values}
        command = f"{written('estimate', 'step')} {as_flags(given)}"
        estimate = estimate_step(setup, layout_of(values))
        worked.append(Worked(f"{recompute} recompute", command, estimate))
    return EstimateGroup("a step of a trillion parameters", tuple(worked))


def _run() -> EstimateGroup:
    model, shape = "llama-3.1-405b", shape_of("llama-3.1-405b")
    given = {"model": model, "gpus": 16384, "gpu-mtbf-hours": 50000}
    given |= {"write-bandwidth": "100GB/s", "restart-s": 600}
    estimate = estimate_checkpoint(
        params=parameter_count(shape),
        write_bytes_per_s=100 * 10**9,
        gpus=16384,
        gpu_mtbf_hours=50000,
        restart_s=600,
    )
    command = f"{written('estimate', 'checkpoint')} {as_flags(given)}"
    return EstimateGroup(
        f"checkpoints of {model}", (Worked("checkpoints", command, estimate),)
    )


def _days() -> EstimateGroup:
    model = "gpt3-175b"
    given: dict[str, Any] = {"batch": 1536, "tokens": 300 * 10**9, "gpus": 1024}
    given["recompute"] = "full"
    # Of 140 that ran a quarter is recomputation (Narayanan et al. 2104.04473, 5.1).
    rate = 140 * 3 // 4
    estimate = estimate_flops(
        shape_of(model),
        **given,
        sequence=2048,
        peak_flops_per_s=find_gpu("a100-80gb").flops_per_s,
        flops_per_s_per_gpu=rate * 10**12,
    )
    given |= {"model": model, "gpu": "a100-80gb", "tflops-per-gpu": rate}
    command = f"{written('estimate', 'flops')} {as_flags(given)}"
    return EstimateGroup(
        f"the training of {model}", (Worked("a run", command, estimate),)
    )


def _best(ranked: Ranked) -> EstimateGroup:
    """Return memory and traffic of a plan's first layout, item by item."""
    usual = layout_of({})._asdict()
    values = {
        name: value
        for name, value in ranked.layout._asdict().items()
        if value != usual[name]
    }
    gpu = find_cluster(CLUSTER).gpu.name
    return EstimateGroup(
        f"{PLANNED} on {GPUS} GPUs of {CLUSTER}",
        (
            trained("the first layout, memory", PLANNED, gpu, values),
            sent("the first layout, traffic", PLANNED, values),
        ),
    )
