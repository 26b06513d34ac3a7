"""A model under sequence parallelism: random streams, shards of tokens, last gradients.

What is cut by tokens needs three things besides the layers of `sequence_parallel.py`:
dropout that differs between ranks, a way into the shards and out of them, and a sum of
the gradients of norms and biases, each of which saw a rank's own tokens alone.

    embedding | split, drop | layers on T/W tokens | norm | gather | output layer

Follows:
- NVIDIA/Megatron-LM: megatron/core/tensor_parallel/random.py
- NVIDIA/Megatron-LM: megatron/core/distributed/finalize_model_grads.py

Leaves out:
- vocabulary-parallel embedding and loss (`tensor_parallel.py`): whole on every rank
- fewer query groups than ranks: `grouped_queries.py`
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F

from mini_impls import model
from mini_impls.model import GPT, GPTConfig, SelfAttention, TransformerLayer
from mini_impls.sequence_parallel import (
    ColumnParallelLinear,
    RowParallelLinear,
    gather_from_sequence_parallel_region,
    scatter_to_sequence_parallel_region,
)

# Dimension letters: T tokens, B sequences, D hidden, V vocabulary, N heads, G query
# groups, H width of a head, W world_size.

# --- 1. random streams ---


class RNGStatesTracker:
    """Named states of one generator: some streams agree between ranks, some differ."""

    def __init__(self, generator: torch.Generator) -> None:
        self.generator = generator
        self.states_: dict[str, Tensor] = {}

    def add(self, name: str, seed: int) -> None:
        """Start a stream, and leave the current one where it is."""
        if name in self.states_:
            raise ValueError(f"stream {name!r} exists already")
        orig_rng_state = self.generator.get_state()
        self.generator.manual_seed(seed)
        self.states_[name] = self.generator.get_state()
        self.generator.set_state(orig_rng_state)

    @contextmanager
    def fork(self, name: str = "model-parallel-rng") -> Iterator[None]:
        """Draw from a stream inside `with`; go on with the current one after it."""
        orig_rng_state = self.generator.get_state()
        self.generator.set_state(self.states_[name])
        try:
            yield
        finally:
            self.states_[name] = self.generator.get_state()
            self.generator.set_state(orig_rng_state)


def model_parallel_manual_seed(
    seed: int, tp_rank: int, generator: torch.Generator
) -> RNGStatesTracker:
    """Seed the common stream with `seed`, and one that belongs to this rank alone."""
    generator.manual_seed(seed)
    tracker = RNGStatesTracker(generator)
    tracker.add("model-parallel-rng", seed + 2718 + tp_rank)
    return tracker


class SequenceParallelDropout(nn.Dropout):
    """Dropout on a shard of tokens: the common stream would drop alike in all."""

    def __init__(self, p: float, tracker: RNGStatesTracker) -> None:
        super().__init__(p)
        self.tracker = tracker

    def forward(self, input: Tensor) -> Tensor:
        """Drop with this rank's own stream."""
        with self.tracker.fork():
            return super().forward(input)


# --- 2. parts of a model, on shards of tokens ---


class SequenceParallelEntry(nn.Module):
    """Stands where the embedding's dropout does: split the sequence, then drop."""

    def __init__(
        self, dropout: SequenceParallelDropout, tp_group: dist.ProcessGroup
    ) -> None:
        super().__init__()
        self.dropout, self.tp_group = dropout, tp_group

    def forward(self, embeddings: Tensor) -> Tensor:
        """Map (B, T, D), the same on every rank, to this rank's tokens (T/W, B, D)."""
        hidden = embeddings.transpose(0, 1)  # (T, B, D)
        hidden = scatter_to_sequence_parallel_region(hidden, self.tp_group)
        return self.dropout.forward(hidden)


class SequenceParallelAttention(nn.Module):
    """Attention over all tokens, for the query groups of this rank."""

    def __init__(
        self, master: SelfAttention, tp_group: dist.ProcessGroup, regather: bool
    ) -> None:
        super().__init__()
        self.linear_qkv = ColumnParallelLinear(master.linear_qkv, tp_group, regather)
        self.linear_proj = RowParallelLinear(master.linear_proj, tp_group)
        self.core_attention = master.core_attention  # for any whole number of groups

    def forward(self, hidden: Tensor) -> Tensor:
        """Map (T/W, B, D) to (T/W, B, D)."""
        mixed_qkv = self.linear_qkv(hidden).transpose(0, 1)  # (B, T, G(N/G+2)H/W)
        context = self.core_attention(mixed_qkv).transpose(0, 1)  # (T, B, D/W)
        return self.linear_proj.forward(context)


