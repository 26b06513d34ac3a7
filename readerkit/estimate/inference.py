"""Memory of inference: weights and KV cache on one GPU of a layout."""

from __future__ import annotations

from dataclasses import replace

from readerkit.estimate.activations import kv_cache_bytes
from readerkit.estimate.checks import check_amount, check_count
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.layout import Layout, check_fit
from readerkit.estimate.memory import (
    ON_GPU,
    layers_of_rank,
    rank_weights,
    telling_ranks,
)
from readerkit.estimate.memory_estimates import add_parameters, add_room
from readerkit.estimate.parameters import SOURCE
from readerkit.estimate.quantity import Number, ceil_divide
from readerkit.estimate.shape import Shape
from readerkit.wording.numbers import format_bytes

PAGED = "Kwon et al. 2309.06180, section 4.1"
MAX_TOKENS = 10**9
"""More than any context has tokens, or any server sequences at once."""


def estimate_inference(
    shape: Shape,
    *,
    tokens: int,
    batch: int = 1,
    layout: Layout | None = None,
    page_tokens: int = 1,
    weight_bytes: Number = 2,
    cache_bytes: int = 2,
    gpu_bytes: Number | None = None,
    reserve: Number = 0,
) -> Estimate:
    """Return weights plus KV cache on the most loaded GPU; no gradients, no optimizer.

    Sequences are dealt out over dp, the tokens of each over cp, layers over pp, heads
    over tp and experts over ep; the last page of a sequence counts whole.

    Raises:
        EstimateError: sizes that do not fit.
    """
    layout = replace(layout or Layout(), sequence_parallel=False)
    check_fit(shape, replace(layout, sequence=layout.cp))  # a cache need not be even
    check_count("context", tokens, most=MAX_TOKENS)
    check_count("batch", batch, most=MAX_TOKENS)
    check_count("page tokens", page_tokens, most=MAX_TOKENS)
    check_amount("weight_bytes", weight_bytes)
    here = (
        -(-tokens // (layout.cp * page_tokens)) * page_tokens * -(-batch // layout.dp)
    )

    def held(rank: int) -> Number:
        layers = sum(layers_of_rank(shape, layout, rank))
        cached = here * _token_bytes(shape, layout, layers, cache_bytes)
        return sum(rank_weights(shape, layout, rank)) * weight_bytes + cached

    rank = max(telling_ranks(shape, layout.pp), key=held)
    sheet = Worksheet("memory of inference, one GPU")
    one, cut = shape.named(), layout.named()
    add_parameters(sheet, *rank_weights(one, cut, rank), layout, rank)
    sheet.given("w", weight_bytes, "bytes of a weight")
    cached = sheet.given("c", cache_bytes, "bytes of a cached number")
    layers = sum(layers_of_rank(one, cut, rank)) if layout.pp > 1 else one.layers
    _cache(sheet, cut, tokens, batch, page_tokens)
    kept = f"keys and values of {shape.kv_heads} heads (of {shape.heads})"
    if shape.kv_rank:
        kept = "one latent for all heads, and the key that is turned"
    pages = f"pages of {page_tokens} tokens; " if page_tokens > 1 else ""
    full = f"{pages}every sequence at its full length, dealt out over dp and cp"
    sheet.write(
        f"""
        weights [bytes] = w × {ON_GPU} | {SOURCE} | {weight_bytes:g} B a weight
        KV cache per token [bytes] = token_bytes | {SOURCE}
            | {kept}, one token
        KV cache [bytes] = KV cache per token × tokens × sequences
            | {PAGED if pages else SOURCE} | {full}
        total [bytes] = weights + KV cache | {SOURCE} | weights and KV cache alone
        """,
        token_bytes=_token_bytes(one, cut, layers, cached),
    )
    sheet.notes.append("activations of one token are small and left out")
    if gpu_bytes is not None:
        _verdict(sheet, gpu_bytes, reserve)
    return sheet.estimate()


def _token_bytes(shape: Shape, layout: Layout, layers: int, element: int) -> Number:
    if shape.kv_rank:  # a latent and a turned key for all heads, whole on each rank
        return layers * (shape.kv_rank + shape.rope_dim) * element
    return kv_cache_bytes(
        layers=layers,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        tokens=1,
        element_bytes=element,
        tensor_parallel=layout.tp,
    )


def _cache(sheet: Worksheet, cut: Layout, tokens: int, batch: int, page: int) -> None:
    """Write down which tokens of how many sequences one GPU holds."""
    own = sheet.given("T", tokens, "tokens of each sequence")
    sheet.names["tokens"] = own
    if page > 1 or cut.cp > 1:
        whole = page if page == 1 else sheet.given("g", page, "tokens of a page")
        sheet.write(
            f"""
            tokens [tokens] = held | {PAGED} | of one sequence on one GPU, whole pages
            """,
            held=ceil_divide(own, cut.cp * whole) * whole,
        )
    every = sheet.given("b", batch, "sequences at once")
    sheet.names["sequences"] = every
    if cut.dp > 1:
        sheet.write(
            """
            sequences [sequences] = held | a count | of one replica, the fullest of dp
            """,
            held=ceil_divide(every, cut.dp),
        )


def _verdict(sheet: Worksheet, gpu_bytes: Number, reserve: Number) -> None:
    add_room(sheet, gpu_bytes, reserve)
    left, usable = float(sheet["left"]), float(sheet["usable"])
    sheet.write(
        f"""
        tokens that fit beside the weights [tokens]
            = max(0, floor((usable - weights) / KV cache per token))
            | {SOURCE} | of all sequences on this GPU together
        """
    )
    fits = "fits" if left >= 0 else "does not fit"
    text = f"{format_bytes(left, 2)} left of {format_bytes(usable, 2)}"
    sheet.notes.insert(0, f"{fits}: {text} usable")
