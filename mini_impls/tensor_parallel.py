"""Tensor parallelism: every rank holds a slice of each weight and sees all the data.

A column-parallel layer and the row-parallel one behind it need one all-reduce forward
and one backward. Attention is cut by heads and query groups; embedding, output layer
and loss are cut along the vocabulary. Slices come from the full weights, so a run does
not depend on the number of ranks (but for the order of sums).

Follows:
- NVIDIA/Megatron-LM: megatron/core/tensor_parallel/mappings.py
- NVIDIA/Megatron-LM: megatron/core/tensor_parallel/layers.py
- NVIDIA/Megatron-LM: megatron/core/transformer/attention.py
- NVIDIA/Megatron-LM: megatron/core/tensor_parallel/cross_entropy.py

Leaves out:
- sequence parallelism, and the random streams it needs: `sequence_parallel.py`
- weight gradients added into a buffer by the matrix product itself, label smoothing
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

from mini_impls import model
from mini_impls.model import GPT, GPTConfig, SelfAttention, TransformerLayer

# Dimension letters: B sequences, T tokens, D hidden, V vocabulary, N heads, G query
# groups, H width of a head, I and O inputs and outputs of a layer, W world_size.

# --- 1. f and g ---


def _reduce(input_: Tensor, group: dist.ProcessGroup) -> Tensor:
    if group.size() == 1:
        return input_
    # all_reduce works in place, and autograd may hand the same tensor to others.
    output = input_.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(output, group=group)
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
    divide(master.size(partition_dim), group.size())
    mine = master.detach().chunk(group.size(), dim=partition_dim)[group.rank()]
    return nn.Parameter(mine.clone(), requires_grad=master.requires_grad)


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


class ColumnParallelLinear(nn.Module):
    """Rows of the weight divided, which are columns of its transpose."""

    def __init__(
        self, master: nn.Linear, *, tp_group: dist.ProcessGroup, overlap: bool = True
    ) -> None:
        super().__init__()
        self.tp_group, self.overlap = tp_group, overlap
        self.weight = shard(master.weight, 0, tp_group)
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
        self.weight = shard(master.weight, 1, tp_group)
        self.bias = master.bias  # whole, on every rank

    def forward(self, input_: Tensor) -> Tensor:
        """Map this rank's (.., I/W) to (.., O), the same on every rank."""
        output = F.linear(input_, self.weight)
        output = reduce_from_tensor_model_parallel_region(output, self.tp_group)
        # After the sum: before it, the bias would count world_size times.
        return output if self.bias is None else output + self.bias


# --- 3. attention by heads and query groups ---


class _AllGatherFromTensorParallelRegion(Function):
    @staticmethod
    def forward(ctx: Any, input_: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        shards = input_.new_empty(group.size() * input_.size(0), *input_.shape[1:])
        dist.all_gather_single(shards, input_.contiguous(), group=group)
        return torch.cat(shards.chunk(group.size()), dim=-1)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        # Each rank used some of the whole: add up, and keep what came from here.
        shards = torch.cat(grad_output.chunk(ctx.group.size(), dim=-1))
        grad_input = shards.new_empty(grad_output.size(0), *shards.shape[1:])
        dist.reduce_scatter_single(grad_input, shards, group=ctx.group)
        return grad_input, None


class SharedGroupQKVLinear(ColumnParallelLinear):
    """Fused QKV with fewer query groups than ranks: several ranks share a group.

    A rank's rows are then `q1 q2` or `k1 v1`, no whole attention. The projections are
    gathered, and a rank takes its group's key and value and its part of the queries.
    """

    def __init__(
        self,
        master: nn.Linear,
        attention: SelfAttention,
        *,
        tp_group: dist.ProcessGroup,
        overlap: bool = True,
    ) -> None:
        super().__init__(master, tp_group=tp_group, overlap=overlap)
        self.num_query_groups = attention.num_query_groups
        self.ranks_per_group = divide(tp_group.size(), self.num_query_groups)
        heads = (attention.heads_per_group, 1, 1)  # of query, key, value in a group
        self.channels = [n * attention.kv_channels for n in heads]

    def forward(self, input_: Tensor) -> Tensor:
        """Map (B, T, D) to [this rank's queries | key | value], (B, T, (N/W+2)H)."""
        output = super().forward(input_)  # (B, T, G(N/G+2)H/W)
        mixed_qkv = _apply(_AllGatherFromTensorParallelRegion, output, self.tp_group)
        idx, part = divmod(self.tp_group.rank(), self.ranks_per_group)
        mixed_qkv = mixed_qkv.chunk(self.num_query_groups, dim=-1)[idx]
        query, key, value = mixed_qkv.split(self.channels, dim=-1)
        query = query.chunk(self.ranks_per_group, dim=-1)[part]
        return torch.cat([query, key, value], dim=-1)


# --- 4. the vocabulary: embedding and loss ---


class VocabParallelEmbedding(nn.Module):
    """Rows of the table divided: a rank answers for its ids, with zeros for others."""

    def __init__(self, master: nn.Embedding, *, tp_group: dist.ProcessGroup) -> None:
        super().__init__()
        self.tp_group = tp_group
        self.weight = shard(master.weight, 0, tp_group)
        self.vocab_start_index = tp_group.rank() * self.weight.size(0)
        self.vocab_end_index = self.vocab_start_index + self.weight.size(0)

    def forward(self, input_: Tensor) -> Tensor:
        """Map ids (B, T) to (B, T, D), the same on every rank."""
        input_mask = (input_ < self.vocab_start_index) | (
            input_ >= self.vocab_end_index
        )
        masked_input = (input_ - self.vocab_start_index).masked_fill(input_mask, 0)
        output_parallel = F.embedding(masked_input, self.weight)
        output_parallel = output_parallel.masked_fill(input_mask.unsqueeze(-1), 0.0)
        return reduce_from_tensor_model_parallel_region(output_parallel, self.tp_group)


class _VocabParallelCrossEntropy(Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, group: Any) -> Tensor:
        logits = logits.float()  # (B, T, V/W)
        # Maximum of each token's logits, so that no exponential overflows.
        logits_max = logits.max(dim=-1).values  # (B, T)
        dist.all_reduce(logits_max, op=dist.ReduceOp.MAX, group=group)
        logits = logits - logits_max.unsqueeze(-1)

        # The target's logit: one rank has it, the others add zero.
        masked_target = target - group.rank() * logits.size(-1)
        target_mask = (masked_target < 0) | (masked_target >= logits.size(-1))
        masked_target = masked_target.masked_fill(target_mask, 0).unsqueeze(-1)
        predicted_logits = logits.gather(-1, masked_target).squeeze(-1)  # (B, T)
        predicted_logits = predicted_logits.masked_fill(target_mask, 0.0)
        dist.all_reduce(predicted_logits, group=group)

        # The normaliser.
        exp_logits = logits.exp()
        sum_exp_logits = exp_logits.sum(dim=-1)  # (B, T)
        dist.all_reduce(sum_exp_logits, group=group)

        softmax = exp_logits / sum_exp_logits.unsqueeze(-1)
        ctx.save_for_backward(softmax, target_mask, masked_target)
        return sum_exp_logits.log() - predicted_logits

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None]:
        softmax, target_mask, masked_target = ctx.saved_tensors
        # softmax, less 1 at the target where it lies here: nothing has to be sent.
        softmax_update = (~target_mask).unsqueeze(-1).to(softmax.dtype)
        grad_input = softmax.scatter_add(-1, masked_target, -softmax_update)
        return grad_input * grad_output.unsqueeze(-1), None, None


