"""The buckets in which gradients are summed, as Megatron and PyTorch choose them."""

from __future__ import annotations

from readerkit.estimate.defaults import PRECISION
from readerkit.estimate.fit import check_fit
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.layout import Layout
from readerkit.estimate.memory import ON_GPU, first_chunk_weights, rank_weights
from readerkit.estimate.memory_estimates import add_parameters
from readerkit.estimate.rank_layers import first_chunks
from readerkit.estimate.shape import Shape
from readerkit.estimate.states import precision

MEGATRON = (
    "Megatron-LM core_v0.16.1: megatron/core/distributed/distributed_data_parallel.py"
)
TRAINER = "Megatron-LM core_v0.16.1: megatron/training/training.py, get_model"
PYTORCH = (
    "PyTorch v2.13.0: torch/nn/parallel/distributed.py, _DEFAULT_BUCKET_CAP_MB; "
    "torch/csrc/distributed/c10d/reducer.hpp, kDefaultFirstBucketBytes"
)


def estimate_buckets(
    shape: Shape, layout: Layout, *, convention: str = PRECISION
) -> Estimate:
    """Return the default buckets of the first pipeline rank's gradients.

    Raises:
        EstimateError: a layout that the model cannot be cut into.
    """
    check_fit(shape, layout)
    sheet = Worksheet("default buckets of gradients")
    one, cut = shape.named(), layout.named()
    dense, expert = rank_weights(one, cut, 0)
    add_parameters(sheet, dense, expert, layout, 0)
    sheet.given("g", precision(convention).gradient, "bytes of a gradient")
    sheet.given("PyTorch's first bucket", 2**20)
    sheet.given("PyTorch's bucket", 25 * 2**20)
    sheet.given("dp", layout.dp, "data-parallel ranks")
    ranks = "dp"
    if layout.cp > 1:
        sheet.given("cp", layout.cp, "context-parallel ranks")
        ranks = "dp × cp"
    message = "a ring's message" + "; of dense parameters" * bool(expert)
    full = "closed once it is full: its last parameter makes it larger; what is left"
    full += " in the end is a smaller one"
    buffers: tuple[str, ...] = (ON_GPU,)
    if expert:
        buffers = "dense parameters", "experts' parameters"
    where = "at most, on the first pipeline rank; all in one on the others"
    later = 0
    if layout.virtual_stages > 1:
        buffers = _first_chunk(sheet, one, cut)
        chunks = first_chunks(shape, layout)[1:]
        later = sum(1 + (experts > 0) for _, experts in chunks)
        sheet.given("k", later, "buffers of later chunks, each in one")
        where += ", and in each later chunk"
    counts = [f"ceil({each} / Megatron's bucket)" for each in buffers]
    counts += ["k"] * (later > 0)
    if expert:
        where += "; experts in buckets of their own"
    if shape.tied_embeddings and not all(layout.ends(0)) and layout.zero:
        counts.append("1")
        where += "; at both ends one more, for the tied table alone"
    sheet.write(
        f"""
        Megatron's bucket [parameters] = max(40000000, 1000000 × {ranks}) | {TRAINER}
            | with --overlap-grad-reduce, otherwise all in one; {full}
        its bytes [bytes] = g × Megatron's bucket | {MEGATRON} | gradients, {convention}
        a rank's part of it [bytes] = its bytes / ({ranks}) | {MEGATRON} | {message}
        Megatron's buckets [buckets] = {" + ".join(counts)} | {MEGATRON} | {where}
        gradients [bytes] = g × {ON_GPU} | a count | {convention}
        PyTorch's first bucket [bytes] = PyTorch's first bucket
            | {PYTORCH} | 1 MiB, so that sums begin early
        PyTorch's bucket [bytes] = PyTorch's bucket | {PYTORCH} | 25 MiB; {full}
        PyTorch's buckets [buckets] = 1 + ceil(max(0, gradients
            - PyTorch's first bucket) / PyTorch's bucket)
            | {PYTORCH} | at most, with gradients of one type
        """
    )
    return sheet.estimate()


def _first_chunk(sheet: Worksheet, shape: Shape, layout: Layout) -> tuple[str, ...]:
    """Write down the parameters of the one chunk whose gradients are in buckets."""
    dense, expert = first_chunk_weights(shape, layout)
    names: tuple[str, ...] = ("first chunk's parameters",)
    if expert:
        names = "first chunk's dense parameters", "first chunk's experts"
    for name, params in zip(names, (dense, expert), strict=False):
        row = f"{name} [parameters] = params | {TRAINER}"
        sheet.write(f"{row} | the only chunk that is cut into buckets", params=params)
    return names
