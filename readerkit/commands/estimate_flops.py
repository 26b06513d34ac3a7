"""``readerkit estimate flops``: FLOPs of a step, MFU and HFU, days and cost."""

from __future__ import annotations

from typing import Any

import click

from readerkit.commands.estimate_options import (
    COUNT,
    EstimateCommand,
    brief_option,
    fit_sequence,
    model_options,
    need_shape,
    show,
)
from readerkit.commands.options import json_option
from readerkit.terminal.completing import names


@click.command(
    cls=EstimateCommand,
    short_help="FLOPs of a step, MFU and HFU, days and cost of a run.",
)
@model_options
@click.option("--batch", type=COUNT, required=True, help="Sequences in a step.")
@click.option("--sequence", type=COUNT, help="Tokens in one (2048).")
@click.option("--recompute", default="none", help="none (default), selective or full.")
@click.option(
    "--attention", default="full", help="full (default, as the papers) or causal: half."
)
@click.option("--gpus", type=COUNT, help="How many work on the step.")
@click.option(
    "--gpu",
    metavar="NAME",
    help="Which, for its peak: h100-80gb.",
    shell_complete=names("gpus"),
)
@click.option("--peak-tflops", type=float, help="Instead of --gpu.")
@click.option("--step-s", type=float, help="A measured step: gives MFU and HFU.")
@click.option("--mfu", type=float, help="An expected MFU: gives the time.")
@click.option("--tokens", type=COUNT, help="The budget of a whole training.")
@click.option("--usd-per-gpu-hour", type=float, help="A price, for its cost.")
@brief_option
@json_option
def flops(as_json: bool, brief: bool, **given: Any) -> None:
    """Print model and hardware FLOPs of a step; with GPUs and a time, MFU and HFU.

    \b
    Example:
        readerkit estimate flops --model gpt3-175b --batch 1536
        readerkit estimate flops --model gpt2 --batch 8 --gpus 1 --gpu t4 --step-s 1
        readerkit estimate flops --model gpt2 --batch 8 --gpus 1 --gpu t4 --mfu 0.3
    """
    from readerkit.estimate.checks import check_amount
    from readerkit.estimate.flops import estimate_flops

    shape = need_shape(given)
    given["sequence"] = fit_sequence(shape, given["sequence"], 2048)
    name, teraflops = given.pop("gpu"), given.pop("peak_tflops")
    if name and teraflops is not None:
        raise click.UsageError("--gpu and --peak-tflops exclude each other")
    peak = None
    if name:
        from readerkit.app.catalog import find_gpu

        peak = find_gpu(name).flops_per_s
    elif teraflops is not None:
        peak = check_amount("peak-tflops", teraflops) * 1e12
    seconds, mfu = given.pop("step_s"), given["mfu"]
    if seconds is not None and mfu is not None:
        raise click.UsageError("--step-s and --mfu exclude each other")
    if (seconds is not None or mfu is not None) and not (peak and given["gpus"]):
        raise click.UsageError(
            "a time or an MFU needs --gpus, and --gpu or --peak-tflops"
        )
    for option in ("tokens", "usd_per_gpu_hour"):
        if given[option] is not None and seconds is None and mfu is None:
            raise click.UsageError(
                f"--{option.replace('_', '-')} needs --step-s or --mfu"
            )
    if given["gpus"] is not None and given["gpus"] < 1:
        raise click.UsageError(f"--gpus: got {given['gpus']}, expected at least 1")
    estimate = estimate_flops(shape, seconds=seconds, peak_flops_per_s=peak, **given)
    show([estimate], as_json=as_json, brief=brief)
