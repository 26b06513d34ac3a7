"""Options that the estimates share: sizes with units, a model, a layout, a GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from readerkit.commands.quantity_options import (
    ZeroStages,
    count,
    either,
    gpu,
    memory_size,
    option,
    real,
    word,
)
from readerkit.commands.shown_options import OptionGroup
from readerkit.errors import EstimateError
from readerkit.estimate.defaults import PRECISION, RESERVE, SCHEDULE, SEQUENCE
from readerkit.estimate.schedules import SOURCES
from readerkit.estimate.sizes import LAYOUT, MODEL, Size
from readerkit.terminal.completing import names
from readerkit.wording.next_command import typed

if TYPE_CHECKING:
    from readerkit.estimate.layout import Layout
    from readerkit.estimate.quantity import Number
    from readerkit.estimate.shape import Shape


def size_options(sizes: Mapping[str, Size]) -> list[Callable[[Any], Any]]:
    """Return an option for each size of a model or a layout."""
    return [
        count(
            name.replace("_", "-"), f"{one.means[0].upper()}{one.means[1:]}{one.more}."
        )
        for name, one in sizes.items()
        if name != "vocab_multiple"
    ]


def refuse_others(question: str, used: frozenset[str]) -> None:
    """Refuse what was typed and no number of a question would depend on.

    Raises:
        UsageError: with the options.
    """
    context = click.get_current_context()
    unused = [
        "/".join((*each.opts[:1], *each.secondary_opts[:1]))
        for each in context.command.params
        if each.name not in used | {"as_json", "brief", "lang"}
        and context.get_parameter_source(str(each.name)) is ParameterSource.COMMANDLINE
    ]
    if unused:
        raise click.UsageError(
            f"nothing about {question} depends on {', '.join(unused)}: leave it out"
        )


# --- a model --------------------------------------------------------------------------

_FLAGS = {
    "gated_mlp": ("--gated/--not-gated", "A gated feed-forward (SwiGLU)."),
    "tied_embeddings": ("--tied/--untied", "The output matrix is the token table."),
    "dropout": ("--dropout/--no-dropout", "Dropout masks are kept."),
    "qk_norm": ("--qk-norm/--no-qk-norm", "Norms on queries and keys."),
    "embedding_norm": (
        "--embedding-norm/--no-embedding-norm",
        "A norm after the table.",
    ),
    "final_norm": ("--final-norm/--no-final-norm", "A norm before the output."),
    "qkv_bias": ("--qkv-bias/--no-qkv-bias", "Biases of queries, keys, values."),
    "attention_output_bias": (
        "--output-bias/--no-output-bias",
        "A bias after attention.",
    ),
    "mlp_bias": ("--mlp-bias/--no-mlp-bias", "Biases of the feed-forward."),
    "attention_sinks": ("--sinks/--no-sinks", "A learned score of no token, a head."),
    "router_bias": ("--router-bias/--no-router-bias", "A bias for each expert."),
    "shared_expert_gate": (
        "--shared-gate/--no-shared-gate",
        "A gate of shared experts.",
    ),
}
MODEL_HELP = f"A model that ships, or FILE.yaml; {typed('estimate', 'list')} shows all."
model_options = OptionGroup(
    word("model", MODEL_HELP, shell_complete=names("models")),
    *size_options(MODEL),
    count("norms-per-layer", "Norms in a layer (default 2)."),
    *(
        click.option(flag, name, default=None, help=text)
        for name, (flag, text) in _FLAGS.items()
    ),
    click.option("--bias/--no-bias", default=None, help="All biases at once."),
    word("norm", "layernorm (with a bias) or rmsnorm (without)."),
)


def take_shape(given: dict[str, Any]) -> Shape | None:
    """Take the model's options out of ``given``; None: none was named.

    A named model gives the sizes, and each option replaces one of them.
    """
    from readerkit.estimate.shape import Shape

    name, bias = given.pop("model"), given.pop("bias")
    multiple = given.pop("vocab_multiple", 1)
    sizes = {key: given.pop(key) for key in Shape._fields if key in given}
    sizes = {key: value for key, value in sizes.items() if value is not None}
    if bias is not None:
        for key in ("qkv_bias", "attention_output_bias", "mlp_bias"):
            sizes.setdefault(key, bias)
    if name is None and not sizes:
        return None
    known: dict[str, Any] = {}
    if name is not None:
        from readerkit.app.catalog import find_model

        known = find_model(name, click.get_current_context().obj)
        if "hidden" in sizes or "heads" in sizes:
            # What followed from the old size follows from the new one.
            known = {key: known[key] for key in known if key != "head_dim"}
    return Shape.parse(known | sizes | {"vocab_multiple": multiple})


def need_shape(given: dict[str, Any]) -> Shape:
    """Return the model that the options name; a usage error where they name none."""
    shape = take_shape(given)
    if shape is None:
        raise click.UsageError(
            "which model? --model NAME, or --layers, --hidden, --heads and --vocab"
        )
    return shape


# --- a layout -------------------------------------------------------------------------

flash_option = click.option(
    "--flash/--no-flash",
    default=True,
    help="Flash attention (default), or attention scores kept in memory.",
)
vocab_option = count(
    "vocab-multiple", "Pad the vocabulary to this times tp (Megatron: 128).", 1
)
layout_options = OptionGroup(
    *size_options(LAYOUT),
    count("global-batch", "Instead of --microbatches."),
    count("gpus", "What dp × tp × pp × cp must come to."),
    option(ZeroStages(), "zero", "0 (ddp), 1 (default), 2 or 3 (fsdp).", "1"),
    click.option(
        "--sequence-parallel/--no-sequence-parallel",
        default=True,
        help="Norms and dropout cut over tp as well (default).",
    ),
    word(
        "recompute",
        "none (default), selective, full, or Megatron's modules: core_attn,layernorm,"
        "mlp,moe,moe_act,shared_experts,mla_up_proj.",
        "none",
    ),
    word(
        "offload",
        "none (default), optimizer-cpu, optimizer-nvme, states-cpu or states-nvme.",
        "none",
    ),
    flash_option,
    word(
        "schedule",
        f"{either(SOURCES, SCHEDULE)}.",
    ),
    word("cp-kind", "ring (default), all-gather or ulysses."),
    vocab_option,
    word(
        "precision",
        f"Bytes per parameter: mixed-12, mixed-16, {PRECISION} (default), mixed-20, "
        "fp32-16, adam8bit-10, sgd-12, fp8-13 or fp8lm-7.",
        PRECISION,
    ),
)
sync_option = OptionGroup(
    click.option(
        "--no-sync/--sync",
        default=True,
        help="Gradients are summed once in a step (default), or after each microbatch.",
    )
)


_DEFAULTS_OF_OTHERS = ("etp", "recompute_layers", "first_layers", "last_layers")
"""Sizes of a layout that follow from others where they are not given."""


def take_layouts(given: dict[str, Any], shape: Shape | None = None) -> list[Layout]:
    """Take the layout's options out of ``given``: one layout for each ZeRO stage."""
    from readerkit.estimate.layout import Layout

    gpus, batch = given.pop("gpus"), given.pop("global_batch")
    stages = given.pop("zero")
    values = {name: given.pop(name) for name in LAYOUT}
    for name in _DEFAULTS_OF_OTHERS:
        if values[name] == 0:  # a layout's own word for one that was not given
            option_name = f"--{name.replace('_', '-')}"
            raise EstimateError(
                f"{option_name}: got 0, expected at least 1, or no {option_name}"
            )
    if shape is not None:
        from readerkit.estimate.shape import fit_sequence

        values["sequence"] = fit_sequence(shape, values["sequence"], SEQUENCE)
    for name in (
        "sequence_parallel",
        "recompute",
        "offload",
        "flash",
        "schedule",
        "cp_kind",
    ):
        values[name] = given.pop(name)
    if values["cp_kind"] is not None and (values["cp"] or 1) == 1:
        raise click.UsageError(f"--cp-kind {values['cp_kind']}: expected --cp above 1")
    if values["schedule"] is None and (values["virtual_stages"] or 1) > 1:
        values["schedule"] = "interleaved"
    if gpus is not None and values["dp"] is None:
        values["dp"] = _left_for_dp(gpus, values)
    if batch is not None:
        if values["microbatches"] is not None:
            raise click.UsageError(
                "--global-batch and --microbatches exclude each other"
            )
        each = (values["dp"] or 1) * (values["micro_batch"] or 1)
        if each < 1 or batch % each:
            raise EstimateError(
                f"global batch: got {batch}, expected a multiple of dp × micro_batch "
                f"= {each}"
            )
        values["microbatches"] = batch // each
    return [Layout.parse(values | {"zero": stage}, gpus=gpus) for stage in stages]


