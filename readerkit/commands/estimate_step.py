"""``readerkit estimate step``: the time of one layout."""

from __future__ import annotations

from typing import Any

import click

from readerkit.commands.cluster_options import (
    check_links,
    cluster_options,
    link_options,
    take_cluster,
)
from readerkit.commands.estimate_options import (
    layout_options,
    model_options,
    need_shape,
    sync_option,
    take_layouts,
)
from readerkit.commands.options import json_option
from readerkit.commands.quantity_options import EstimateCommand
from readerkit.commands.shown_options import brief_option, show


@click.command(cls=EstimateCommand)
@model_options
@layout_options
@sync_option
@cluster_options
@link_options
@brief_option
@json_option
def step(as_json: bool, brief: bool, **given: Any) -> None:
    """Print the time of a step in a layout, its parts, MFU and memory.

    Exit 1 where it does not fit the GPU.

    \b
    Example:
        readerkit estimate step --model megatron-1t --cluster dgx-a100 --tp 8 --pp 64 \\
            --dp 6 --global-batch 3072 --sequence 2048 --recompute full --no-flash
        readerkit estimate step --model llama-2-70b --dp 2 --tp 8 --pp 4
        readerkit estimate step --model llama-2-7b --dp 8 --zero 2 \\
            --offload optimizer-cpu --pcie-bandwidth 25GB/s
    """
    check_links(given, given["offload"])
    from readerkit.estimate.link_time import check_nodes
    from readerkit.estimate.setup import Setup
    from readerkit.estimate.step_estimate import estimate_step

    shape = need_shape(given)
    cluster, assumptions = take_cluster(given)
    setup = Setup(
        shape=shape,
        cluster=cluster,
        assumptions=assumptions,
        convention=given.pop("precision"),
        reserve=given["reserve"],
        no_sync=given["no_sync"],
    )
    estimates = []
    for layout in take_layouts(given, shape):
        check_nodes(cluster, layout)
        estimates.append(estimate_step(setup, layout))
    show(estimates, as_json=as_json, brief=brief)
    if max(float(each["left"]) for each in estimates) < 0:
        raise click.exceptions.Exit(1)
