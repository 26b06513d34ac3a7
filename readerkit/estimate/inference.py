"""Memory of inference: weights and KV cache on one GPU of a layout."""

from __future__ import annotations

from readerkit.estimate.activations import kv_cache_bytes
from readerkit.estimate.checks import check_amount, check_count
from readerkit.estimate.fit import check_fit
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.layout import Layout, stage_layers
from readerkit.estimate.memory import ON_GPU, rank_weights
from readerkit.estimate.memory_estimates import add_parameters, add_room
from readerkit.estimate.parameters import SOURCE
from readerkit.estimate.quantity import Number, ceil_divide
from readerkit.estimate.rank_layers import layers_of_rank, telling_ranks
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
    expert_bytes: Number | None = None,
    cache_bytes: int = 2,
    gpu_bytes: Number | None = None,
    reserve: Number = 0,
) -> Estimate:
    """Return weights plus KV cache on the most loaded GPU; no gradients, no optimizer.

    Sequences are dealt out over dp, the tokens of each over cp, layers over pp, heads
    over tp and experts over ep and etp; the last page of a sequence counts whole.

    Raises:
        EstimateError: sizes that do not fit.
    """
    layout = layout or Layout()
    # A cache need not be even.
    check_fit(shape, layout._replace(sequence=2 * layout.cp * layout.tp))
    check_count("context", tokens, most=MAX_TOKENS)
    check_count("batch", batch, most=MAX_TOKENS)
    check_count("page tokens", page_tokens, most=MAX_TOKENS)
    check_amount("weight_bytes", weight_bytes)
    own = weight_bytes if expert_bytes is None else expert_bytes
    check_amount("expert_bytes", own)
    here = -(-tokens // (layout.cp * page_tokens)) * page_tokens
    sequences = -(-batch // layout.dp)

    def held(rank: int) -> Number:
        whole, local = cached_layers(shape, layout, rank)
        of_layers = whole * here + local * min(here, shape.window)
        cached = of_layers * sequences * _token_bytes(shape, layout, 1, cache_bytes)
        dense, experts = rank_weights(shape, layout, rank)
        return dense * weight_bytes + experts * own + cached

    ranks = range(layout.pp) if shape.window else telling_ranks(shape, layout.pp)
    rank = max(ranks, key=held)
    sheet = Worksheet("memory of inference, one GPU")
    one, cut = shape.named(), layout.named()
    add_parameters(sheet, *rank_weights(one, cut, rank), layout, rank)
    cached = sheet.given("c", cache_bytes, "bytes of a cached number")
    layers = sum(layers_of_rank(one, cut, rank)) if layout.pp > 1 else one.layers
    _weights(sheet, shape, weight_bytes, own)
    _cache(sheet, cut, tokens, batch, page_tokens)
    size = "KV cache per token × tokens × sequences"
    whole, local = cached_layers(shape, layout, rank)
    if local:
        sheet.given("W", shape.window, "tokens that a local layer keeps")
        sheet.given("L_g", whole, "global layers on the GPU")
        sheet.given("L_l", local, "local layers on the GPU")
        sheet.names["of a layer"] = _token_bytes(one, cut, 1, cached)
        size = "of a layer × (L_g × tokens + L_l × min(tokens, W)) × sequences"
    kept = f"keys and values of {shape.kv_heads} heads (of {shape.heads})"
    if shape.kv_rank:
        kept = "one latent for all heads, and the key that is turned"
    pages = f"pages of {page_tokens} tokens; " if page_tokens > 1 else ""
    full = f"{pages}every sequence at its full length, dealt out over dp and cp"
    sheet.write(
        f"""
        KV cache per token [bytes] = token_bytes | {SOURCE}
            | {kept}, one token
        KV cache [bytes] = {size} | {PAGED if pages else SOURCE} | {full}
        total [bytes] = weights + KV cache | {SOURCE} | weights and KV cache alone
        """,
        token_bytes=_token_bytes(one, cut, layers, cached),
    )
    sheet.notes.append("activations of one token are small and left out")
    if gpu_bytes is not None:
        _verdict(sheet, gpu_bytes, reserve)
    return sheet.estimate()


def cached_layers(shape: Shape, layout: Layout, rank: int) -> tuple[int, int]:
    """Return the layers of a rank that cache all tokens, and the local ones."""
    ends = layout.first_layers, layout.last_layers
    counts = stage_layers(shape.layers, layout.pp, 1, *ends)
    if not shape.window:
        return counts[rank], 0
    held = range(sum(counts[:rank]), sum(counts[: rank + 1]))
    every = shape.global_every
    whole = sum(1 for layer in held if every and (layer + 1) % every == 0)
    return whole, len(held) - whole


def _weights(sheet: Worksheet, shape: Shape, each: Number, own: Number) -> None:
    """Write down the weights, those of experts in a format of their own."""
    sheet.given("w", each, "bytes of a weight")
    said = f"{SOURCE} | {each:g} B a weight"
    if own == each or not shape.experts:
        sheet.write(f"weights [bytes] = w × {ON_GPU} | {said}")
        return
    sheet.given("w_e", own, "bytes of an expert's weight")
    sheet.write(
        f"""
        weights [bytes] = w × dense parameters + w_e × experts' parameters
            | {said}, {own:g} B an expert's
        """
    )


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
    each = "(usable - weights) / KV cache per token"
    of = "of all sequences on this GPU together"
    if sheet.names.get("L_g"):
        # Once windows are full, global layers alone take more.
        each = f"""max({each}, ((usable - weights) / of a layer
            - L_l × W × sequences) / L_g)"""
        of = "of as many sequences on this GPU together, equally long"
    elif "L_g" in sheet.names:
        of = "in the windows of all sequences on this GPU together"
    sheet.write(
        f"""
        tokens that fit beside the weights [tokens] = max(0, floor({each}))
            | {SOURCE} | {of}
        """
    )
    left, total, usable = (
        format_bytes(float(sheet[name]), 2) for name in ("left", "total", "usable")
    )
    fits = f"fits: {left} left of {usable} usable"
    if sheet["left"] < 0:
        fits = f"does not fit: {total} held, {usable} usable"
    sheet.notes.insert(0, fits)