def _left_for_dp(gpus: Number, values: dict[str, Any]) -> int | None:
    """Return the ranks that tp, pp and cp leave; None where they do not divide."""
    used = math.prod(values[name] or 1 for name in ("tp", "pp", "cp"))
    return int(gpus // used) if used > 0 and gpus >= used and gpus % used == 0 else None


# --- a GPU -------------------------------------------------------

reserve_option = real(
    "reserve",
    "Share of the GPU kept free for context, buffers and fragmentation (default "
    f"{RESERVE}, an assumption).",
    RESERVE,
)
gpu_options = OptionGroup(
    gpu("A GPU that ships, such as h100-80gb, or FILE.yaml."),
    memory_size("gpu-memory", "Instead of --gpu: 80GB."),
    reserve_option,
)


def take_gpu_bytes(given: dict[str, Any]) -> Number | None:
    """Take the GPU's options out of ``given`` and return its memory."""
    name, memory = given.pop("gpu"), given.pop("gpu_memory")
    if name and memory is not None:
        raise click.UsageError("--gpu and --gpu-memory exclude each other")
    source = click.get_current_context().get_parameter_source("reserve")
    if not name and memory is None and source is ParameterSource.COMMANDLINE:
        raise click.UsageError("--reserve: of which GPU? --gpu NAME, or --gpu-memory")
    if not name:
        return memory  # type: ignore[no-any-return]
    from readerkit.app.catalog import find_gpu

    return find_gpu(name, click.get_current_context().obj).memory_bytes
