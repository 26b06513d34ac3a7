"""``readerkit estimate``: the group of estimates, and the list of what they know."""

from __future__ import annotations

import atexit
import gc

import click

from readerkit.app.own_rows import FILES, OwnRows
from readerkit.commands.options import json_option
from readerkit.commands.shown_options import language_option, show_answer, spoken
from readerkit.terminal.as_json import print_json
from readerkit.terminal.folded import columns, tell
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
    "lint": ("estimate_lint", "Anti-patterns of a layout, each by number."),
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
    type=click.Path(exists=True, file_okay=False),
    help="Folder of your own models.yaml, hardware.yaml, prices.yaml, runs.yaml: "
    "their rows go before those that ship (default: catalog, in your own folder).",
)
@click.pass_context
def estimate(context: click.Context, catalog: str | None) -> None:
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
    # What one command makes is soon done with: cycles are not worth looking for, nor
    # at the end of the process, which takes a tenth of a plan.
    gc.disable()
    context.call_on_close(gc.enable)
    atexit.register(gc.freeze)
    context.obj = own = OwnRows(catalog)
    if catalog and not any(map(own.find, FILES)):
        raise click.UsageError(
            f"--catalog {catalog}: got none of {', '.join(FILES)}, expected one"
        )

    @context.call_on_close
    def say_own() -> None:
        for row, file in own.taken.items():
            tell(f"readerkit: {row}: your own, of {file}", err=True)


@estimate.command("list", short_help="The models, GPUs and clusters that ship.")
@click.option("--prices", is_flag=True, help="What hours of GPUs cost, and how old.")
@language_option
@json_option
@click.pass_obj
def list_known(own: OwnRows, as_json: bool, prices: bool) -> None:
    """List models with their parameters, GPUs and clusters, each with its source.

    \b
    Example:
        readerkit estimate list
        readerkit estimate list --prices
        readerkit estimate list --lang es
    """
    if prices:
        _list_prices(own, as_json)
        return
    from readerkit.app.catalog_list import list_catalog
    from readerkit.render.catalog_table import catalog_table

    known = list_catalog(own)
    if as_json:
        print_json(known)
        return
    show_answer("\n".join(catalog_table(known, spoken()[0], columns())))


def _list_prices(own: OwnRows, as_json: bool) -> None:
    """List what an hour of each GPU costs, from where, and for how long it is known."""
    from datetime import UTC, datetime

    from readerkit.app.catalog_list import list_prices
    from readerkit.render.catalog_table import price_table

    prices = list_prices(datetime.now(UTC).date(), own)
    if as_json:
        print_json({"prices": prices})
        return
    show_answer("\n".join(price_table(prices, spoken()[0], columns())))
