"""``readerkit estimate layer``, ``buckets``, ``largest``: parts of one layout."""

from __future__ import annotations

from typing import Any

import click

from readerkit.commands.estimate_options import (
    gpu_options,
    layout_options,
    model_options,
    need_shape,
    refuse_others,
    take_gpu_bytes,
    take_layouts,
)
from readerkit.commands.options import json_option
from readerkit.commands.quantity_options import EstimateCommand
from readerkit.commands.shown_options import brief_option, show

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
        readerkit estimate buckets --model llama-2-70b --tp 8 --pp 4 --virtual-stages 5
    """
    from readerkit.estimate.buckets import estimate_buckets

    of_layout = _AXES | {"zero", "virtual_stages"}
    refuse_others("buckets", model_options.names | of_layout)
    given["microbatches"] = given["pp"]  # as many as chunks need, and no bucket asks
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

    refuse_others("one layer", model_options.names | _AXES | _LAYER)
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
    refuse_others("the largest model", states | gpu_options.names)
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
