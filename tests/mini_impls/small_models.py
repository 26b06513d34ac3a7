"""Random small models, which any mini may train: tied, frozen, uneven, of some dtypes.

A part of a tensor that a rank shows is held against the same part of one process's.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from mini_impls.model import (
    GPT,
    Batch,
    GPTConfig,
    build_model,
    make_batch,
    train_one_process,
)

STEPS = 2
DTYPES = (torch.float32, torch.float64, torch.bfloat16)
ROUNDINGS = 24
"""How many times the rounding of its dtype a sum may be off whose order is another."""
TRAININGS = 8
"""How many times the error that one process makes by rounding a training may be off.

Of three ranks sums have another order, a mean is divided elsewhere, and the next step
makes more of that. A wrong sum is off by hundreds of that.
"""

Parts = Mapping[str, Tensor]
Answer = tuple[list[float], Parts, Parts]
"""What a rank saw: losses, and parts of parameters and of their last gradients."""


class ScaledGPT(GPT):
    """A GPT with a scale of each logit, which has a dtype of its own."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__(config)
        self.scale = nn.Parameter(torch.linspace(0.5, 1.5, config.vocab_size))

    def forward(self, tokens: Tensor) -> Tensor:
        logits = super().forward(tokens)
        return logits * self.scale.to(logits.dtype)


@dataclass(frozen=True, slots=True)
class SmallModel:
    """One that was drawn."""

    config: GPTConfig
    dtype: torch.dtype = torch.float32
    scale_dtype: torch.dtype | None = None
    """Of a scale at the end, where it has one."""
    frozen: tuple[str, ...] = ()
    """Beginnings of names."""
    rows: int = 1
    """Of a batch, for each rank or microbatch."""

    def build(self, seed: int = 0) -> GPT:
        """Return the model, its weights of one seed."""
        gpt = build_model(self.config, seed=seed)
        if self.scale_dtype is not None:
            scaled = ScaledGPT(self.config)
            scaled.load_state_dict(gpt.state_dict(), strict=False)
            gpt = scaled
        gpt = gpt.to(self.dtype)
        if self.scale_dtype is not None:
            gpt.scale = nn.Parameter(gpt.scale.detach().to(self.scale_dtype))
        for name, param in gpt.named_parameters():
            param.requires_grad_(not name.startswith(self.frozen))
        return gpt

    def batches(self, parts: int, steps: int = STEPS) -> list[Batch]:
        """Return batches whose rows are cut into that many parts."""
        rows = self.rows * parts
        return [make_batch(self.config, step=i, batch_size=rows) for i in range(steps)]

    def rounding(self) -> float:
        """Return the coarsest; losses are made in fp32 whatever the weights."""
        dtypes = {torch.float32, self.dtype, self.scale_dtype or self.dtype}
        return max(torch.finfo(dtype).eps for dtype in dtypes)


def frozen_names(config: GPTConfig) -> st.SearchStrategy[tuple[str, ...]]:
    """Return choices of what to freeze; the last layer's MLP is left to be trained."""
    inner = ["self_attention", "mlp.linear_fc1.weight", "input_layernorm.bias"]
    layers = [f"layers.{i}." for i in range(config.num_layers)]
    names = [
        "embedding",
        "embedding.position_embeddings",
        "final_layernorm",
        *(f"{layer}{name}" for layer in layers for name in inner),
        *layers[:-1],
    ]
    return st.lists(st.sampled_from(names), max_size=2, unique=True).map(tuple)


@st.composite
def small_models(
    draw: st.DrawFn,
    *,
    cut: int = 1,
    layers: Sequence[int] = (1, 2, 3),
    may_scale: bool = True,
) -> SmallModel:
    """Draw a model; heads, groups, MLP, vocabulary and tokens are multiples of `cut`.

    Else sizes are as they come: odd ones, and fewer rows than there are ranks.
    """

    def size(most: int) -> int:
        return cut * draw(st.integers(1, most))

    groups = size(2)
    heads = groups * draw(st.sampled_from([1, 2]))
    config = GPTConfig(
        vocab_size=cut * draw(st.integers(3, 7)),
        max_sequence_length=size(5),
        num_layers=draw(st.sampled_from(layers)),
        hidden_size=heads * draw(st.sampled_from([3, 4, 5])),
        num_attention_heads=heads,
        num_query_groups=groups,
        ffn_hidden_size=size(7),
        share_embeddings_and_output_weights=draw(st.sampled_from([True, False])),
    )
    return SmallModel(
        config,
        dtype=draw(st.sampled_from(DTYPES)),
        scale_dtype=draw(st.sampled_from([None, *DTYPES])) if may_scale else None,
        frozen=draw(frozen_names(config)),
        rows=draw(st.integers(1, 2)),
    )


