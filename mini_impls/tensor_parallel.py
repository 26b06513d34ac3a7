"""Tensor parallelism: ranks hold slices of the layers' matrices and see all the data.

A column-parallel layer and the row-parallel one behind it need one all-reduce forward
and one backward. Attention is cut by heads, embedding and output layer by vocabulary.
Slices come from the full weights: any number of ranks trains alike, up to rounding.

    forward     x -> f -> column -> GELU -> row -> g -> y       g adds up parts of y
    backward    dx <- f <- column <- GELU <- row <- g <- dy     f adds up parts of dx

Follows:
- NVIDIA/Megatron-LM: megatron/core/tensor_parallel/mappings.py
- NVIDIA/Megatron-LM: megatron/core/tensor_parallel/layers.py

Leaves out:
- the loss of cut logits: `vocab_parallel_loss.py`; shared groups: `grouped_queries.py`
- sequence parallelism, and the random streams it needs: `sequence_parallel.py`
- weight gradients added into a buffer by the matrix product itself
- gathered outputs, unsplit inputs, padding of a vocabulary that does not divide
- data parallelism around it, sharded or not: a group of ranks here is all there is
"""

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional as F

from mini_impls.grouped_queries import check_groups, share_query_groups
from mini_impls.model import GPT, Batch, GPTConfig, TransformerLayer
from mini_impls.vocab_parallel_loss import vocab_parallel_cross_entropy

# Letters: B sequences, T tokens, D hidden, V vocabulary, I inputs, O outputs, W ranks.

# --- 1. f and g ---


def _reduce(input_: Tensor, group: dist.ProcessGroup) -> Tensor:
    if group.size() == 1:
        return input_
    # all_reduce works in place, and autograd may hand the same tensor to others.
    output = input_.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(output, group=group)  # (B, T, ..), whole
    return output


