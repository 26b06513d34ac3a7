"""The shape of a transformer, and its parameters: every weight, bias, norm and table.

Leaves out encoder-decoder models, convolutions, adapters, and low-rank attention.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from readerkit.errors import EstimateError
from readerkit.estimate.quantity import (
    Estimate,
    Item,
    Number,
    check_choice,
    check_count,
    divide,
)

MAX_LAYERS = 100_000
MAX_SIZE = 10**9
NORMS = ("layernorm", "rmsnorm")
SOURCE = "a count of the tensors' shapes"


@dataclass(frozen=True, slots=True)
class Shape:
    """A decoder-only transformer, by its sizes; ``Shape.parse`` fills and checks them.

    The defaults are those of a GPT: as many key heads as heads, a feed-forward of four
    times the hidden size, layer norm, a bias everywhere.
    """

    layers: int
    hidden: int
    heads: int
    vocab: int
    kv_heads: int = 0
    """Key and value heads (grouped-query attention); 0: as many as heads."""
    head_dim: int = 0
    """0: hidden / heads."""
    ffn: int = 0
    """Inner size of the feed-forward; 0: four times hidden."""
    gated_mlp: bool = False
    """SwiGLU and its like: two input matrices instead of one."""
    tied_embeddings: bool = True
    positions: int = 0
    """Rows of a learned position table; 0: none (rotary, ALiBi)."""
    norm: Literal["layernorm", "rmsnorm"] = "layernorm"
    """Layer norm has weight and bias, RMS norm a weight alone."""
    norms_per_layer: int = 2
    final_norm: bool = True
    embedding_norm: bool = False
    qk_norm: bool = False
    """One norm weight of head_dim for queries, one for keys, in each layer."""
    qkv_bias: bool = True
    attention_output_bias: bool = True
    mlp_bias: bool = True
    dropout: bool = True
    """Whether dropout masks are kept for the backward pass."""
    experts: int = 0
    """Routed experts of a mixture-of-experts layer; 0: a dense model."""
    experts_per_token: int = 0
    expert_ffn: int = 0
    """Inner size of one expert; 0: ffn."""
    shared_ffn: int = 0
    """Inner size of the shared experts together; 0: none."""
    shared_expert_gate: bool = False
    dense_layers: int = 0
    """How many layers, from the first, keep a dense feed-forward."""
    router_bias: bool = False

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Shape:
        """Return a shape with its defaults filled in.

        Raises:
            EstimateError: an unknown or missing name, or sizes that do not fit.
        """
        known = {field.name: field for field in fields(cls)}
        for name in values:
            check_choice("size of a model", name, known)
        given = {name: value for name, value in values.items() if value is not None}
        for name in ("layers", "hidden", "heads", "vocab"):
            if name not in given:
                raise EstimateError(f"a model needs its {name}: got none")
        for name, value in given.items():
            if known[name].type == "int":
                least = 1 if name in ("layers", "hidden", "heads", "vocab") else 0
                most = MAX_LAYERS if name.endswith("layers") else MAX_SIZE
                given[name] = check_count(name, value, least=least, most=most)
            elif known[name].type == "bool" and not isinstance(value, bool):
                raise EstimateError(f"{name}: got {value!r}, expected true or false")
        check_choice("norm", given.get("norm", "layernorm"), NORMS)
        return cls(**_filled(given))

    @property
    def moe_layers(self) -> int:
        """Layers whose feed-forward is a mixture of experts."""
        return self.layers - self.dense_layers if self.experts else 0

    @property
    def query_size(self) -> int:
        """Width of all heads together; the hidden size in most models."""
        return self.heads * self.head_dim

    @property
    def key_size(self) -> int:
        """Width of all key heads together."""
        return self.kv_heads * self.head_dim


def _filled(given: dict[str, Any]) -> dict[str, Any]:
    """Return the sizes with those that follow from others, checked together."""
    hidden, heads = given["hidden"], given["heads"]
    if not given.get("head_dim"):
        if hidden % heads:
            raise EstimateError(
                f"heads: got {heads}, expected a divisor of hidden {hidden} "
                "(or a head_dim of its own)"
            )
        given["head_dim"] = hidden // heads
    given["kv_heads"] = given.get("kv_heads") or heads
    if heads % given["kv_heads"]:
        raise EstimateError(
            f"kv_heads: got {given['kv_heads']}, expected a divisor of heads {heads}"
        )
    given["ffn"] = given.get("ffn") or 4 * hidden
    experts, chosen = given.get("experts", 0), given.get("experts_per_token", 0)
    if experts:
        given["expert_ffn"] = given.get("expert_ffn") or given["ffn"]
        if not 1 <= chosen <= experts:
            raise EstimateError(
                f"experts_per_token: got {chosen}, expected 1 to {experts} (experts)"
            )
    elif chosen or given.get("shared_ffn") or given.get("expert_ffn"):
        raise EstimateError("experts: got 0, expected a number beside sizes of experts")
    if given.get("dense_layers", 0) > given["layers"]:
        raise EstimateError(
            f"dense_layers: got {given['dense_layers']}, expected at most "
            f"{given['layers']} (layers)"
        )
    return given


# --- what is stored where -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Weights:
    """Parameters by how they are divided over ranks."""

    split: Number = 0
    """Cut over the tensor-parallel group."""
    whole: Number = 0
    """Held in full by each of its ranks: norms, biases after a sum, routers."""
    expert: Number = 0
    """Of routed experts: cut over tensor- and expert-parallel groups."""

    def __add__(self, other: Weights) -> Weights:
        """Return the sum, kind by kind."""
        return Weights(
            self.split + other.split,
            self.whole + other.whole,
            self.expert + other.expert,
        )

    def times(self, factor: int) -> Weights:
        """Return that many of them."""
        return Weights(self.split * factor, self.whole * factor, self.expert * factor)

    @property
    def total(self) -> Number:
        """All of them."""
        return self.split + self.whole + self.expert


def padded_vocab(*, vocab: int, multiple: int = 1, tensor_parallel: int = 1) -> int:
    """Return the vocabulary with the rows that make it divide evenly.

    Megatron pads to a multiple of ``make_vocab_size_divisible_by`` (128) times TP.
    """
    step = multiple * tensor_parallel
    return -(-vocab // step) * step


def attention_parameters(shape: Shape, tensor_parallel: int = 1) -> Weights:
    """Return queries, keys, values and the output projection of one layer."""
    hidden, queries = shape.hidden, shape.query_size
    # With fewer key heads than ranks, each rank holds one, several the same.
    copies = max(1, tensor_parallel // shape.kv_heads)
    keys = 2 * shape.key_size * copies
    split = hidden * (queries + keys) + queries * hidden
    if shape.qkv_bias:
        split += queries + keys
    whole = hidden if shape.attention_output_bias else 0
    if shape.qk_norm:
        whole += 2 * shape.head_dim
    return Weights(split, whole)


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


def layer_parameters(shape: Shape, *, moe: bool, tensor_parallel: int = 1) -> Weights:
    """Return one layer: attention, feed-forward or experts, norms."""
    inner = moe_parameters(shape) if moe else mlp_parameters(shape, shape.ffn)
    norms = Weights(0, shape.norms_per_layer * norm_parameters(shape))
    return attention_parameters(shape, tensor_parallel) + inner + norms


def embedding_parameters(shape: Shape, vocab: int) -> Weights:
    """Return the token table, learned positions, and a norm after them."""
    norm = norm_parameters(shape) if shape.embedding_norm else 0
    return Weights(vocab * shape.hidden, shape.positions * shape.hidden + norm)


def head_parameters(shape: Shape, vocab: int, *, tied: bool) -> Weights:
    """Return the last norm and, unless it is the token table, the output matrix."""
    norm = norm_parameters(shape) if shape.final_norm else 0
    return Weights(0 if tied else vocab * shape.hidden, norm)


# --- counts ---------------------------------------------------------------------------


def parameter_count(shape: Shape, *, vocab: int | None = None) -> int:
    """Return all parameters of the model; ``vocab`` is a padded one."""
    vocab = vocab or shape.vocab
    dense = layer_parameters(shape, moe=False).times(shape.layers - shape.moe_layers)
    parts = dense + embedding_parameters(shape, vocab)
    parts += head_parameters(shape, vocab, tied=shape.tied_embeddings)
    if shape.moe_layers:
        parts += layer_parameters(shape, moe=True).times(shape.moe_layers)
    return int(parts.total)


def active_parameter_count(shape: Shape) -> int:
    """Return the parameters that one token passes through."""
    if not shape.experts:
        return parameter_count(shape)
    idle = shape.experts - shape.experts_per_token
    one = mlp_parameters(shape, shape.expert_ffn).total
    return parameter_count(shape) - int(shape.moe_layers * idle * one)


def estimate_parameters(shape: Shape, *, vocab_multiple: int = 1) -> Estimate:
    """Return the parameters of a model, part by part."""
    vocab = padded_vocab(vocab=shape.vocab, multiple=vocab_multiple)
    layers, dense = shape.layers, shape.layers - shape.moe_layers
    h, a, d, k, f = (
        shape.hidden,
        shape.heads,
        shape.head_dim,
        shape.kv_heads,
        shape.ffn,
    )
    bias = "" if shape.qkv_bias or shape.attention_output_bias else ", no bias"
    matrices = 3 if shape.gated_mlp else 2
    rows: list[tuple[str, Number, str]] = [
        ("token embedding", vocab * h, f"V h = {vocab} × {h}"),
    ]
    if shape.positions:
        rows.append(
            ("position embedding", shape.positions * h, f"{shape.positions} × {h}")
        )
    rows.append(
        (
            "attention",
            attention_parameters(shape).total * layers,
            f"layers × h d (2 a + 2 k){bias or ' + biases'}: "
            f"{layers} × {h} × {d} × (2·{a} + 2·{k})",
        )
    )
    if dense:
        rows.append(
            (
                "feed-forward",
                mlp_parameters(shape, f).total * dense,
                f"layers × {matrices} h f{' + biases' if shape.mlp_bias else ''}: "
                f"{dense} × {matrices} × {h} × {f}",
            )
        )
    if shape.moe_layers:
        moe = moe_parameters(shape)
        rows += [
            (
                "routed experts",
                moe.expert * shape.moe_layers,
                f"layers × experts × {matrices} h f: {shape.moe_layers} × "
                f"{shape.experts} × {matrices} × {h} × {shape.expert_ffn}",
            ),
            (
                "shared experts and router",
                (moe.split + moe.whole) * shape.moe_layers,
                f"layers × ({matrices} h f_shared + h × experts)",
            ),
        ]
    norm = norm_parameters(shape)
    count = shape.norms_per_layer * layers + shape.final_norm + shape.embedding_norm
    rows.append(("norms", norm * count, f"{count} × {norm} ({shape.norm})"))
    if not shape.tied_embeddings:
        rows.append(("output matrix", vocab * h, f"V h = {vocab} × {h}, untied"))
    items = [
        Item(name, value, "parameters", formula, SOURCE)
        for name, value, formula in rows
    ]
    total = parameter_count(shape, vocab=vocab)
    items.append(Item("parameters", total, "parameters", "sum of the above", SOURCE))
    if shape.experts:
        items.append(
            Item(
                "active per token",
                active_parameter_count(shape),
                "parameters",
                f"all but {shape.experts - shape.experts_per_token} of "
                f"{shape.experts} experts a layer",
                SOURCE,
            )
        )
    notes = []
    if vocab != shape.vocab:
        notes.append(f"vocabulary padded from {shape.vocab} to {vocab}")
    if shape.tied_embeddings:
        notes.append("tied: the token table is the output matrix too, counted once")
    return Estimate("parameters", tuple(items), tuple(notes))


def narayanan_parameters(
    *, layers: int, hidden: int, vocab: int, sequence: int
) -> Number:
    """Return P = 12 l h² (1 + 13/(12 h) + (V + s)/(12 l h)).

    Source: Narayanan et al. 2104.04473, equation 2: a GPT with learned positions and
    tied embeddings, which is what ``parameter_count`` gives less the last norm's 2 h.
    """
    h, layers_h = hidden, layers * hidden
    return divide(12 * layers_h * h + 13 * layers_h + (vocab + sequence) * h)


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
