"""``readerkit estimate flops``: FLOPs of a step, MFU and HFU, days and cost."""

from __future__ import annotations

from typing import Any

import click

from readerkit.commands.estimate_options import model_options, need_shape, refuse_others
from readerkit.commands.options import json_option
from readerkit.commands.quantity_options import EstimateCommand, count, gpu, real, word
from readerkit.commands.shown_options import OptionGroup, brief_option, show
from readerkit.terminal.completing import names

_ALONE = frozenset(("batch", "sequence", "recompute", "attention", "tokens"))


@click.command(cls=EstimateCommand)
@model_options
@OptionGroup(
    count("batch", "Sequences in a step.", required=True),
    count("sequence", "Tokens in one (2048)."),
    word(
        "recompute",
        "none (default), selective or full.",
        "none",
        shell_complete=names("recompute-whole"),
    ),
    word("attention", "full (default, as the papers) or causal: half.", "full"),
    count("gpus", "How many work on the step."),
    gpu("Which, for its peak: h100-80gb."),
    real("peak-tflops", "Instead of --gpu."),
    real("step-s", "A measured step: gives MFU and HFU."),
    real("mfu", "An expected MFU: gives the time."),
    real("tokens-per-s", "A measured rate of the whole job: gives MFU and time."),
    real("tflops-per-gpu", "A measured rate of a GPU, of model FLOPs: the same."),
    real("before-s", "The step of another setting: gives the speed-up over it."),
    count("tokens", "Of a whole run: its FLOPs and PF-days; with a time, days."),
    real("usd-per-gpu-hour", "A price, for its cost."),
)
@brief_option
@json_option
def flops(as_json: bool, brief: bool, **given: Any) -> None:
    """Print model and hardware FLOPs of a step; with GPUs and a time, MFU and HFU.

    \b
    Example:
        readerkit estimate flops --model gpt3-175b --batch 1536
        readerkit estimate flops --model gpt2 --batch 8 --gpus 1 --gpu t4 --step-s 1
        readerkit estimate flops --model gpt2 --batch 8 --gpus 1 --gpu t4 --mfu 0.3
        readerkit estimate flops --model gpt3-175b --batch 1536 --tokens 300B
        readerkit estimate flops --model megatron-175b --batch 64 --gpus 64 \\
            --gpu a100-80gb --step-s 13.75 --before-s 18.13
        readerkit estimate flops --model gpt3-175b --batch 1536 --gpus 1024 \\
            --gpu a100-80gb --tflops-per-gpu 105 --recompute full --tokens 300B
    """
    from readerkit.estimate.checks import check_amount
    from readerkit.estimate.flops_estimate import estimate_flops
    from readerkit.estimate.shape import fit_sequence

    shape = need_shape(given)
    given["sequence"] = fit_sequence(shape, given["sequence"], 2048)
    name, teraflops = given.pop("gpu"), given.pop("peak_tflops")
    if name and teraflops is not None:
        raise click.UsageError("--gpu and --peak-tflops exclude each other")
    peak = None
    if name:
        from readerkit.app.catalog import find_gpu

        peak = find_gpu(name, click.get_current_context().obj).flops_per_s
    elif teraflops is not None:
        peak = check_amount("peak-tflops", teraflops) * 1e12
    rate = given.pop("tflops_per_gpu")
    given["flops_per_s_per_gpu"] = rate * 1e12 if rate is not None else None
    from readerkit.estimate.checks import check_amount

    seconds = given.pop("step_s")
    check_amount("step-s", 1 if seconds is None else seconds)
    timed = [seconds, *map(given.get, ("mfu", "tokens_per_s", "flops_per_s_per_gpu"))]
    known = sum(value is not None for value in timed)
    if known > 1:
        raise click.UsageError(
            "--step-s, --mfu, --tokens-per-s and --tflops-per-gpu exclude each other"
        )
    if known and not (peak and given["gpus"] is not None):
        raise click.UsageError(
            "a time or an MFU needs --gpus, and --gpu or --peak-tflops"
        )
    if not known:
        alone = model_options.names | _ALONE
        refuse_others("a step without its time (--step-s, --mfu, a rate)", alone)
    if given["usd_per_gpu_hour"] is not None and given["tokens"] is None:
        raise click.UsageError("--usd-per-gpu-hour needs --tokens")
    if given["gpus"] is not None and given["gpus"] < 1:
        raise click.UsageError(f"--gpus: got {given['gpus']}, expected at least 1")
    estimate = estimate_flops(shape, seconds=seconds, peak_flops_per_s=peak, **given)
    show([estimate], as_json=as_json, brief=brief)