class _CopyToModelParallelRegion(Function):
    @staticmethod
    def forward(ctx: Any, input_: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        return input_

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return _reduce(grad_output, ctx.group), None


class _ReduceFromModelParallelRegion(Function):
    @staticmethod
    def forward(ctx: Any, input_: Tensor, group: dist.ProcessGroup) -> Tensor:
        return _reduce(input_, group)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return grad_output, None


def _apply(function: type[Function], *args: Any) -> Tensor:
    output: Tensor = function.apply(*args)
    return output


def copy_to_tensor_model_parallel_region(
    input_: Tensor, group: dist.ProcessGroup
) -> Tensor:
    """f: identity forward, all-reduce backward (each slice had its own use of it)."""
    return _apply(_CopyToModelParallelRegion, input_, group)


def reduce_from_tensor_model_parallel_region(
    input_: Tensor, group: dist.ProcessGroup
) -> Tensor:
    """g: all-reduce forward, identity backward (each part counts once in the sum)."""
    return _apply(_ReduceFromModelParallelRegion, input_, group)


# --- 2. column- and row-parallel linear ---


def divide(numerator: int, denominator: int, what: str = "rows or columns") -> int:
    """Return the quotient; ValueError where there is a remainder."""
    if numerator % denominator:
        raise ValueError(f"{numerator} {what} are not divisible by {denominator}")
    return numerator // denominator


def shard(master: Tensor, partition_dim: int, group: dist.ProcessGroup) -> nn.Parameter:
    """Return this rank's slice of a full weight, as a parameter of its own."""
    size = divide(master.size(partition_dim), group.size())
    mine = master.detach().narrow(partition_dim, group.rank() * size, size)  # 1/W
    return nn.Parameter(mine.clone(), requires_grad=master.requires_grad)


class ColumnParallelLinear(nn.Module):
    """Rows of the weight divided, which are columns of its transpose."""

    def __init__(
        self, master: nn.Linear, *, tp_group: dist.ProcessGroup, overlap: bool = True
    ) -> None:
        super().__init__()
        self.tp_group, self.overlap = tp_group, overlap
        self.weight = shard(master.weight, 0, tp_group)  # (O/W, I)
        self.bias = None if master.bias is None else shard(master.bias, 0, tp_group)

    def forward(self, input_: Tensor) -> Tensor:
        """Map (.., I), the same on every rank, to this rank's (.., O/W)."""
        if self.overlap and self.tp_group.size() > 1:
            args = (input_, self.weight, self.bias, self.tp_group)
            return _apply(LinearWithGradAccumulationAndAsyncCommunication, *args)
        input_parallel = copy_to_tensor_model_parallel_region(input_, self.tp_group)
        return F.linear(input_parallel, self.weight, self.bias)


class RowParallelLinear(nn.Module):
    """Columns of the weight divided: every rank makes a part of the sum."""

    def __init__(self, master: nn.Linear, *, tp_group: dist.ProcessGroup) -> None:
        super().__init__()
        self.tp_group = tp_group
        self.weight = shard(master.weight, 1, tp_group)  # (O, I/W)
        self.bias = master.bias  # whole, on every rank

    def forward(self, input_: Tensor) -> Tensor:
        """Map this rank's (.., I/W) to (.., O), the same on every rank."""
        output = F.linear(input_, self.weight)  # (.., O), one part of W
        output = reduce_from_tensor_model_parallel_region(output, self.tp_group)
        # After the sum: before it, the bias would count world_size times.
        return output if self.bias is None else output + self.bias


# --- 3. the column layer, its sum hidden behind the weight's gradient ---


class LinearWithGradAccumulationAndAsyncCommunication(Function):
    """A linear layer with f inside (its gradient accumulation is autograd's here)."""

    @staticmethod
    def forward(
        ctx: Any, input_: Tensor, weight: Tensor, bias: Tensor | None, tp_group: Any
    ) -> Tensor:
        """Multiply; the input is the same on every rank, so nothing is sent."""
        ctx.save_for_backward(input_, weight)
        ctx.use_bias, ctx.tp_group = bias is not None, tp_group
        return F.linear(input_, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        """Add up the input's gradient behind the weight's."""
        # Autocast multiplies in another dtype than it was given; so must backward.
        input_, weight = (saved.to(grad_output.dtype) for saved in ctx.saved_tensors)
        grad_input = grad_output.matmul(weight)  # (B, T, I), one part of W
        handle = dist.all_reduce(grad_input, group=ctx.tp_group, async_op=True)
        # The sum is on its way; the weight gradient does not need it and hides it.
        grad_output = grad_output.flatten(0, -2)  # (BT, O/W)
        grad_weight = grad_output.t().matmul(input_.flatten(0, -2))  # (O/W, I)
        grad_bias = grad_output.sum(dim=0) if ctx.use_bias else None
        assert handle is not None
        handle.wait()
        return grad_input, grad_weight, grad_bias, None


# --- 4. the embedding, cut along the vocabulary ---


class VocabParallelEmbedding(nn.Module):
    """Rows of the table divided: a rank answers for its ids, with zeros for others."""

    def __init__(self, master: nn.Embedding, *, tp_group: dist.ProcessGroup) -> None:
        super().__init__()
        self.tp_group = tp_group
        self.weight = shard(master.weight, 0, tp_group)  # (V/W, D)
        self.vocab_start_index = tp_group.rank() * self.weight.size(0)
        self.vocab_end_index = self.vocab_start_index + self.weight.size(0)

    def forward(self, input_: Tensor) -> Tensor:
        """Map ids (B, T) to (B, T, D), the same on every rank."""
        start, end = self.vocab_start_index, self.vocab_end_index
        input_mask = (input_ < start) | (input_ >= end)  # (B, T)
        masked_input = (input_ - start).masked_fill(input_mask, 0)
        output_parallel = F.embedding(masked_input, self.weight)  # (B, T, D)
        output_parallel = output_parallel.masked_fill(input_mask.unsqueeze(-1), 0.0)
        return reduce_from_tensor_model_parallel_region(output_parallel, self.tp_group)


# --- 5. a whole model ---


def check_sizes(config: GPTConfig, world_size: int) -> None:
    """Raise ValueError where the model cannot be cut into that many slices."""
    divide(config.num_attention_heads, world_size, "attention heads")
    divide(config.ffn_hidden_size, world_size, "MLP channels")
    divide(config.vocab_size, world_size, "vocabulary entries")
    check_groups(config, world_size)


def tensor_parallel(
    gpt: GPT, tp_group: dist.ProcessGroup, *, overlap: bool = True
) -> None:
    """Put this rank's slices in the place of a full model's layers."""
    check_sizes(gpt.config, tp_group.size())

    def column(module: nn.Module, name: str) -> None:
        master = getattr(module, name)
        layer = ColumnParallelLinear(master, tp_group=tp_group, overlap=overlap)
        module.add_module(name, layer)

    def row(module: nn.Module, name: str) -> None:
        layer = RowParallelLinear(getattr(module, name), tp_group=tp_group)
        module.add_module(name, layer)

    for layer in gpt.layers:
        assert isinstance(layer, TransformerLayer)
        attention = layer.self_attention
        column(attention, "linear_qkv")
        if gpt.config.num_query_groups % tp_group.size():
            share_query_groups(attention, tp_group)
        row(attention, "linear_proj")
        column(layer.mlp, "linear_fc1")
        row(layer.mlp, "linear_fc2")

    embedding = VocabParallelEmbedding(gpt.embedding.word_embeddings, tp_group=tp_group)
    gpt.embedding.add_module("word_embeddings", embedding)
    column(gpt, "output_layer")
    if gpt.config.share_embeddings_and_output_weights:
        gpt.output_layer.weight = embedding.weight  # the same rows in both places


def train(
    gpt: GPT,
    optimizer: torch.optim.Optimizer,
    batches: Iterable[Batch],
    tp_group: dist.ProcessGroup,
) -> list[float]:
    """Train in place, with the same batches on every rank; return the losses."""
    losses = []
    for tokens, labels in batches:
        optimizer.zero_grad()
        loss = vocab_parallel_cross_entropy(gpt(tokens), labels, tp_group).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    from mini_impls.demos.tensor_parallel import main

    raise SystemExit(main())
