"""``readerkit estimate``: the group of estimates, and the list of what they know."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import fill, indent
from typing import Any

import click

from readerkit.app.own_rows import FILES, OwnRows
from readerkit.commands.options import json_option
from readerkit.terminal.as_json import print_json
from readerkit.terminal.group import LateGroup

_LATE = {
    "bubble": (
        "estimate_bubble",
        "A pipeline's idle time, activations held, and its grid.",
    ),
    "buckets": ("estimate_layer", "Default buckets of Megatron and PyTorch."),
    "checkpoint": (
        "estimate_checkpoint",
        "Bytes of a checkpoint, how often to write it, goodput.",
    ),
    "comm": (
        "estimate_comm",
        "Bytes, steps and time of collectives and of a whole step.",
    ),
    "flops": (
        "estimate_flops",
        "FLOPs of a step and a run, MFU and HFU, days and cost.",
    ),
    "largest": ("estimate_layer", "The largest model whose states fit."),
    "layer": ("estimate_layer", "What one layer keeps for the backward, by part."),
    "lint": ("estimate_plan", "Anti-patterns of a layout, each by number."),
    "memory": (
        "estimate_memory",
        "What one GPU holds, and which allocation fails first.",
    ),
    "nccl": ("estimate_nccl", "NCCL's model of latency: ring, tree, chain, NVLS."),
    "plan": ("estimate_plan", "Layouts for a model on a cluster, ranked."),
    "step": ("estimate_step", "The time of a step in your layout, part by part."),
}


@click.group(
    cls=LateGroup,
    late=_LATE,
    short_help="Memory, communication, bubble, FLOPs, plan: with formulas.",
)
@click.option(
    "--catalog",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of your own models.yaml, hardware.yaml, prices.yaml, runs.yaml: "
    "their rows go before those that ship (default: catalog, in your own folder).",
)
@click.pass_context
def estimate(context: click.Context, catalog: Path | None) -> None:
    """Arithmetic with names: each number says its formula, convention and source.

    \b
    Example:
        readerkit estimate memory --model llama-2-7b --dp 8 --zero 3 --gpu h100-80gb
        readerkit estimate comm all-reduce 10GB --ranks 8 --bandwidth 50GB
        readerkit estimate bubble -p 4 -m 16 --grid
        readerkit estimate flops --model gpt3-175b --batch 1536
        readerkit estimate step --model llama-2-70b --dp 2 --tp 8 --pp 4
        readerkit estimate checkpoint --model bloom-176b --write-bandwidth 50GB/s
        readerkit estimate buckets --model llama-2-7b --dp 64
        readerkit estimate plan --model llama-2-70b --gpus 64 --cluster dgx-h100
        readerkit estimate lint --model llama-2-70b --tp 8 --pp 16 --microbatches 4
        readerkit estimate list
    """
    context.obj = own = OwnRows(catalog)
    if catalog and not any(map(own.find, FILES)):
        raise click.UsageError(
            f"--catalog {catalog}: got none of {', '.join(FILES)}, expected one"
        )

    @context.call_on_close
    def say_own() -> None:
        for row, file in own.taken.items():
            click.echo(f"readerkit: {row}: your own, of {file}", err=True)


@estimate.command("list", short_help="The models, GPUs and clusters that ship.")
@click.option("--prices", is_flag=True, help="What hours of GPUs cost, and how old.")
@json_option
@click.pass_obj
def list_known(own: OwnRows, as_json: bool, prices: bool) -> None:
    """List models with their parameters, GPUs and clusters, each with its source.

    \b
    Example:
        readerkit estimate list
        readerkit estimate list --prices
    """
    if prices:
        _list_prices(own, as_json)
        return
    from readerkit.app.catalog import load_clusters, load_gpus, load_models
    from readerkit.estimate.parameters import parameter_count
    from readerkit.wording.numbers import format_bytes, format_flop_rate, format_rate

    gpus = ("memory_bytes", "flops_per_s", "link_bytes_per_s", "source")
    clusters = ("gpus_per_node", "inside_bytes_per_s", "between_bytes_per_s", "source")
    known: dict[str, dict[str, dict[str, Any]]] = {
        "models": {
            name: {"parameters": parameter_count(shape), "source": source}
            for name, (shape, source) in load_models(own).items()
        },
        "gpus": {
            name: {field: getattr(gpu, field) for field in gpus}
            for name, gpu in load_gpus(own).items()
        },
        "clusters": {
            name: {"gpu": each.gpu.name} | {key: getattr(each, key) for key in clusters}
            for name, each in load_clusters(own).items()
        },
    }
    if as_json:
        print_json(known)
        return
    tables: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
        "models": ("models: parameters", lambda each: f"{each['parameters']:,}"),
        "gpus": (
            "\nGPUs: memory, peak 16-bit, link per direction",
            lambda each: (
                f"{format_bytes(each['memory_bytes'])}, "
                f"{format_flop_rate(each['flops_per_s'])}, "
                f"{format_rate(each['link_bytes_per_s'])}"
            ),
        ),
        "clusters": (
            "\nclusters: a node's GPUs; one GPU's bandwidth in and between nodes, "
            "per direction",
            lambda each: (
                f"{each['gpus_per_node']} × {each['gpu']}, "
                f"{format_rate(each['inside_bytes_per_s'])} in, "
                f"{format_rate(each['between_bytes_per_s'])} between"
            ),
        ),
    }
    for table, (heading, say) in tables.items():
        click.secho(heading, bold=True)
        for name, each in known[table].items():
            click.echo(f"{name:<20}{say(each)}")
            source = fill(f"from {each['source']}", 76)
            click.secho(indent(source, "    "), dim=True)


def _list_prices(own: OwnRows, as_json: bool) -> None:
    """List what an hour of each GPU costs, from where, and for how long it is known."""
    from datetime import UTC, datetime

    from readerkit.app.catalog import load_prices

    today = datetime.now(UTC).date()
    rows = [
        {
            "vendor": each.vendor,
            "gpu": each.gpu,
            "terms": each.terms,
            "usd_per_hour": float(each.usd_per_hour),
            "dated": str(each.dated),
            "age_days": each.age_days(today),
            "unconfirmed": each.unconfirmed,
            "source": each.source,
        }
        for each in load_prices(own=own)
    ]
    if as_json:
        print_json({"prices": rows})
        return
    for row in rows:
        doubt = "; unconfirmed: one source" if row["unconfirmed"] else ""
        what = f"{row['gpu']:<12}{row['vendor']}, {row['terms']}"
        click.echo(f"{what:<44}${row['usd_per_hour']:.2f} an hour")
        click.echo(f"    {row['dated']}, {row['age_days']} days old{doubt}")
        click.secho(f"    from {row['source']}", dim=True)