def sgd(params: Iterable[Tensor] | Iterable[dict[str, Any]]) -> torch.optim.SGD:
    """Return what all train with: a gradient off by some is a weight off by as much."""
    return torch.optim.SGD(params, lr=0.1, momentum=0.9)


def train_alone(
    small: SmallModel,
    parts: int,
    dtype: torch.dtype | None = None,
    *,
    steps: int = STEPS,
    max_norm: float = math.inf,
) -> tuple[list[float], dict[str, Tensor], dict[str, Tensor]]:
    """Return losses, parameters and gradients of one process, perhaps in another dtype.

    A tied weight is there by each of its names.
    """
    gpt = small.build()
    if dtype is not None:
        gpt = gpt.to(dtype)
    optimizer, batches = sgd(gpt.parameters()), small.batches(parts, steps)
    if max_norm < math.inf:
        params = list(gpt.parameters())

        def clip(*_: Any) -> None:
            nn.utils.clip_grad_norm_(params, max_norm)

        optimizer.register_step_pre_hook(clip)
    losses = train_one_process(gpt, optimizer, batches, chunks=parts)
    named = dict(gpt.named_parameters(remove_duplicate=False))
    grads = {name: p.grad for name, p in named.items() if p.grad is not None}
    return losses, {name: p.detach() for name, p in named.items()}, grads


def error_by_rounding(small: SmallModel, parts: int, **how: Any) -> float:
    """Return how far one process is from itself in a dtype that rounds elsewhere."""
    other = torch.float32 if small.dtype is torch.float64 else torch.float64
    losses, *tensors = train_alone(small, parts, **how)
    others, *other_tensors = train_alone(small, parts, other, **how)
    apart = [abs(a - b) for a, b in zip(losses, others, strict=True)]
    for of, of_other in zip(tensors, other_tensors, strict=True):
        apart += [float((of[name] - of_other[name]).abs().max()) for name in of]
    return max(apart)


def part_of(whole: Tensor, shape: torch.Size, rank: int, world_size: int) -> Tensor:
    """Return what a rank has of a tensor: a slice of the first dimension that differs.

    The last ranks may have fewer, or none.
    """
    for dim, (all_of_it, some) in enumerate(zip(whole.shape, shape, strict=True)):
        if all_of_it != some:
            size = -(-all_of_it // world_size)
            start = min(rank * size, all_of_it)
            return whole.narrow(dim, start, min(size, all_of_it - start))
    return whole


def assert_trained_alike(
    small: SmallModel,
    answers: Sequence[Answer],
    parts: int,
    *,
    exact: bool = False,
    **how: Any,
) -> None:
    """Hold what each rank saw against one process, and all together against all of it.

    Exact: bit by bit, where two ranks make sums of two terms.
    """
    losses, want, grads = train_alone(small, parts, **how)
    off = 0.0
    if not exact:
        off = TRAININGS * error_by_rounding(small, parts, **how)
        off += ROUNDINGS * small.rounding()
    for rank, (seen, params, own_grads) in enumerate(answers):
        for got, loss in zip(seen, losses, strict=True) if seen else ():
            assert abs(got - loss) <= max(off, 1e-12 * loss), "a loss is another"
        for of, got_of in ((want, params), (grads, own_grads)):
            for name, got in got_of.items():
                whole = of[name]
                mine = part_of(whole, got.shape, rank, len(answers))
                assert got.dtype == mine.dtype and got.shape == mine.shape, name
                apart = [0.0, *(got - mine).abs().flatten().tolist()]
                assert max(apart) <= off, f"{name} of rank {rank} is off"
    assert any(seen for seen, *_ in answers)
    once = {p.data_ptr(): name for name, p in reversed(want.items())}.values()
    assert set(once) <= set().union(*(params for _, params, _ in answers))
    assert {*once} & {*grads} <= set().union(*(own for *_, own in answers))
