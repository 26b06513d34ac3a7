"""``readerkit estimate memory``: what one GPU holds, and what fails first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from readerkit.commands.estimate_options import (
    gpu_options,
    layout_options,
    model_options,
    need_shape,
    refuse_others,
    take_gpu_bytes,
    take_layouts,
    take_shape,
)
from readerkit.commands.options import json_option
from readerkit.commands.quantity_options import (
    EstimateCommand,
    count,
    parameter_count,
    real,
    word,
)
from readerkit.commands.shown_options import OptionGroup, brief_option, show, spoken
from readerkit.estimate.defaults import SEQUENCE

if TYPE_CHECKING:
    from readerkit.estimate.item import Estimate


@click.command(cls=EstimateCommand)
@OptionGroup(
    parameter_count("Only model states, of so many parameters (7B or 7b: 7 × 10^9)."),
    click.option("--inference", is_flag=True, help="Weights and KV cache instead."),
    count("batch", "Sequences at once, in inference; dealt out over dp.", 1),
    count("context", f"Tokens of each, in inference (default {SEQUENCE})."),
    real("weight-bytes", "Bytes of a weight, in inference.", 2),
    word(
        "weights",
        "Instead of --weight-bytes: bf16, fp8, fp8-block, mxfp4, nvfp4, int8, int4 ...",
    ),
    word("expert-weights", "The format of experts' weights, where it differs."),
    count("cache-bytes", "Bytes of a cached number.", 2),
    word(
        "convention",
        "Another tool's figure, and each difference of ours to it: megatron-report, "
        "cookbook or deepspeed.",
    ),
    count("gpus-per-node", "GPUs of a node, for deepspeed.", 8),
    count("largest-layer", "Parameters of the largest layer, for deepspeed."),
    count("page-tokens", "Tokens of a page of the cache: 16 (default: no pages).", 1),
)
@model_options
@layout_options
@gpu_options
@brief_option
@json_option
def memory(as_json: bool, brief: bool, **given: Any) -> None:
    """Print the parameters of a model and the memory of the most loaded GPU.

    \b
    Example:
        readerkit estimate memory --model llama-2-7b --dp 8 --zero 3 --gpu h100-80gb
        readerkit estimate memory --model llama-2-70b --tp 8 --inference --batch 16
        readerkit estimate memory --model mixtral-8x22b --dp 8 --ep 8 --inference
        readerkit estimate memory --model deepseek-v3 --tp 4 --dp 8 --ep 32 --etp 1 \\
            --inference --page-tokens 64
        readerkit estimate memory --model llama-2-7b --recompute full \\
            --recompute-layers 16
        readerkit estimate memory --model gpt-oss-20b --inference --expert-weights mxfp4
        readerkit estimate memory --params 1T --dp 512 --zero 3 --offload states-nvme
        readerkit estimate memory --model gpt2 --dp 8 --convention megatron-report
        readerkit estimate memory --model llama-2-70b --tp 8 --pp 4 --dp 2 \\
            --microbatches 16 --schedule dualpipe
        readerkit estimate memory --params 7.5B --dp 64 --zero 2 --precision mixed-16
    """
    gpu_bytes, reserve = take_gpu_bytes(given), given.pop("reserve")
    room: dict[str, Any] = {"gpu_bytes": gpu_bytes, "reserve": reserve}
    shown: dict[str, Any] = {"as_json": as_json, "brief": brief}
    refuse_others(*_asked(given))
    if given["convention"] is not None:
        show(_reports(given), **shown)
        return
    if given["params"] is not None:
        estimates = _states_alone(given, **room)
        show(estimates, **shown)
    elif given["inference"]:
        estimates = _inference(given, **room)
        show(estimates, **shown)
    else:
        estimates, moments = _training(given, **room)
        usable = gpu_bytes * (1 - reserve) if gpu_bytes is not None else None
        below = "" if as_json or brief else _timeline(moments, usable)
        show(estimates, below=below, timeline=moments, **shown)
    _exit_unless_it_fits(estimates)


_AXES = frozenset(("dp", "tp", "pp", "gpus"))
_STATES = ("zero", "precision", "offload")
_CACHE = frozenset(
    (
        *("batch", "context", "weight_bytes", "weights", "expert_weights"),
        *("cache_bytes", "page_tokens"),
    )
)


def _asked(given: dict[str, Any]) -> tuple[str, frozenset[str]]:
    """Return what is asked, and the options that it depends on."""
    name = given["convention"]
    if name is not None:
        what = f"--convention {name}"
        if name == "deepspeed":
            nodes = {"gpus_per_node", "largest_layer", "params", "cp", "dp", "gpus"}
            return what, model_options.names | nodes | {"convention", *_STATES}
        return what, model_options.names | layout_options.names | {"convention"}
    if given["params"] is not None:
        states = _AXES | {"cp", "params", *_STATES} | gpu_options.names
        return (
            "the states of so many --params",
            states | gpu_options.names | model_options.names,
        )
    if given["inference"]:
        groups = _AXES | {"inference", "cp", "ep", "etp", "vocab_multiple"}
        groups |= {"first_layers", "last_layers"}
        return "--inference", groups | _CACHE | gpu_options.names | model_options.names
    return "training", layout_options.names | gpu_options.names | model_options.names


def _training(
    given: dict[str, Any], **room: Any
) -> tuple[list[Estimate], list[dict[str, Any]]]:
    """Return the parameters, the memory in each layout, and the last one's moments."""
    from readerkit.estimate.memory import most_loaded
    from readerkit.estimate.memory_estimates import estimate_training
    from readerkit.estimate.memory_timeline import timeline
    from readerkit.estimate.parameters_estimate import estimate_parameters
    from readerkit.estimate.states import precision

    convention = given.pop("precision")
    shape = need_shape(given)
    layouts = take_layouts(given, shape)
    parameters = estimate_parameters(shape, tensor_parallel=layouts[0].tp)
    found = [
        estimate_training(shape, layout, convention=convention, **room)
        for layout in layouts
    ]
    most = most_loaded(shape, layouts[-1], precision(convention))
    moments = [
        {"moment": moment.name, "allocates": moment.what, "held": moment.held_bytes}
        for moment in timeline(most)
    ]
    return [parameters, *found], moments


