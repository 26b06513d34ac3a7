"""The parameters of a transformer: every weight, bias, norm and table."""

from __future__ import annotations

from typing import Any, NamedTuple

from readerkit.estimate.closed_form import ClosedForm
from readerkit.estimate.quantity import Number
from readerkit.estimate.shape import Shape

SOURCE = "a count of the tensors' shapes"


class Weights(NamedTuple):
    """Parameters by how they are divided over ranks."""

    split: Number = 0
    """Cut over the tensor-parallel group."""
    whole: Number = 0
    """Held in full by each of its ranks: norms, biases after a sum, routers."""
    expert: Number = 0
    """Of routed experts: cut over tensor- and expert-parallel groups."""

    def __add__(self, other: Weights) -> Weights:  # type: ignore[override]
        """Return the sum, kind by kind."""
        return Weights(
            self.split + other.split,
            self.whole + other.whole,
            self.expert + other.expert,
        )

    def times(self, factor: int) -> Weights:
        """Return that many of them."""
        return Weights(factor * self.split, factor * self.whole, factor * self.expert)

    @property
    def total(self) -> Number:
        """All of them."""
        return self.split + self.whole + self.expert


def attention_parameters(shape: Shape) -> Weights:
    """Return queries, keys, values and the output projection of one layer.

    With fewer key heads than ranks Megatron cuts the rows all the same.
    """
    if shape.kv_rank:
        return low_rank_parameters(shape)
    h, a, d, k = shape.hidden, shape.heads, shape.head_dim, shape.kv_heads
    split = h * d * (2 * a + 2 * k)
    if shape.qkv_bias:
        split += d * (a + 2 * k)
    if shape.attention_sinks:
        split += a
    whole = h if shape.attention_output_bias else 0
    if shape.qk_norm:
        whole += 2 * d
    return Weights(split, whole)


def low_rank_parameters(shape: Shape) -> Weights:
    """Return the attention of DeepSeek-V2: down to latents, up to heads.

    The way down, and the key that turns, are held whole by every rank; the way up is
    cut by heads.

    Source: DeepSeek-V2 2405.04434, section 2.1 and appendix C.
    """
    h, q, c, r = shape.hidden, shape.query_rank, shape.kv_rank, shape.rope_dim
    norm = 2 if shape.norm == "layernorm" else 1
    pairs = shape.heads * shape.head_dim + shape.value_size
    split = c * pairs + h * shape.value_size
    whole = h * (c + r) + norm * c
    if not q:
        split += h * shape.query_size
    else:
        split += q * shape.query_size
        whole += h * q + norm * q
    return Weights(split, whole)


def attention_matrices(shape: Shape) -> Number:
    """Return the weights of one layer's attention that multiply a token."""
    if not shape.kv_rank:
        return shape.hidden * (2 * shape.query_size + 2 * shape.key_size)
    norm = 2 if shape.norm == "layernorm" else 1
    latents = norm * (shape.query_rank + shape.kv_rank)
    return low_rank_parameters(shape).total - latents


def mlp_parameters(shape: Shape, ffn: int) -> Weights:
    """Return one feed-forward with this inner size."""
    inputs = 2 if shape.gated_mlp else 1
    split = (inputs + 1) * shape.hidden * ffn
    if not shape.mlp_bias:
        return Weights(split)
    return Weights(split + inputs * ffn, shape.hidden)


def moe_parameters(shape: Shape) -> Weights:
    """Return the experts, the shared ones and the router of one layer."""
    one = mlp_parameters(shape, shape.expert_ffn)
    router = shape.hidden * shape.experts + (shape.experts if shape.router_bias else 0)
    gate = shape.hidden if shape.shared_expert_gate else 0
    shared = mlp_parameters(shape, shape.shared_ffn) if shape.shared_ffn else Weights()
    return shared + Weights(0, router + gate, one.total * shape.experts)


def norm_parameters(shape: Shape) -> int:
    """Return one norm over the hidden size."""
    return shape.hidden * (2 if shape.norm == "layernorm" else 1)


def layer_parameters(shape: Shape, *, moe: bool) -> Weights:
    """Return one layer: attention, feed-forward or experts, norms."""
    inner = moe_parameters(shape) if moe else mlp_parameters(shape, shape.ffn)
    norms = Weights(0, shape.norms_per_layer * norm_parameters(shape))
    return attention_parameters(shape) + inner + norms


def embedding_parameters(shape: Shape, vocab: Number) -> Weights:
    """Return the token table, learned positions, and a norm after them."""
    norm = norm_parameters(shape) if shape.embedding_norm else 0
    return Weights(vocab * shape.hidden, shape.positions * shape.hidden + norm)


def head_parameters(shape: Shape, vocab: Number, *, tied: bool) -> Weights:
    """Return the last norm and, unless it is the token table, the output matrix."""
    norm = norm_parameters(shape) if shape.final_norm else 0
    return Weights(0 if tied else vocab * shape.hidden, norm)


# --- counts ---------------------------------------------------------------------------


def parameter_count(shape: Shape, *, vocab: Number | None = None) -> Number:
    """Return all parameters of the model; ``vocab`` is a padded one."""
    vocab = vocab or shape.vocab
    dense = layer_parameters(shape, moe=False).times(shape.plain_layers)
    parts = dense + embedding_parameters(shape, vocab)
    parts += head_parameters(shape, vocab, tied=shape.tied_embeddings)
    if shape.moe_layers:
        parts += layer_parameters(shape, moe=True).times(shape.moe_layers)
    return parts.total


def active_parameter_count(shape: Shape, count: Number | None = None) -> Number:
    """Return the parameters that one token passes through; ``count`` is all of them."""
    count = parameter_count(shape) if count is None else count
    if not shape.experts:
        return count
    idle = shape.experts - shape.experts_per_token
    return (
        count - shape.moe_layers * idle * mlp_parameters(shape, shape.expert_ffn).total
    )


narayanan_parameters = ClosedForm(
    "12 × layers × hidden² × (1 + 13 / (12 × hidden) "
    "+ (vocab + sequence) / (12 × layers × hidden))",
    whole="layers hidden vocab sequence",
)
"""A GPT with learned positions and tied embeddings, without the last norm's 2 h.

Source: Narayanan et al. 2104.04473, equation 2.
"""


def gpt_parameters(
    *, layers: int, hidden: int, vocab: int, positions: int = 0
) -> Number:
    """Return the parameters of a GPT: 12 h² + 13 h a layer, tables, the last norm."""
    sizes = {"layers": layers, "hidden": hidden, "vocab": vocab, "positions": positions}
    return parameter_count(Shape.parse(sizes | {"heads": 1}))


def transformer_parameters(
    *, layers: int, hidden: int, heads: int, vocab: int, **sizes: Any
) -> Number:
    """Return the parameters of any shape; the names are those of ``Shape``."""
    given = {"layers": layers, "hidden": hidden, "heads": heads, "vocab": vocab}
    return parameter_count(Shape.parse(given | sizes))
