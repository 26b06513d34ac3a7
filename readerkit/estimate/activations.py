"""Activations kept for the backward pass, and the KV cache of inference.

``activation_bytes_per_layer`` is the closed form of the paper for a GPT layer;
``layer_activations`` counts the same tensors of any shape, and equals it for a GPT.

Source: Korthikanti et al. 2205.05198, section 4 and table 2. Two bytes an element (four
where all is fp32), one for a dropout mask, four for logits; small buffers (means,
variances) are left out.
"""

from __future__ import annotations

from typing import NamedTuple

from readerkit.estimate.closed_form import checked
from readerkit.estimate.quantity import Number, divide
from readerkit.estimate.shape import Shape, cache_plain

RECOMPUTE = ("none", "selective", "full")
MODULES = {
    "core_attn": "scores, their mask and what it leaves of them",
    "layernorm": "what norms hand to attention and feed-forward",
    "mlp": "the inside of a dense feed-forward",
    "moe": "the inside of experts, and their copies of tokens",
    "moe_act": "what the activation inside an expert makes",
    "shared_experts": "the inside of shared experts",
    "mla_up_proj": "queries, keys and values that come from latents",
}
"""Megatron's ``--recompute-modules``, and what each of them drops."""
PAPER = "Korthikanti et al. 2205.05198, table 2"


@checked(recompute=RECOMPUTE)
def activation_bytes_per_layer(
    *,
    sequence: int,
    micro_batch: int,
    hidden: int,
    heads: int,
    tensor_parallel: int = 1,
    sequence_parallel: bool = False,
    recompute: str = "none",
) -> Number:
    """Return s b h (34 + 5 a s / h) and its kin, for one layer of a GPT on one rank.

    ============================  ==================================
    tensor parallel               s b h (10 + 24/t + 5 a s / (h t))
    with sequence parallel        s b h (34/t + 5 a s / (h t))
    selective recompute           the same without the last term
    full recompute                2 s b h; with sequence parallel 2 s b h / t
    ============================  ==================================

    The paper's last row is for the input kept whole; under sequence parallelism the
    layer's input is a shard already.
    """
    s, b, h, a, t = sequence, micro_batch, hidden, heads, tensor_parallel
    shard = t if sequence_parallel else 1
    if recompute == "full":
        return divide(2 * s * b * h, shard)
    from fractions import Fraction  # a search asks nothing of this

    linear = Fraction(10, shard) + Fraction(24, t)
    square = Fraction(5 * a * s, h * t) if recompute == "none" else 0
    return divide(s * b * h * (linear + square))


class LayerKind(NamedTuple):
    """How one layer runs on one rank: all that its activations depend on."""

    sequence: Number
    """The rank's own part under context parallelism."""
    micro_batch: int = 1
    tensor_parallel: int = 1
    sequence_parallel: bool = False
    recompute: str = "none"
    flash: bool = False
    """An attention that keeps one fp32 number a row instead of the scores."""
    moe: bool = False
    """Experts are taken to be balanced."""
    element_bytes: int = 2
    ranks_of_expert: int = 1
    """Ranks that each hold a part of an expert, and gather all its copies of tokens."""


def layer_activations(shape: Shape, kind: LayerKind) -> dict[str, Number]:
    """Return the bytes of each tensor that one layer keeps on one rank.

    Each rank works on its share of tokens times experts per token.
    """
    s, b, t, w = (
        kind.sequence,
        kind.micro_batch,
        kind.tensor_parallel,
        kind.element_bytes,
    )
    h, a, d, k = shape.hidden, shape.heads, shape.head_dim, shape.kv_heads
    shard = t if kind.sequence_parallel else 1
    again = recomputed_modules(kind.recompute)
    hidden = s * b * h
    if kind.recompute == "full":
        return {"layer input": divide(w * hidden, shard)}
    # With fewer key heads than ranks, each rank holds one whole.
    heads = d * (a + 2 * max(k, t))
    if shape.kv_rank:
        heads = 2 * shape.query_size + shape.value_size
    kept: dict[str, Number] = {
        "norm inputs": divide(w * shape.norms_per_layer * hidden, shard),
        "inputs of attention and feed-forward": divide(2 * w * hidden, shard),
        "queries, keys, values": divide(w * s * b * heads, t),
        "attention output": divide(w * s * b * shape.value_size, t),
    }
    if shape.kv_rank:
        # Each as its norm takes it and as the way up does; the key that turns once.
        latents = 2 * (shape.query_rank + shape.kv_rank) + shape.rope_dim
        kept["latents"] = divide(w * s * b * latents, shard)
    if "layernorm" in again:
        del kept["inputs of attention and feed-forward"]
    if "mla_up_proj" in again and shape.kv_rank:
        del kept["queries, keys, values"]
    if shape.dropout:
        kept["dropout masks"] = divide(2 * hidden, shard)
    if "core_attn" not in again and kind.flash:
        kept["softmax statistics"] = divide(4 * a * s * b, t)
    elif "core_attn" not in again:
        # Softmax output, its dropout mask, and what dropout makes of it.
        per_score = 2 * w + 1 if shape.dropout else w
        kept["attention scores"] = divide(per_score * a * s * s * b, t)
    inner = 0 if "mlp" in again else shape.ffn
    shared = {"moe", "shared_experts"} & again
    if kind.moe and "moe" in again:
        inner = 0
    elif kind.moe:
        inner = shape.experts_per_token * shape.expert_ffn
        inner += 0 if shared else shape.shared_ffn
        # Each expert's copy of its tokens; the one above goes to router and shared.
        copies, ranks = w * hidden * shape.experts_per_token, kind.ranks_of_expert
        gathered = copies if ranks == shard else divide(copies * ranks, shard)
        kept["tokens at their experts"] = gathered
    per_inner = w * (3 if shape.gated_mlp else 2)
    inside = per_inner * s * b * inner
    if kind.moe and "moe_act" in again and "moe" not in again:
        inside -= w * s * b * shape.experts_per_token * shape.expert_ffn
    kept["inside the feed-forward"] = divide(inside, t)
    return kept


def recomputed_modules(recompute: str) -> frozenset[str]:
    """Return the modules, by Megatron's names, that a word or a list stands for."""
    if recompute in RECOMPUTE:
        return frozenset({"core_attn"} if recompute == "selective" else ())
    return frozenset(recompute.split(","))


@cache_plain
def layer_bytes(shape: Shape, kind: LayerKind) -> Number:
    """Return the sum of ``layer_activations``."""
    return sum(layer_activations(shape, kind).values())


@checked()
def kv_cache_bytes(
    *,
    layers: int,
    kv_heads: int,
    head_dim: int,
    tokens: int,
    batch: int = 1,
    element_bytes: int = 2,
    tensor_parallel: int = 1,
) -> Number:
    """Return 2 L k d s b w: keys and values of every token, in every layer.

    With fewer key heads than ranks each rank holds one head, several the same.
    """
    k, t = kv_heads, tensor_parallel
    each = 2 * layers * head_dim * tokens * batch * element_bytes
    return divide(each * max(k, t), t)
