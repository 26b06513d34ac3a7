"""The shape of a transformer, and its parameters: every weight, bias, norm and table.

Leaves out encoder-decoder models, convolutions, adapters, and low-rank attention.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache, wraps
from typing import Any, Literal, TypeVar, cast

from readerkit.errors import EstimateError
from readerkit.estimate.checks import check_choice, check_count
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.quantity import Number, Quantity, ceil_divide, divide

MAX_LAYERS = 100_000
MAX_SIZE = 10**9
NORMS = ("layernorm", "rmsnorm")
POSITIVE = ("layers", "hidden", "heads", "vocab", "vocab_multiple")
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
    vocab_multiple: int = 1
    """Padding of the vocabulary: to a multiple of this times tensor parallel."""
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
                least = 1 if name in POSITIVE else 0
                most = MAX_LAYERS if name.endswith("layers") else MAX_SIZE
                given[name] = check_count(name, value, least=least, most=most)
            elif known[name].type == "bool" and not isinstance(value, bool):
                raise EstimateError(f"{name}: got {value!r}, expected true or false")
        check_choice("norm", given.get("norm", "layernorm"), NORMS)
        return cls(**_filled(given))

    def __hash__(self) -> int:
        """Return a hash of what tells models apart; a search asks for it often."""
        return hash((self.layers, self.hidden, self.heads, self.vocab, self.ffn))

    def named(self) -> NamedShape:
        """Return the same shape with sizes that know their names.

        What is computed from it is a quantity, with its formula.
        """
        sizes = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, (symbol, means) in SYMBOLS.items():
            # What a model has none of, or does not pad, is in no formula.
            if sizes[name] > (name == "vocab_multiple"):
                sizes[name] = Quantity.given(symbol, sizes[name], means)
        return NamedShape(**sizes)

    def call(self, symbol: str, value: int, means: str) -> int:
        """Return a number that belongs to it: under this symbol where it has names."""
        return value

    def padded_vocab(self, tensor_parallel: int = 1) -> Number:
        """Return the vocabulary with the rows that make it divide evenly."""
        return padded_vocab(
            vocab=self.vocab,
            multiple=self.vocab_multiple,
            tensor_parallel=tensor_parallel,
        )

    @property
    def moe_layers(self) -> int:
        """Layers whose feed-forward is a mixture of experts."""
        return self.layers - self.dense_layers if self.experts else 0

    @property
    def plain_layers(self) -> int:
        """Layers whose feed-forward is a dense one."""
        return self.dense_layers if self.experts else self.layers

    @property
    def query_size(self) -> int:
        """Width of all heads together; the hidden size in most models."""
        return self.heads * self.head_dim

    @property
    def key_size(self) -> int:
        """Width of all key heads together."""
        return self.kv_heads * self.head_dim


SYMBOLS = {
    "layers": ("L", "layers"),
    "hidden": ("h", "hidden size"),
    "heads": ("a", "attention heads"),
    "vocab": ("V", "vocabulary"),
    "vocab_multiple": ("M", "vocabulary padded to a multiple"),
    "kv_heads": ("k", "key-value heads"),
    "head_dim": ("d", "size of a head"),
    "ffn": ("f", "inner size of the feed-forward"),
    "positions": ("P", "rows of the position table"),
    "experts": ("E", "routed experts of a layer"),
    "experts_per_token": ("K", "experts that a token goes to"),
    "expert_ffn": ("f_e", "inner size of an expert"),
    "shared_ffn": ("f_s", "inner size of the shared experts"),
    "dense_layers": ("L_d", "layers without experts"),
}
"""Sizes as papers write them, and what they are."""


@dataclass(frozen=True, slots=True)
class NamedShape(Shape):
    """A shape whose sizes are quantities: never equal to a plain one, nor cached."""

    def call(self, symbol: str, value: int, means: str) -> Any:
        """Return a quantity; a number that it has none of stays nothing."""
        return Quantity.given(symbol, value, means) if value else 0


Function = TypeVar("Function", bound=Callable[..., Any])


def cache_plain(function: Function) -> Function:
    """Remember what a function makes of plain shapes, for a search that asks often.

    Of a named shape it is made each time: equal values may come about differently.
    """
    remembered = lru_cache(maxsize=16_384)(function)

    @wraps(function)
    def call(shape: Shape, *rest: Any) -> Any:
        if isinstance(shape, NamedShape):
            return function(shape, *rest)
        return remembered(shape, *rest)

    return cast(Function, call)


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
        return Weights(factor * self.split, factor * self.whole, factor * self.expert)

    @property
    def total(self) -> Number:
        """All of them."""
        return self.split + self.whole + self.expert


def padded_vocab(*, vocab: int, multiple: int = 1, tensor_parallel: int = 1) -> Number:
    """Return the vocabulary with the rows that make it divide evenly.

    Megatron pads to a multiple of ``make_vocab_size_divisible_by`` (128) times TP.
    """
    step = multiple * tensor_parallel
    if step == 1:
        return vocab
    return ceil_divide(vocab, step) * step


def attention_parameters(shape: Shape, tensor_parallel: int = 1) -> Weights:
    """Return queries, keys, values and the output projection of one layer."""
    h, a, d, k = shape.hidden, shape.heads, shape.head_dim, shape.kv_heads
    # With fewer key heads than ranks, each rank holds one, several the same.
    k = max(k, tensor_parallel)
    split = h * d * (2 * a + 2 * k)
    if shape.qkv_bias:
        split += d * (a + 2 * k)
    whole = h if shape.attention_output_bias else 0
    if shape.qk_norm:
        whole += 2 * d
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


def estimate_parameters(shape: Shape) -> Estimate:
    """Return the parameters of a model, part by part."""
    sheet = Worksheet("parameters")
    vocab = shape.padded_vocab()
    if vocab != shape.vocab:
        sheet.notes.append(f"vocabulary padded from {shape.vocab} to {vocab}")
    if shape.tied_embeddings:
        sheet.notes.append(
            "tied: the token table is the output matrix too, counted once"
        )
    shape = shape.named()
    vocab = shape.padded_vocab()
    for name, parameters in _parts(shape, vocab).items():
        if parameters:
            sheet.add(name, parameters, "parameters", SOURCE, "of the whole model")
    total = sheet.total([item.name for item in sheet.items])
    total = sheet.add("parameters", total, "parameters", SOURCE, "embeddings included")
    if shape.experts:
        active = active_parameter_count(shape, total)
        named = "embeddings included"
        sheet.add("active per token", active, "parameters", SOURCE, named)
    return sheet.estimate()


def _parts(shape: Shape, vocab: Number) -> dict[str, Number]:
    """Return the parameters of each part of a model; none where it has no such part."""
    h, norm = shape.hidden, norm_parameters(shape)
    dense, moe = shape.plain_layers, shape.moe_layers
    norms = shape.norms_per_layer * shape.layers
    norms += shape.final_norm + shape.embedding_norm
    parts: dict[str, Number] = {
        "token embedding": vocab * h,
        "position embedding": shape.positions * h,
        "attention": shape.layers * attention_parameters(shape).total,
        "feed-forward": dense * mlp_parameters(shape, shape.ffn).total,
    }
    if moe:
        experts = moe_parameters(shape)
        parts["routed experts"] = moe * experts.expert
        parts["shared experts and router"] = moe * (experts.split + experts.whole)
    parts["norms"] = norms * norm
    parts["output matrix"] = 0 if shape.tied_embeddings else vocab * h
    return parts


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
