"""Options that the estimates share: sizes with units, a model, a layout, a GPU."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import click

from readerkit.errors import EstimateError
from readerkit.estimate.layout import SIZES as LAYOUT_SIZES
from readerkit.estimate.layout import Layout
from readerkit.estimate.quantity import Number, Size
from readerkit.estimate.shape import SIZES as MODEL_SIZES
from readerkit.estimate.shape import Shape
from readerkit.terminal.completing import names
from readerkit.terminal.folded import tell
from readerkit.wording.next_command import typed

if TYPE_CHECKING:
    from readerkit.estimate.item import Estimate

Command = TypeVar("Command", bound=Callable[..., Any])

_NUMBER = re.compile(
    r"([+-]?[0-9][0-9_]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)"
)
_BYTES = {"": 1, "b": 1} | {
    f"{letter}{suffix}": step**power
    for power, letter in enumerate("kmgtp", start=1)
    for suffix, step in (("b", 1000), ("ib", 1024))
}
_COUNTS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}


class QuantityType(click.ParamType):  # type: ignore[type-arg]
    """A number with a unit: bytes (10GB, 25MiB) or counts (70B, 2T)."""

    def __init__(self, name: str, units: dict[str, int], example: str) -> None:
        self.name, self.units, self.example = name, units, example

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Number:
        """Return the number in its base unit, whole where it is whole."""
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]
        found = _NUMBER.fullmatch(value.strip())
        if not found or found[2].lower() not in self.units:
            self.fail(f"got '{value}', expected {self.example}", param, ctx)
        digits = found[1].replace("_", "")
        scale = self.units[found[2].lower()]
        if re.fullmatch(r"[+-]?[0-9]+", digits):
            return int(digits) * scale
        number = float(digits) * scale
        if not math.isfinite(number):
            self.fail(f"got '{value}', expected a finite number", param, ctx)
        return int(number) if number.is_integer() else number


class EstimateCommand(click.Command):
    """A command that takes a negative number for one, and not for an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does; name the number where one looks like an option."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if not error.option_name.lstrip("-")[:1].isdigit():
                raise
            number = next(arg for arg in given if arg.startswith(error.option_name))
            message = f"got '{number}', expected a number that is not negative"
            raise click.UsageError(message, ctx) from None


SIZE = QuantityType("size", _BYTES, "bytes, such as 10GB (10^9) or 25MiB (2^20)")
COUNT = QuantityType("count", _COUNTS, "a number, such as 70B or 1.5e12")


def options(*decorators: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return one decorator for several, in the order in which they are listed."""

    def add(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return add


def size_options(sizes: Mapping[str, Size]) -> list[Callable[[Any], Any]]:
    """Return an option for each size of a model or a layout."""
    return [
        click.option(
            f"--{name.replace('_', '-')}",
            type=COUNT,
            help=f"{size.means[0].upper()}{size.means[1:]}{size.more}.",
        )
        for name, size in sizes.items()
        if name != "vocab_multiple"
    ]


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
    "router_bias": ("--router-bias/--no-router-bias", "A bias for each expert."),
    "shared_expert_gate": (
        "--shared-gate/--no-shared-gate",
        "A gate of shared experts.",
    ),
}
MODEL_HELP = f"A model that ships, or FILE.yaml; {typed('estimate', 'list')} shows all."
model_options = options(
    click.option(
        "--model", metavar="NAME", help=MODEL_HELP, shell_complete=names("models")
    ),
    *size_options(MODEL_SIZES),
    click.option("--norms-per-layer", type=COUNT, help="Norms in a layer (default 2)."),
    *(
        click.option(flag, name, default=None, help=text)
        for name, (flag, text) in _FLAGS.items()
    ),
    click.option("--bias/--no-bias", default=None, help="All biases at once."),
    click.option(
        "--norm", metavar="NAME", help="layernorm (with a bias) or rmsnorm (without)."
    ),
)


def take_shape(given: dict[str, Any]) -> Shape | None:
    """Take the model's options out of ``given``; None: none was named.

    A named model gives the sizes, and each option replaces one of them.
    """
    name, bias = given.pop("model"), given.pop("bias")
    multiple = given.pop("vocab_multiple", 1)
    known_sizes = (field.name for field in fields(Shape))
    sizes = {key: given.pop(key) for key in known_sizes if key in given}
    sizes = {key: value for key, value in sizes.items() if value is not None}
    if bias is not None:
        for key in ("qkv_bias", "attention_output_bias", "mlp_bias"):
            sizes.setdefault(key, bias)
    if name is None and not sizes:
        return None
    known: dict[str, Any] = {}
    if name is not None:
        from readerkit.app.catalog import find_model

        known = find_model(name)
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

ZERO_SPELLINGS = {
    "0": (0,),
    "ddp": (0,),
    "1": (1,),
    "2": (2,),
    "3": (3,),
    "fsdp": (3,),
    "1/2": (1, 2),
    "½": (1, 2),
}


class ZeroStages(click.ParamType):  # type: ignore[type-arg]
    """A ZeRO stage by any of its names; ``1/2`` and ``½`` mean both stages."""

    name = "stage"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Return the stages that are meant."""
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]
        word = re.sub(r"^zero[ -]?", "", value.strip().lower())
        if word not in ZERO_SPELLINGS:
            self.fail(f"got '{value}', expected 0 (ddp), 1, 2 or 3 (fsdp)", param, ctx)
        return ZERO_SPELLINGS[word]


