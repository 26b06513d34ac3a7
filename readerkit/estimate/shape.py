"""The shape of a transformer: its sizes, checked, and what follows from them.

Leaves out encoder-decoder models, convolutions, adapters, and what reads images.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from typing import Any, Literal, NamedTuple, TypeVar, cast

from readerkit.errors import EstimateError
from readerkit.estimate.checks import check_choice, check_count
from readerkit.estimate.quantity import (
    Number,
    Quantity,
    ceil_divide,
    divide,
    express,
    named_sizes,
)
from readerkit.estimate.sizes import MODEL

MAX_LAYERS = 100_000
MAX_SIZE = 10**9
NORMS = ("layernorm", "rmsnorm")
POSITIVE = (
    *("layers", "hidden", "heads", "vocab", "vocab_multiple", "moe_every"),
    *("head_dim", "kv_heads", "ffn"),
)


class Shape(NamedTuple):
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
    unused_positions: int = 0
    """Those of them that no token has (OPT: 2)."""
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
    moe_every: int = 1
    """After the dense layers, every n-th layer has experts: the n-th, 2 n-th, ..."""
    router_bias: bool = False
    attention_sinks: bool = False
    """One learned score a head that no token has (gpt-oss)."""
    kv_rank: int = 0
    """Low-rank attention (DeepSeek-V2): the latent of keys and values; 0: none."""
    query_rank: int = 0
    """The latent of queries; 0: they are made at once."""
    rope_dim: int = 0
    """Of a query's head, beside head_dim: the part that turns; all share its key."""
    value_dim: int = 0
    """Of a value's head; 0: head_dim."""
    window: int = 0
    """Tokens back that a local layer attends to; 0: all layers attend to all."""
    global_every: int = 0
    """Every n-th layer is no local one; 0: none is."""

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Shape:
        """Return a shape with its defaults filled in.

        Raises:
            EstimateError: an unknown or missing name, or sizes that do not fit.
        """
        for name in values:
            check_choice("size of a model", name, cls._fields)
        given = {name: value for name, value in values.items() if value is not None}
        for name in ("layers", "hidden", "heads", "vocab"):
            if name not in given:
                raise EstimateError(f"a model needs its {name}: got none")
        for name, value in given.items():
            kind = type(cls._field_defaults.get(name, 0))
            if kind is int:
                least = 1 if name in POSITIVE else 0
                most = MAX_LAYERS if name.endswith("layers") else MAX_SIZE
                given[name] = check_count(name, value, least=least, most=most)
            elif kind is bool and not isinstance(value, bool):
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
        return NamedShape(**self._asdict() | named_sizes(self, MODEL))

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
        if not self.experts:
            return 0
        after = self.layers - self.dense_layers
        return cast(int, floor_divide(after, self.moe_every))

    @property
    def plain_layers(self) -> int:
        """Layers whose feed-forward is a dense one."""
        if self.moe_every > 1:
            return self.layers - self.moe_layers
        return self.dense_layers if self.experts else self.layers

    @property
    def local_layers(self) -> int:
        """Layers that attend to no more than a window."""
        if not self.window or not self.global_every:
            return self.layers if self.window else 0
        whole = cast(int, floor_divide(self.layers, self.global_every))
        return self.layers - whole

    def has_experts(self, layer: int) -> bool:
        """Whether a layer, counted from 0, is one with experts."""
        after = layer + 1 - self.dense_layers
        return bool(self.experts) and after > 0 and after % self.moe_every == 0

    @property
    def query_size(self) -> int:
        """Width of all heads together; the hidden size in most models."""
        return self.heads * (self.head_dim + self.rope_dim)

    @property
    def value_size(self) -> int:
        """Width of what all heads hand on."""
        return self.heads * (self.value_dim or self.head_dim)

    @property
    def score_size(self) -> Number:
        """Width of scores and of what they weigh, the mean of both."""
        if not self.kv_rank:
            return self.query_size
        return divide(self.query_size + self.value_size, 2)

    @property
    def key_size(self) -> int:
        """Width of all key heads together."""
        return self.kv_heads * self.head_dim


class NamedShape(Shape):
    """A shape whose sizes are quantities; what is made of it is not cached."""

    __slots__ = ()

    def plain(self) -> Shape:
        """Return the same shape with plain numbers, which can be remembered."""
        plain: dict[str, Any] = {
            name: int(value) if isinstance(value, Quantity) else value
            for name, value in self._asdict().items()
        }
        return Shape(**plain)

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
    elif chosen or any(
        given.get(name) for name in ("shared_ffn", "expert_ffn", "dense_layers")
    ):
        raise EstimateError("experts: got 0, expected a number beside sizes of experts")
    _check_attention(given)
    if given.get("dense_layers", 0) > given["layers"]:
        raise EstimateError(
            f"dense_layers: got {given['dense_layers']}, expected at most "
            f"{given['layers']} (layers)"
        )
    return given


def _check_attention(given: dict[str, Any]) -> None:
    """Refuse parts of an attention that are there without what they are part of."""
    for name in ("query_rank", "rope_dim", "value_dim"):
        if given.get(name) and not given.get("kv_rank"):
            raise EstimateError(
                f"kv_rank: got 0, expected a number beside {name} (low-rank attention)"
            )
    if given.get("kv_rank") and given["kv_heads"] != given["heads"]:
        raise EstimateError(
            f"kv_heads: got {given['kv_heads']}, expected {given['heads']} (heads): "
            "low-rank attention makes a key for each"
        )
    if given.get("global_every") and not given.get("window"):
        raise EstimateError("window: got 0, expected a number beside global_every")
    if given.get("moe_every", 1) > 1 and not given.get("experts"):
        raise EstimateError("experts: got 0, expected a number beside moe_every")


def floor_divide(value: Any, by: Any) -> Any:
    """Return a quotient, rounded down."""
    if by == 1:
        return value
    if isinstance(value, Quantity) or isinstance(by, Quantity):
        return express("floor(value / by)", {"value": value, "by": by})
    return value // by


def padded_vocab(*, vocab: int, multiple: int = 1, tensor_parallel: int = 1) -> Number:
    """Return the vocabulary with the rows that make it divide evenly.

    Megatron pads to a multiple of ``make_vocab_size_divisible_by`` (128) times TP.
    """
    step = multiple * tensor_parallel
    if step == 1:
        return vocab
    return ceil_divide(vocab, step) * step


def fit_sequence(
    shape: Shape, sequence: int | None, default: int, name: str = "sequence"
) -> int:
    """Return the tokens of a sequence: by default no more than a position table has.

    Raises:
        EstimateError: more than the table has rows.
    """
    rows = shape.positions - shape.unused_positions
    if sequence is None:
        return min(default, rows) if shape.positions else default
    if shape.positions and sequence > rows:
        unused = f", less {shape.unused_positions} that no token has"
        raise EstimateError(
            f"{name}: got {sequence}, expected at most {rows} (rows of the model's "
            f"position table{unused if shape.unused_positions else ''}; --positions "
            "changes them)"
        )
    return sequence
