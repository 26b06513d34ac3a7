"""``readerkit estimate``: the group of estimates, and the list of what they know."""

from __future__ import annotations

import click

from readerkit.commands.estimate_bubble import bubble
from readerkit.commands.estimate_comm import comm
from readerkit.commands.estimate_flops import flops
from readerkit.commands.estimate_memory import memory
from readerkit.commands.estimate_options import print_json
from readerkit.commands.estimate_plan import lint, plan
from readerkit.commands.options import json_option
from readerkit.terminal.group import NamingGroup


@click.group(
    cls=NamingGroup,
    short_help="Memory, communication, bubble, FLOPs, plan: with formulas.",
)
def estimate() -> None:
    """Arithmetic with names: each number says its formula, convention and source.

    \b
    Example:
        readerkit estimate memory --model llama-2-7b --dp 8 --zero 3 --gpu h100-80gb
        readerkit estimate comm all-reduce 10GB --ranks 8 --bandwidth 50GB
        readerkit estimate bubble -p 4 -m 16 --grid
        readerkit estimate flops --model gpt3-175b --batch 1536
        readerkit estimate plan --model llama-2-70b --gpus 64 --cluster dgx-h100
        readerkit estimate lint --model llama-2-70b --tp 8 --pp 16 --microbatches 4
        readerkit estimate list
    """


@estimate.command("list", short_help="The models, GPUs and clusters that ship.")
@json_option
def list_known(as_json: bool) -> None:
    """List models with their parameters, GPUs and clusters, each with its source.

    \b
    Example:
        readerkit estimate list
    """
    from readerkit.app.catalog import load_clusters, load_gpus, load_models
    from readerkit.estimate.parameters import parameter_count
    from readerkit.wording.numbers import format_bytes, format_flop_rate, format_rate

    models = {
        name: (parameter_count(shape), source)
        for name, (shape, source) in load_models().items()
    }
    gpus, clusters = load_gpus(), load_clusters()
    if as_json:
        print_json(
            {
                "models": {
                    name: {"parameters": count, "source": source}
                    for name, (count, source) in models.items()
                },
                "gpus": {
                    name: {
                        "memory_bytes": gpu.memory_bytes,
                        "flops_per_s": gpu.flops_per_s,
                        "link_bytes_per_s": gpu.link_bytes_per_s,
                        "source": gpu.source,
                    }
                    for name, gpu in gpus.items()
                },
                "clusters": {
                    name: {
                        "gpu": cluster.gpu.name,
                        "gpus_per_node": cluster.gpus_per_node,
                        "inside_bytes_per_s": cluster.inside_bytes_per_s,
                        "between_bytes_per_s": cluster.between_bytes_per_s,
                        "source": cluster.source,
                    }
                    for name, cluster in clusters.items()
                },
            }
        )
        return
    click.secho("models: parameters", bold=True)
    rows = [(name, f"{count:,}", source) for name, (count, source) in models.items()]
    _print_rows(rows)
    click.secho("\nGPUs: memory, peak 16-bit, link per direction", bold=True)
    rows = [
        (
            name,
            f"{format_bytes(gpu.memory_bytes)}, {format_flop_rate(gpu.flops_per_s)}, "
            f"{format_rate(gpu.link_bytes_per_s)}",
            gpu.source,
        )
        for name, gpu in gpus.items()
    ]
    _print_rows(rows)
    click.secho(
        "\nclusters: a node's GPUs; one GPU's bandwidth in and between nodes, "
        "per direction",
        bold=True,
    )
    rows = [
        (
            name,
            f"{cluster.gpus_per_node} × {cluster.gpu.name}, "
            f"{format_rate(cluster.inside_bytes_per_s)} in, "
            f"{format_rate(cluster.between_bytes_per_s)} between",
            cluster.source,
        )
        for name, cluster in clusters.items()
    ]
    _print_rows(rows)


def _print_rows(rows: list[tuple[str, str, str]]) -> None:
    for name, figures, source in rows:
        click.echo(f"{name:<20}{figures}")
        click.secho(f"    from {source}", dim=True)


for command in (memory, comm, bubble, flops, plan, lint):
    estimate.add_command(command)
