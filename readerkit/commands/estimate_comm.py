"""``readerkit estimate comm``: one collective, a step's traffic, what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from readerkit.commands.estimate_options import (
    COUNT,
    SIZE,
    EstimateCommand,
    brief_option,
    layout_options,
    model_options,
    show,
    take_layouts,
    take_shape,
)
from readerkit.commands.options import json_option

if TYPE_CHECKING:
    from readerkit.estimate.item import Estimate


@click.command(
    cls=EstimateCommand,
    short_help="Bytes, steps and time of collectives and of a whole step.",
)
@click.argument("operation", required=False)
@click.argument("size", type=SIZE, required=False)
@click.option("--ranks", type=COUNT, help="Ranks of the collective.")
@click.option(
    "--bandwidth", type=SIZE, help="Per GPU, per direction, in a second: 50GB."
)
@click.option("--latency-us", type=float, default=0.0, help="Of one step.")
@click.option(
    "--algorithm", default="ring", help="ring (default), tree, hierarchical or naive."
)
@click.option("--nodes", type=COUNT, help="For hierarchical: nodes.")
@click.option("--inside-bandwidth", type=SIZE, help="For hierarchical: in a node.")
@click.option(
    "--inside-latency-us", type=float, default=0.0, help="For hierarchical: in a node."
)
@click.option("--compute-ms", type=float, help="Time of compute beside it.")
@click.option("--comm-ms", type=float, help="Time of communication, if it is known.")
@click.option(
    "--overlap",
    type=float,
    default=0.0,
    help="Share of it that compute hides (0 to 1).",
)
@click.option("--compression", is_flag=True, help="Compression of SIZE of gradients.")
@click.option("--baseline", default="fp32", help="Of compression: fp32, bf16 or fp16.")
@click.option(
    "--top-k", type=float, default=0.01, help="Share of values that top-k keeps."
)
@click.option("--rank", type=COUNT, default=4, help="Rank of PowerSGD.")
@click.option("--rows", type=COUNT, default=4096, help="Of a matrix, for PowerSGD.")
@click.option("--columns", type=COUNT, default=4096, help="Of a matrix, for PowerSGD.")
@click.option(
    "--no-sync/--sync",
    default=True,
    help="Gradients are summed once in a step (default), or after each microbatch.",
)
@model_options
@layout_options
@brief_option
@json_option
def comm(as_json: bool, brief: bool, **given: Any) -> None:
    """Print one collective of SIZE bytes, or what a step of a model sends.

    OPERATION is all-reduce, reduce-scatter, all-gather, broadcast, reduce, all-to-all
    or send-recv; SIZE is the whole tensor (10GB, 25MiB).

    \b
    Example:
        readerkit estimate comm all-reduce 10GB --ranks 8 --bandwidth 50GB
        readerkit estimate comm --model llama-2-70b --dp 4 --tp 4 --pp 4
        readerkit estimate comm --compute-ms 1000 --comm-ms 200 --overlap 1
        readerkit estimate comm all-reduce 1GB --ranks 8 --compression
    """
    hidden, compute, known = (
        given.pop(key) for key in ("overlap", "compute_ms", "comm_ms")
    )
    estimates: list[Estimate] = []
    seconds = known / 1e3 if known is not None else None
    if given["operation"] is not None:
        estimates += _collective(given)
        if seconds is None and "time" in {item.name for item in estimates[0].items}:
            seconds = float(estimates[0]["time"])
    else:
        estimates += _step(given)
    if compute is not None and seconds is not None:
        from readerkit.estimate.overlap import estimate_overlap

        estimates.append(
            estimate_overlap(
                compute_s=compute / 1e3,
                communication_s=seconds,
                hidden_fraction=hidden,
            )
        )
    if not estimates:
        raise click.UsageError(
            "of what? OPERATION and SIZE, --model NAME, or --compute-ms and --comm-ms"
        )
    show(estimates, as_json=as_json, brief=brief)


def _collective(given: dict[str, Any]) -> list[Estimate]:
    from readerkit.estimate.checks import check_choice
    from readerkit.estimate.collectives import (
        estimate_collective,
        estimate_hierarchical,
    )
    from readerkit.estimate.compression import BASELINES, estimate_compression
    from readerkit.estimate.quantity import divide

    size, ranks = given["size"], given["ranks"]
    if size is None or ranks is None:
        raise click.UsageError("a collective needs SIZE and --ranks")
    if given["compression"]:
        check_choice("baseline", given["baseline"], BASELINES)
        return [
            estimate_compression(
                elements=divide(size, BASELINES[given["baseline"]]),
                ranks=ranks,
                baseline=given["baseline"],
                kept_fraction=given["top_k"],
                rows=given["rows"],
                columns=given["columns"],
                rank=given["rank"],
            )
        ]
    if given["bandwidth"] is None:
        raise click.UsageError("a time needs --bandwidth: of one GPU, in one direction")
    latency = given["latency_us"] * 1e-6
    if given["algorithm"] == "hierarchical":
        nodes, inside = given["nodes"], given["inside_bandwidth"]
        if not nodes or inside is None or ranks % nodes:
            raise click.UsageError(
                "hierarchical needs --nodes that divide --ranks, and --inside-bandwidth"
            )
        return [
            estimate_hierarchical(
                operation=given["operation"],
                size_bytes=size,
                nodes=nodes,
                ranks_per_node=ranks // nodes,
                inside_bytes_per_s=inside,
                between_bytes_per_s=given["bandwidth"],
                inside_latency_s=given["inside_latency_us"] * 1e-6,
                between_latency_s=latency,
            )
        ]
    return [
        estimate_collective(
            operation=given["operation"],
            size_bytes=size,
            ranks=ranks,
            bandwidth_bytes_per_s=given["bandwidth"],
            latency_s=latency,
            algorithm=given["algorithm"],
        )
    ]


def _step(given: dict[str, Any]) -> list[Estimate]:
    from readerkit.estimate.traffic_estimate import estimate_step_traffic

    shape = take_shape(given)
    if shape is None:
        return []
    convention = given.pop("precision")
    return [
        estimate_step_traffic(
            shape,
            layout,
            convention=convention,
            no_sync=given["no_sync"],
        )
        for layout in take_layouts(given, shape)
    ]
