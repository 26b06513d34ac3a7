"""EleutherAI's and DeepSpeed's memory calculators, and why ours differs from them.

Sources: EleutherAI/cookbook, calc/calc_transformer_mem.py at 069ae2e; DeepSpeed
v0.19.5, ``estimate_zero2_model_states_mem_needs`` and ``estimate_zero3_...``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

from readerkit.errors import EstimateError
from readerkit.estimate.checks import check_amount, check_count
from readerkit.estimate.defaults import PRECISION
from readerkit.estimate.fit import check_fit
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.layout import Layout
from readerkit.estimate.memory import most_loaded, rank_memory
from readerkit.estimate.memory_estimates import add_layers, add_parameters
from readerkit.estimate.quantity import Number, divide
from readerkit.estimate.reports import Counted, write_differences
from readerkit.estimate.shape import Shape
from readerkit.estimate.states import OFFLOAD, precision
from readerkit.model.language import Told

COOKBOOK = "EleutherAI/cookbook 069ae2e, calc/calc_transformer_mem.py"
DEEPSPEED = "DeepSpeed v0.19.5, estimate_zero{}_model_states_mem_needs"
BUCKET, LIVE = 500_000_000, 1_000_000_000
"""Its defaults: elements of an all-gather bucket, parameters that stage 3 keeps."""


# --- EleutherAI's cookbook ------------------------------------------------------------


def estimate_cookbook(
    shape: Shape, layout: Layout, *, convention: str = PRECISION
) -> Estimate:
    """Return what the cookbook calculates, and each difference of ours to it.

    Raises:
        EstimateError: a layout that the model cannot be cut into.
    """
    check_fit(shape, layout)
    sheet = Worksheet("the cookbook's memory of a GPU")
    one, cut, kept = shape.named(), layout.named(), precision(convention)
    params = sheet.add(
        *("Number of Parameters", _cookbook_parameters(one, cut), "parameters"),
        *(COOKBOOK, "two tables, positions, two norms with biases; no other biases"),
    )
    gpus = sheet.given("n", layout.world_size, "GPUs of the job")
    if shape.experts:
        again = divide(one.experts, cut.ep) - 1
        params = params + again * _cookbook_mlp(one)

    def sharded(size: int, stage: int) -> Number:
        return divide(size * params, gpus if layout.zero >= stage else 1)

    theirs = {
        "activations": _cookbook_activations(one, cut),
        "weights": divide(sharded(2, 3), cut.tp * cut.pp),
        "gradients": sharded(4, 2),
        "optimizer": sharded(12, 1),
    }
    buckets = BUCKET * (layout.zero >= 1) + LIVE * (layout.zero == 3)
    if buckets and layout.world_size > 1:
        sheet.given("B", buckets, "elements of buckets and of what stage 3 keeps")
        theirs["communication"] = 2 * sheet["B"]
    for name, value in theirs.items():
        sheet.add(f"Per-GPU {name}", value, "bytes", COOKBOOK, "it prints GiB")
    names = " + ".join(f"Per-GPU {name}" for name in theirs)
    sheet.write(f"training [bytes] = {names} | {COOKBOOK} | it prints GiB")
    most = most_loaded(shape, layout, kept)
    held = rank_memory(one, cut, kept.named(), most.rank)
    add_parameters(sheet, held.dense, held.expert, layout, most.rank)
    add_layers(sheet, held, one, cut, kept)
    reasons = {
        "weights": "tensors as they are, cut as they are: norms whole, tables at ends",
        "gradients": f"ours {kept.gradient} bytes, cut over tp and pp at every stage; "
        "theirs 4 bytes, and over all GPUs from stage 2 on",
        "optimizer": "ours over dp × cp; theirs 12 bytes over all GPUs",
        "activations": "ours one stage's layers, the feed-forward that there is, and "
        "what is in flight; theirs 34 s b h of every layer, of one microbatch",
    }
    differences = [
        Counted(name, getattr(held, name), theirs[name], reason)
        for name, reason in reasons.items()
    ]
    differences += [
        Counted("buckets", 0, theirs.get("communication", 0), "ours has none"),
        Counted("gathered units", held.gathered, 0, "in their buckets"),
        Counted("one layer recomputed", held.recomputed, 0, "it counts none"),
        Counted("last norm and logits", held.logits, 0, "it counts none"),
    ]
    write_differences(sheet, "training", differences)
    return sheet.estimate()


def _cookbook_mlp(shape: Shape) -> Number:
    matrices = 3 if shape.gated_mlp else 2
    inner = shape.expert_ffn if shape.experts else shape.ffn
    return matrices * shape.layers * shape.hidden * inner


def _cookbook_parameters(shape: Shape, layout: Layout) -> Number:
    h, layers, wide = shape.hidden, shape.layers, shape.hidden * shape.hidden
    tables = 2 * shape.vocab * h + h * layout.sequence
    norms = 8 * h * layers + 2 * h
    pairs = 2 * layers * wide * (1 + divide(shape.kv_heads, shape.heads))
    return tables + norms + pairs + _cookbook_mlp(shape)


def _cookbook_activations(shape: Shape, layout: Layout) -> Number:
    s, h = layout.sequence, shape.hidden
    each = 34 * h
    if layout.recompute != "full":
        each += 5 * shape.heads * s
    all_of_it = s * layout.micro_batch * shape.layers * each
    return divide(all_of_it, layout.tp if layout.shards_sequence else 1)


# --- DeepSpeed ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """What DeepSpeed's estimators ask beside the parameters."""

    gpus: int
    """Of the job; its data-parallel ranks."""
    gpus_per_node: int = 8
    largest_layer: int = 0
    """Parameters of the largest module; stage 3 holds it whole."""
    zero_init: bool = True
    buffer_factor: float = 1.5