def _inference(given: dict[str, Any], **room: Any) -> list[Estimate]:
    """Return a model's parameters, and what one GPU holds of it in inference."""
    from readerkit.estimate.inference import estimate_inference
    from readerkit.estimate.parameters_estimate import estimate_parameters
    from readerkit.estimate.shape import fit_sequence
    from readerkit.estimate.states import weight_bytes

    shape = need_shape(given)
    layout = take_layouts(given, shape)[0]
    if given["weights"] is not None:
        refuse_both("weights", "weight-bytes")
        given["weight_bytes"] = weight_bytes(given["weights"])
    own = given["expert_weights"]
    if own is not None and not shape.experts:
        raise click.UsageError("--expert-weights: the model has no experts")
    run = estimate_inference(
        shape,
        tokens=fit_sequence(shape, given["context"], SEQUENCE, "context"),
        batch=given["batch"],
        layout=layout,
        page_tokens=given["page_tokens"],
        weight_bytes=given["weight_bytes"],
        expert_bytes=None if own is None else weight_bytes(own),
        cache_bytes=given["cache_bytes"],
        **room,
    )
    return [estimate_parameters(shape, tensor_parallel=layout.tp), run]


def _reports(given: dict[str, Any]) -> list[Estimate]:
    """Return another tool's figure for each layout, with our differences to it.

    Raises:
        EstimateError: no such tool, or what it cannot be asked.
    """
    from readerkit.errors import EstimateError
    from readerkit.estimate.checks import check_choice
    from readerkit.estimate.report_megatron import estimate_megatron_report
    from readerkit.estimate.report_others import estimate_cookbook
    from readerkit.estimate.reports import CONVENTIONS

    tool = check_choice("convention", given["convention"], CONVENTIONS)
    if tool == "deepspeed":
        return _deepspeed(given)
    if tool == "megatron-report" and given["vocab_multiple"] == 1:
        given["vocab_multiple"] = 128  # its --make-vocab-size-divisible-by
    shape = need_shape(given)
    report = estimate_cookbook if tool == "cookbook" else estimate_megatron_report
    custom = given["precision"]
    layouts = take_layouts(given, shape)
    for layout in layouts:
        if layout.schedule not in ("1f1b", "interleaved"):
            raise EstimateError(
                f"schedule: got {layout.schedule} with --convention {tool}, expected "
                "one that the tool knows: 1f1b or interleaved"
            )
    return [report(shape, layout, convention=custom) for layout in layouts]


def _deepspeed(given: dict[str, Any]) -> list[Estimate]:
    from readerkit.estimate.parameters import parameter_count
    from readerkit.estimate.report_others import (
        Nodes,
        estimate_deepspeed,
        largest_module,
    )

    params, largest = given["params"], given["largest_layer"] or 0
    shape = take_shape(given)
    if shape is not None:
        params = params or parameter_count(shape)
        largest = largest or largest_module(shape)
    if params is None:
        raise click.UsageError("of how many parameters? --params or a model")
    return [
        estimate_deepspeed(
            params,
            Nodes(
                gpus=layout.replicas,
                gpus_per_node=given["gpus_per_node"],
                largest_layer=largest,
            ),
            stage=layout.zero,
            offload=layout.offload,
            convention=given["precision"],
        )
        for layout in take_layouts(given)
    ]


def refuse_both(one: str, other: str) -> None:
    """Refuse two options that say the same.

    Raises:
        UsageError: both were typed.
    """
    source = click.get_current_context().get_parameter_source
    if source(other.replace("-", "_")) is ParameterSource.COMMANDLINE:
        raise click.UsageError(f"--{one} and --{other} exclude each other")


def _states_alone(given: dict[str, Any], **room: Any) -> list[Estimate]:
    """Return the model states of a parameter count under each layout asked for."""
    from readerkit.estimate.memory_estimates import estimate_states

    if take_shape(given) is not None:
        raise click.UsageError("--params stands alone: leave out the model")
    return [
        estimate_states(
            params=given["params"],
            convention=given["precision"],
            stage=layout.zero,
            world_size=layout.replicas,
            model_parallel=layout.tp * layout.pp,
            offload=layout.offload,
            **room,
        )
        for layout in take_layouts(given)
    ]


def _exit_unless_it_fits(estimates: list[Estimate]) -> None:
    """Exit 1 where a GPU was named and nothing that was asked about fits it."""
    left = [
        item.value for one in estimates for item in one.items if item.name == "left"
    ]
    if left and max(left) < 0:
        raise click.exceptions.Exit(1)


def _timeline(moments: list[dict[str, Any]], usable: float | None) -> str:
    from readerkit.render.estimate_table import both_bytes

    say, say_of = spoken()
    order = say("in order of time: what is allocated, and what is held then")
    fails = say("fails")
    rows = ["", click.style(order, bold=True)]
    failed = False
    for moment in moments:
        over = usable is not None and moment["held"] > usable and not failed
        mark = f"  <- {fails}" if over else ""
        failed = failed or over
        what = f"{say_of(moment['moment'])}: {say_of(moment['allocates'])}"
        rows.append(f"{what:<44}{both_bytes(moment['held'])}{mark}")
    return "\n".join(rows)
