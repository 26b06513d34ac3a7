"""``readerkit estimate step``, ``layer``, ``buckets``, ``largest``: of one layout."""

from __future__ import annotations

from typing import Any

import click

from readerkit.commands.estimate_options import (
    MODEL_NAMES,
    brief_option,
    gpu_options,
    layout_options,
    model_options,
    need_shape,
    option_names,
    options,
    refuse_others,
    show,
    sync_option,
    take_gpu_bytes,
    take_layouts,
)
from readerkit.commands.estimate_plan import cluster_options, take_cluster
from readerkit.commands.options import json_option
from readerkit.commands.quantity_options import EstimateCommand, rate


@click.command(cls=EstimateCommand)
@model_options
@layout_options
@sync_option
@cluster_options
@options(
    rate("pcie-bandwidth", "Of offload: one GPU to its CPU, one way: 25GB/s."),
    rate("nvme-bandwidth", "Of offload: one GPU's share of NVMe: 3GB/s."),
)
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
    where = given["offload"].rpartition("-")[2]
    for name, of in (("pcie", ("cpu", "nvme")), ("nvme", ("nvme",))):
        if given[f"{name}_bandwidth"] is not None and where not in of:
            raise click.UsageError(f"--{name}-bandwidth: of which --offload?")
    from readerkit.estimate.lint import check_nodes
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


_AXES = frozenset(
    ("dp", "tp", "pp", "cp", "ep", "etp", "gpus", "vocab_multiple", "precision")
)
_LAYER = frozenset(
    ("sequence", "micro_batch", "sequence_parallel", "recompute", "flash")
)


@click.command(cls=EstimateCommand)
@model_options
@layout_options
@brief_option
@json_option
def buckets(as_json: bool, brief: bool, **given: Any) -> None:
    """Print the default buckets in which gradients of a layout are summed.

    \b
    Example:
        readerkit estimate buckets --model llama-2-7b --dp 64
    """
    from readerkit.estimate.buckets import estimate_buckets

    refuse_others("buckets", MODEL_NAMES | _AXES)
    shape, convention = need_shape(given), given.pop("precision")
    show(
        [
            estimate_buckets(shape, layout, convention=convention)
            for layout in take_layouts(given, shape)
        ],
        as_json=as_json,
        brief=brief,
    )


@click.command(cls=EstimateCommand)
@model_options
@layout_options
@brief_option
@json_option
def layer(as_json: bool, brief: bool, **given: Any) -> None:
    """Print the activations that one layer keeps of one microbatch, tensor by tensor.

    \b
    Example:
        readerkit estimate layer --model gpt3-175b --tp 8 --sequence 2048 --no-flash
    """
    from readerkit.estimate.layer_estimate import estimate_layers

    refuse_others("one layer", MODEL_NAMES | _AXES | _LAYER)
    shape, convention = need_shape(given), given.pop("precision")
    estimates = [
        each
        for layout in take_layouts(given, shape)
        for each in estimate_layers(shape, layout, convention=convention)
    ]
    show(estimates, as_json=as_json, brief=brief)


@click.command(cls=EstimateCommand)
@layout_options
@gpu_options
@brief_option
@json_option
def largest(as_json: bool, brief: bool, **given: Any) -> None:
    """Print how many parameters' states fit a GPU: no activations, nothing gathered.

    \b
    Example:
        readerkit estimate largest --gpu v100-32gb --dp 64 --zero 3 --reserve 0
    """
    from readerkit.estimate.layer_estimate import estimate_largest

    states = _AXES - {"ep", "etp", "vocab_multiple"} | {"zero"}
    refuse_others("the largest model", states | option_names(gpu_options))
    gpu_bytes = take_gpu_bytes(given)
    if gpu_bytes is None:
        raise click.UsageError("which GPU? --gpu NAME, or --gpu-memory")
    estimates = [
        estimate_largest(
            gpu_bytes=gpu_bytes,
            reserve=given["reserve"],
            convention=given["precision"],
            stage=layout.zero,
            world_size=layout.replicas,
            model_parallel=layout.tp * layout.pp,
        )
        for layout in take_layouts(given)
    ]
    show(estimates, as_json=as_json, brief=brief)