def estimate_deepspeed(
    params: Number,
    nodes: Nodes,
    *,
    stage: int,
    offload: str = "none",
    convention: str = "mixed-16",
) -> Estimate:
    """Return DeepSpeed's estimate of states, and each difference of ours to it.

    Raises:
        EstimateError: a stage that it has no estimator for, or GPUs that do not divide.
    """
    check_amount("params", params)
    taken, place = OFFLOAD[offload].takes, OFFLOAD[offload].place
    each = min(check_count("gpus_per_node", nodes.gpus_per_node), nodes.gpus)
    if stage not in (2, 3):
        raise EstimateError(
            f"zero: got {stage}, expected 2 or 3 (DeepSpeed has no other estimator)"
        )
    if nodes.gpus % each:
        raise EstimateError(
            f"gpus_per_node: got {each}, expected a divisor of {nodes.gpus} (dp × cp)"
        )
    if stage == 3 and not nodes.largest_layer:
        raise EstimateError(
            "largest_layer: got none, expected its parameters (stage 3)"
        )
    source = DEEPSPEED.format(stage)
    sheet = Worksheet(Told("DeepSpeed's ZeRO-{stage} estimator", stage=stage))
    sheet.given("N", params, "parameters")
    sheet.given("n", nodes.gpus, "GPUs of the job")
    sheet.given("G", each, "GPUs of a node")
    sheet.given("F", nodes.buffer_factor, "its factor for buffers")
    sheet.given("M", nodes.largest_layer, "parameters of the largest layer")
    gpu, cpu = _deepspeed_formulas(stage, taken, zero_init=nodes.zero_init)
    sheet.write(
        f"""
        per GPU [bytes] = {gpu} | {source} | it divides by 2^30 and prints GB
        per CPU [bytes] = floor({cpu}) | {source} | of a node; it prints GB
        """
    )
    _deepspeed_differences(sheet, stage, taken, place, convention)
    return sheet.estimate()


def _deepspeed_formulas(
    stage: int, taken: tuple[str, ...], *, zero_init: bool
) -> tuple[str, str]:
    """Return the bytes of a GPU and of a node's CPU memory, as it computes them."""
    if stage == 2:
        if taken:
            return "2 × N", "N × max(4 × n, 16) × F"
        return "2 × N + floor(18 × N / n)", "N × 4 × G × F"
    if not taken:
        own = "M × 4 × G × F" if zero_init else "N × 4 × G × F"
        return "4 × M + floor(18 × N / n)", own
    size = 18 if "weights" in taken else 16
    gpu = "4 × M" if "weights" in taken else "4 × M + floor(2 × N / n)"
    share = f"{size} × G / n"
    return gpu, f"N × {share if zero_init else f'max(4 × G, {share})'} × F"


def _deepspeed_differences(
    sheet: Worksheet, stage: int, taken: tuple[str, ...], place: str, convention: str
) -> None:
    kept, ranks, count = precision(convention).named(), sheet["n"], sheet["N"]
    parts = zip(("weights", "gradients", "optimizer"), kept.sharded, strict=True)
    here: Number = 0
    there: Number = 0
    for name, (size, sharded_from) in parts:
        share = divide(size * count, ranks if stage >= sharded_from else 1)
        here += 0 if name in taken else share
        there += share * sheet["G"] if name in taken else 0
    largest = 4 * sheet["M"] if stage == 3 else 0
    total = precision(convention).total
    reason = f"ours {total} bytes a parameter ({convention}); theirs 18, with fp32 "
    reason += "gradients beside the 16-bit ones"
    gpu = [
        Counted("the largest layer", 0, largest, "states alone, in ours"),
        Counted("states", here, sheet["per GPU"] - largest, reason),
    ]
    write_differences(sheet, "per GPU", gpu, "ours on a GPU")
    theirs = sheet["per CPU"]
    rest = divide(theirs, sheet["F"])
    cpu = [
        Counted("buffers", 0, theirs - rest, "its factor; ours has none"),
        Counted(
            f"states in {place if place == 'NVMe' else 'CPU memory'}",
            there,
            rest,
            f"{reason}; without offload it counts what loading the model takes",
        ),
    ]
    write_differences(sheet, "per CPU", cpu, "ours of a node")


def largest_module(shape: Shape) -> int:
    """Return the parameters of the largest single matrix of a model."""
    sizes = (shape.vocab, shape.ffn, shape.expert_ffn, shape.query_size)
    return floor(shape.hidden * max(sizes))
