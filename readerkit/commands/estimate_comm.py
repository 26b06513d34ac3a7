"""``readerkit estimate comm``: one collective, a step's traffic, what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from readerkit.commands.estimate_options import (
    layout_options,
    model_options,
    refuse_others,
    sync_option,
    take_layouts,
    take_shape,
)
from readerkit.commands.options import json_option
from readerkit.commands.quantity_options import (
    SIZE,
    EstimateCommand,
    count,
    rate,
    real,
    word,
)
from readerkit.commands.shown_options import OptionGroup, brief_option, show
from readerkit.terminal.completing import names

if TYPE_CHECKING:
    from readerkit.estimate.item import Estimate


@click.command(cls=EstimateCommand)
@click.argument("operation", required=False, shell_complete=names("operations"))
@click.argument("size", type=SIZE, required=False)
@OptionGroup(
    count("ranks", "Ranks of the collective."),
    rate("bandwidth", "Per GPU, per direction: 50GB/s, or 400Gb/s (bits)."),
    real("latency-us", "Of one step.", 0.0),
    word("algorithm", "ring (default), tree, hierarchical or naive.", "ring"),
    count("nodes", "For hierarchical: nodes."),
    rate("inside-bandwidth", "For hierarchical: in a node."),
    real("inside-latency-us", "For hierarchical: in a node.", 0.0),
    real("compute-ms", "Time of compute beside it."),
    real("comm-ms", "Time of communication, if it is known."),
    real("overlap", "Share of it that compute hides (0 to 1).", 0.0),
    click.option(
        "--compression", is_flag=True, help="Compression of SIZE of gradients."
    ),
    word("baseline", "Of compression: fp32, bf16 or fp16.", "fp32"),
    real("top-k", "Share of values that top-k keeps.", 0.01),
    count("rank", "Rank of PowerSGD.", 4),
    count("rows", "Of a matrix, for PowerSGD.", 4096),
    count("columns", "Of a matrix, for PowerSGD.", 4096),
    sync_option,
)
@model_options
@layout_options
@brief_option
@json_option
def comm(as_json: bool, brief: bool, **given: Any) -> None:
    """Print one collective of SIZE bytes, or what a step of a model sends.

    OPERATION is all-reduce, reduce-scatter, all-gather, broadcast, reduce, all-to-all,
    send-recv, gather, scatter or hypercube; SIZE is the whole tensor (10GB, 25MiB).

    \b
    Example:
        readerkit estimate comm all-reduce 10GB --ranks 8 --bandwidth 50GB
        readerkit estimate comm all-gather 8GiB --ranks 64
        readerkit estimate comm scatter 1GB --ranks 8 --bandwidth 400Gb/s
        readerkit estimate comm --model llama-2-70b --dp 4 --tp 4 --pp 4
        readerkit estimate comm --model mixtral-8x7b --dp 8 --tp 4 --ep 8 --etp 2
        readerkit estimate comm --compute-ms 1000 --comm-ms 200 --overlap 1
        readerkit estimate comm all-reduce 1GB --ranks 8 --compression
    """
    refuse_others(*_asked(given))
    hidden, compute, known = (
        given.pop(key) for key in ("overlap", "compute_ms", "comm_ms")
    )
    from readerkit.estimate.checks import check_amount, check_fraction

    check_fraction("overlap", hidden)
    for name, value in (("comm-ms", known), ("latency-us", given["latency_us"])):
        check_amount(name, value or 0, zero=True)
    estimates: list[Estimate] = []
    seconds = known / 1e3 if known is not None else None
    if given["operation"] is not None:
        estimates += _collective(given)
        if seconds is None and "time" in {item.name for item in estimates[0].items}:
            seconds = float(estimates[0]["time"])
    else:
        estimates += _step(given)
    if compute is not None:
        if seconds is None:
            raise click.UsageError("--compute-ms: beside what? --comm-ms, or a time")
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


_BESIDE = frozenset(("compute_ms", "comm_ms", "overlap"))
_LEVELS = frozenset(("nodes", "inside_bandwidth", "inside_latency_us"))
_MATRIX = frozenset(("baseline", "top_k", "rank", "rows", "columns"))


def _asked(given: dict[str, Any]) -> tuple[str, frozenset[str]]:
    """Return what is asked, and the options that it depends on."""
    beside = _BESIDE if given["compute_ms"] is not None else frozenset[str]()
    if given["operation"] is None:
        step = model_options.names | layout_options.names | sync_option.names
        return "a step's traffic", beside | step
    one = frozenset(("operation", "size", "ranks"))
    if given["compression"]:
        return "--compression", one | _MATRIX | {"compression"}
    timed = one | beside | {"algorithm", "bandwidth", "latency_us"}
    if given["algorithm"] == "hierarchical":
        return "a hierarchical collective", timed | _LEVELS
    return "one collective on equal links", timed


def _collective(given: dict[str, Any]) -> list[Estimate]:
    from readerkit.estimate.collective_estimate import (
        estimate_collective,
        estimate_hierarchical,
    )

    one = {"size_bytes": given["size"], "operation": given["operation"]}
    ranks, bandwidth = given["ranks"], given["bandwidth"]
    if one["size_bytes"] is None or ranks is None:
        raise click.UsageError("a collective needs SIZE and --ranks")
    if given["compression"]:
        if one["operation"] != "all-reduce":
            raise click.UsageError(
                f"--compression: got {one['operation']}, expected all-reduce: what "
                "gradients are summed with"
            )
        return [_compression(given)]
    if bandwidth is None and given["latency_us"]:
        raise click.UsageError("a time needs --bandwidth: of one GPU, in one direction")
    latency = given["latency_us"] * 1e-6
    if given["algorithm"] != "hierarchical":
        one |= {"ranks": ranks, "algorithm": given["algorithm"]}
        one |= {"bandwidth_bytes_per_s": bandwidth, "latency_s": latency}
        return [estimate_collective(**one)]
    nodes, inside = given["nodes"], given["inside_bandwidth"]
    if not nodes or None in (inside, bandwidth) or ranks % nodes:
        raise click.UsageError(
            "hierarchical needs --nodes that divide --ranks, --bandwidth and "
            "--inside-bandwidth"
        )
    one |= {"inside_bytes_per_s": inside, "between_bytes_per_s": bandwidth}
    one |= {"inside_latency_s": given["inside_latency_us"] * 1e-6}
    one |= {"between_latency_s": latency, "nodes": nodes}
    return [estimate_hierarchical(**one, ranks_per_node=ranks // nodes)]


def _compression(given: dict[str, Any]) -> Estimate:
    from readerkit.estimate.checks import (
        check_amount,
        check_choice,
        check_count,
        check_fraction,
    )
    from readerkit.estimate.compression import BASELINES, estimate_compression
    from readerkit.estimate.quantity import divide

    baseline = check_choice("baseline", given["baseline"], BASELINES)
    check_amount("top-k", check_fraction("top-k", given["top_k"]))
    least = min(given["rows"], given["columns"])
    check_count("rank", given["rank"], most=max(least, 1))
    matrix = {name: given[name] for name in ("ranks", "rows", "columns", "rank")}
    return estimate_compression(
        elements=divide(given["size"], BASELINES[baseline]),
        baseline=baseline,
        kept_fraction=given["top_k"],
        **matrix,
    )


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