def vocab_parallel_cross_entropy(
    vocab_parallel_logits: Tensor, target: Tensor, group: dist.ProcessGroup
) -> Tensor:
    """Return each token's loss (B, T): three numbers a token are sent, not V logits."""
    return _apply(_VocabParallelCrossEntropy, vocab_parallel_logits, target, group)


# --- 5. a whole model ---


def check_sizes(config: GPTConfig, world_size: int) -> None:
    """Raise ValueError where the model cannot be cut into that many slices."""
    divide(config.num_attention_heads, world_size, "attention heads")
    divide(config.ffn_hidden_size, world_size, "MLP channels")
    divide(config.vocab_size, world_size, "vocabulary entries")
    groups = config.num_query_groups
    if groups % world_size and world_size % groups:
        raise ValueError(
            f"{groups} query groups are no multiple of {world_size} ranks, "
            f"and {world_size} ranks no multiple of {groups} query groups"
        )
    # With fewer groups than ranks a slice need not end where a head does, but must be
    # as large as the others.
    heads = config.num_attention_heads + 2 * groups
    divide(heads * config.kv_channels, world_size, "rows of query, key and value")


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
        if gpt.config.num_query_groups % tp_group.size() == 0:
            column(attention, "linear_qkv")
        else:
            linear_qkv = SharedGroupQKVLinear(
                attention.linear_qkv, attention, tp_group=tp_group, overlap=overlap
            )
            attention.add_module("linear_qkv", linear_qkv)
            attention.heads_per_group //= linear_qkv.ranks_per_group
        row(attention, "linear_proj")
        column(layer.mlp, "linear_fc1")
        row(layer.mlp, "linear_fc2")

    word_embeddings = gpt.embedding.word_embeddings
    embedding = VocabParallelEmbedding(word_embeddings, tp_group=tp_group)
    gpt.embedding.add_module("word_embeddings", embedding)
    column(gpt, "output_layer")
    if gpt.config.share_embeddings_and_output_weights:
        gpt.output_layer.weight = embedding.weight  # the same rows in both places


def train(
    gpt: GPT,
    optimizer: torch.optim.Optimizer,
    batches: Iterable[model.Batch],
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


def get_traffic(config: GPTConfig, num_tokens: int, world_size: int) -> dict[str, int]:
    """Payload bytes of each operation in one step of one rank, in fp32."""
    hidden, layers = 4 * num_tokens * config.hidden_size, config.num_layers
    # Forward: g after embedding, attention, MLP. Backward: f before attention, MLP and
    # output layer. The loss: three numbers a token.
    all_reduces = 4 * layers + 2 if world_size > 1 else 0
    traffic = {"all_reduce": all_reduces * hidden + 3 * 4 * num_tokens}
    if config.num_query_groups % world_size:
        heads = config.num_attention_heads + 2 * config.num_query_groups
        mixed_qkv = 4 * num_tokens * heads * config.kv_channels
        traffic["all_gather"] = traffic["reduce_scatter"] = layers * mixed_qkv
    return traffic


if __name__ == "__main__":
    from mini_impls.demos.tensor_parallel import main

    raise SystemExit(main())