class SequenceParallelOutput(nn.Module):
    """The whole output layer on every rank: repeated work on gathered tokens."""

    def __init__(self, master: nn.Linear, tp_group: dist.ProcessGroup) -> None:
        super().__init__()
        self.tp_group = tp_group
        self.weight = master.weight

    def forward(self, hidden: Tensor) -> Tensor:
        """Map this rank's tokens (T/W, B, D) to all logits (B, T, V)."""
        hidden = gather_from_sequence_parallel_region(
            hidden, self.tp_group, tensor_parallel_output_grad=False
        )  # (T, B, D)
        return F.linear(hidden.transpose(0, 1), self.weight)  # (B, T, V)


# --- 3. a whole model ---


def check_sizes(config: GPTConfig, world_size: int) -> None:
    """Raise ValueError where the model cannot be cut into that many slices."""
    for size, what in (
        (config.num_query_groups, "query groups"),
        (config.ffn_hidden_size, "MLP channels"),
        (config.max_sequence_length, "tokens"),
    ):
        if size % world_size:
            raise ValueError(f"{size} {what} are not divisible by {world_size} ranks")


def sequence_parallel(
    gpt: GPT,
    tp_group: dist.ProcessGroup,
    tracker: RNGStatesTracker,
    *,
    regather: bool = True,
) -> list[nn.Parameter]:
    """Put this rank's layers in the place of a full model's.

    Returns the parameters that see this rank's tokens alone: norms, and the biases
    behind a reduce-scatter. Backward leaves only a part of the gradient in them.
    """
    check_sizes(gpt.config, tp_group.size())
    dropout = SequenceParallelDropout(gpt.config.hidden_dropout, tracker)
    entry = SequenceParallelEntry(dropout, tp_group)
    gpt.embedding.add_module("embedding_dropout", entry)
    partial = list(gpt.final_layernorm.parameters())
    for layer in gpt.layers:
        assert isinstance(layer, TransformerLayer)
        mlp = layer.mlp
        attention = SequenceParallelAttention(layer.self_attention, tp_group, regather)
        linear_fc1 = ColumnParallelLinear(mlp.linear_fc1, tp_group, regather)
        linear_fc2 = RowParallelLinear(mlp.linear_fc2, tp_group)
        layer.add_module("self_attention", attention)
        mlp.add_module("linear_fc1", linear_fc1)
        mlp.add_module("linear_fc2", linear_fc2)
        layer.add_module("hidden_dropout", dropout)
        for norm in (layer.input_layernorm, layer.pre_mlp_layernorm):
            partial += norm.parameters()
        partial += [attention.linear_proj.bias, linear_fc2.bias]
    gpt.add_module("output_layer", SequenceParallelOutput(gpt.output_layer, tp_group))
    return partial


# --- 4. training ---


def allreduce_non_tensor_model_parallel_grads(
    partial: list[nn.Parameter], tp_group: dist.ProcessGroup
) -> None:
    """Add up the gradients of what saw a shard of the tokens, in one call."""
    grads = [param.grad for param in partial if param.grad is not None]
    if tp_group.size() == 1 or not grads:
        return
    coalesced = torch.cat([grad.flatten() for grad in grads])  # (all of them)
    dist.all_reduce(coalesced, group=tp_group)  # (all of them)
    sizes = [grad.numel() for grad in grads]
    for grad, synced in zip(grads, coalesced.split(sizes), strict=True):  # (numel)
        grad.copy_(synced.view_as(grad))  # in its own shape


def train(
    gpt: GPT,
    optimizer: torch.optim.Optimizer,
    batches: Iterable[model.Batch],
    partial: list[nn.Parameter],
    tp_group: dist.ProcessGroup,
) -> list[float]:
    """Train in place, with the same batches on every rank; return the losses."""
    losses = []
    for tokens, labels in batches:
        optimizer.zero_grad()
        loss = model.compute_loss(gpt(tokens), labels)
        loss.backward()
        allreduce_non_tensor_model_parallel_grads(partial, tp_group)
        optimizer.step()
        losses.append(loss.item())
    return losses
