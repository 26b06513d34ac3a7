"""``readerkit estimate checkpoint``: its bytes, how often, and what failures cost."""

from __future__ import annotations

from typing import Any

import click

from readerkit.commands.estimate_options import model_options, need_shape, take_shape
from readerkit.commands.options import json_option
from readerkit.commands.quantity_options import (
    EstimateCommand,
    count,
    parameter_count,
    rate,
    real,
    word,
)
from readerkit.commands.shown_options import OptionGroup, brief_option, show
from readerkit.estimate.defaults import PRECISION


@click.command(cls=EstimateCommand)
@OptionGroup(
    parameter_count("Of so many parameters, instead of a model (1T or 1t: 10^12)."),
    word("precision", f"Bytes per parameter ({PRECISION}).", PRECISION),
    rate("write-bandwidth", "What storage takes of the whole job: 100GB/s."),
    count("gpus", "Of the job."),
    real("gpu-mtbf-hours", "Mean time between failures of one GPU."),
    real("mtbf-hours", "Of the whole job, instead."),
    real("restart-s", "Seconds to start again after a failure (0).", 0.0),
)
@model_options
@brief_option
@json_option
def checkpoint(as_json: bool, brief: bool, **given: Any) -> None:
    """Print a checkpoint's bytes; Young's and Daly's interval, and the goodput.

    \b
    Example:
        readerkit estimate checkpoint --model bloom-176b
        readerkit estimate checkpoint --model llama-3.1-405b --gpus 16384 \\
            --gpu-mtbf-hours 50000 --write-bandwidth 2TB/s --restart-s 600
    """
    from readerkit.estimate.checkpoint import estimate_checkpoint
    from readerkit.estimate.parameters import parameter_count

    of_gpu, of_job = given["gpu_mtbf_hours"], given["mtbf_hours"]
    if of_gpu is not None and of_job is not None:
        raise click.UsageError("--gpu-mtbf-hours and --mtbf-hours exclude each other")
    if of_gpu is not None and given["gpus"] is None:
        raise click.UsageError("--gpu-mtbf-hours needs --gpus: of how many?")
    if given["gpus"] is not None and of_gpu is None and of_job is None:
        raise click.UsageError("--gpus needs --gpu-mtbf-hours or --mtbf-hours")
    write = given["write_bandwidth"]
    if given["restart_s"] and (write is None or (of_gpu is None and of_job is None)):
        raise click.UsageError(
            "--restart-s needs --write-bandwidth, and a time between failures"
        )
    params = given.pop("params")
    if params is None:
        params = parameter_count(need_shape(given))
    elif take_shape(given) is not None:
        raise click.UsageError("--params stands alone: leave out the model")
    estimate = estimate_checkpoint(
        params=params,
        convention=given["precision"],
        write_bytes_per_s=write,
        gpus=given["gpus"],
        gpu_mtbf_hours=of_gpu,
        mtbf_hours=of_job,
        restart_s=given["restart_s"],
    )
    show([estimate], as_json=as_json, brief=brief)