flash_option = click.option(
    "--flash/--no-flash",
    default=True,
    help="Flash attention (default), or attention scores kept in memory.",
)
layout_options = options(
    *size_options(LAYOUT_SIZES),
    click.option("--global-batch", type=COUNT, help="Instead of --microbatches."),
    click.option("--gpus", type=COUNT, help="What dp × tp × pp × cp must come to."),
    click.option(
        "--zero", type=ZeroStages(), default="1", help="0 (ddp), 1, 2 or 3 (fsdp)."
    ),
    click.option(
        "--sequence-parallel/--no-sequence-parallel",
        default=True,
        help="Norms and dropout cut over tp as well (default).",
    ),
    click.option(
        "--recompute",
        default="none",
        metavar="KIND",
        help="none (default), selective or full.",
    ),
    flash_option,
    click.option(
        "--schedule",
        default=None,
        metavar="NAME",
        help="gpipe, 1f1b (default), interleaved or zb-h1.",
    ),
    click.option(
        "--vocab-multiple",
        type=COUNT,
        default=1,
        help="Pad the vocabulary to this times tp (Megatron: 128).",
    ),
    click.option(
        "--precision",
        default="mixed-18",
        metavar="NAME",
        help="Bytes per parameter: mixed-12, mixed-16, mixed-18 (default), mixed-20, "
        "fp32-16, adam8bit-10 or sgd-12.",
    ),
)


def fit_sequence(shape: Shape, sequence: int | None, default: int) -> int:
    """Return the tokens of a sequence: by default no more than a position table has.

    Raises:
        EstimateError: more than the table has rows.
    """
    rows = shape.positions
    if sequence is None:
        return min(default, rows) if rows else default
    if rows and sequence > rows:
        raise EstimateError(
            f"sequence: got {sequence}, expected at most {rows} (rows of the model's "
            "position table; --positions changes them)"
        )
    return sequence


def take_layouts(given: dict[str, Any], shape: Shape | None = None) -> list[Layout]:
    """Take the layout's options out of ``given``: one layout for each ZeRO stage."""
    gpus, batch = given.pop("gpus"), given.pop("global_batch")
    stages = given.pop("zero")
    values = {name: given.pop(name) for name in LAYOUT_SIZES}
    if shape is not None:
        values["sequence"] = fit_sequence(shape, values["sequence"], 4096)
    for name in ("sequence_parallel", "recompute", "flash", "schedule"):
        values[name] = given.pop(name)
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


# --- a GPU, and what is printed -------------------------------------------------------

gpu_options = options(
    click.option(
        "--gpu",
        metavar="NAME",
        help="A GPU that ships, such as h100-80gb.",
        shell_complete=names("gpus"),
    ),
    click.option("--gpu-memory", type=SIZE, help="Instead of --gpu: 80GB."),
    click.option(
        "--reserve",
        type=float,
        default=0.1,
        help="Share of the GPU kept free for context, buffers and fragmentation "
        "(default 0.1, an assumption).",
    ),
)
brief_option = click.option(
    "--brief", is_flag=True, help="Only the numbers, without formulas and sources."
)


def take_gpu_bytes(given: dict[str, Any]) -> Number | None:
    """Take the GPU's options out of ``given`` and return its memory."""
    name, memory = given.pop("gpu"), given.pop("gpu_memory")
    if name and memory is not None:
        raise click.UsageError("--gpu and --gpu-memory exclude each other")
    if not name:
        return memory  # type: ignore[no-any-return]
    from readerkit.app.catalog import find_gpu

    return find_gpu(name).memory_bytes


def show(
    estimates: Sequence[Estimate], *, as_json: bool, brief: bool, **more: Any
) -> None:
    """Print estimates: for a program, or as a table of 80 columns."""
    if as_json:
        print_json({"estimates": [each.to_plain() for each in estimates], **more})
        return
    from readerkit.render.estimate_table import estimate_table

    tell(estimate_table(estimates, brief=brief))


def print_json(value: Any) -> None:
    """Print JSON in ASCII; a number that JSON has no word for is a bug, not output."""
    import json

    click.echo(json.dumps(value, indent=1, allow_nan=False))
