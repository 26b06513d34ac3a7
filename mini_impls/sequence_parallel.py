"""Sequence parallelism: tensor parallelism with norm and dropout cut by tokens too.

Between the sharded layers, plain tensor parallelism repeats norm, dropout and residual
on every rank. Here a rank does them for its own tokens: the all-reduce that closes a
row-parallel layer becomes a reduce-scatter over the sequence, and an all-gather opens
the next column-parallel one. Hidden states are (T, B, D), so that shards of the
sequence are contiguous.

Follows:
- NVIDIA/Megatron-LM: megatron/core/tensor_parallel/mappings.py
- NVIDIA/Megatron-LM: megatron/core/tensor_parallel/layers.py
- NVIDIA/Megatron-LM: megatron/core/tensor_parallel/random.py
- NVIDIA/Megatron-LM: megatron/core/distributed/finalize_model_grads.py

Leaves out:
- vocabulary-parallel embedding and loss (`tensor_parallel.py`): whole on every rank
- fewer query groups than ranks, recomputation, uneven shards of the sequence
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional as F

from mini_impls import model
from mini_impls.model import GPT, GPTConfig, SelfAttention, TransformerLayer

# Dimension letters: T tokens, B sequences, D hidden, I and O inputs and outputs of a
# linear layer, V vocabulary, W world_size. W is also the size of the tensor group.

# --- 1. into and out of the sequence shards ---


def _split_along_first_dim(input_: Tensor, group: dist.ProcessGroup) -> Tensor:
    if input_.size(0) % group.size():
        raise ValueError(
            f"{input_.size(0)} tokens are not divisible by {group.size()} ranks"
        )
    return input_.chunk(group.size())[group.rank()].contiguous()


def _gather_along_first_dim(input_: Tensor, group: dist.ProcessGroup) -> Tensor:
    if group.size() == 1:
        return input_
    output = input_.new_empty(input_.size(0) * group.size(), *input_.shape[1:])
    dist.all_gather_single(output, input_.contiguous(), group=group)
    return output


def _reduce_scatter_along_first_dim(input_: Tensor, group: dist.ProcessGroup) -> Tensor:
    if group.size() == 1:
        return input_
    output = input_.new_empty(input_.size(0) // group.size(), *input_.shape[1:])
    dist.reduce_scatter_single(output, input_.contiguous(), group=group)
    return output


class _ScatterToSequenceParallelRegion(Function):
    @staticmethod
    def forward(ctx: Any, input_: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        return _split_along_first_dim(input_, group)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return _gather_along_first_dim(grad_output, ctx.group), None


class _GatherFromSequenceParallelRegion(Function):
    @staticmethod
    def forward(
        ctx: Any, input_: Tensor, group: Any, tensor_parallel_output_grad: bool
    ) -> Tensor:
        ctx.group, ctx.partial = group, tensor_parallel_output_grad
        return _gather_along_first_dim(input_, group)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None]:
        back = (
            _reduce_scatter_along_first_dim if ctx.partial else _split_along_first_dim
        )
        return back(grad_output, ctx.group), None, None


class _ReduceScatterToSequenceParallelRegion(Function):
    @staticmethod
    def forward(ctx: Any, input_: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        return _reduce_scatter_along_first_dim(input_, group)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        return _gather_along_first_dim(grad_output, ctx.group), None


def _apply(function: type[Function], *args: Any) -> Tensor:
    output: Tensor = function.apply(*args)
    return output


def scatter_to_sequence_parallel_region(
    input_: Tensor, group: dist.ProcessGroup
) -> Tensor:
    """Split forward, all-gather backward: (T, ..), equal on all ranks, to (T/W, ..)."""
    return _apply(_ScatterToSequenceParallelRegion, input_, group)


def gather_from_sequence_parallel_region(
    input_: Tensor, group: dist.ProcessGroup, tensor_parallel_output_grad: bool = True
) -> Tensor:
    """All-gather forward: (T/W, ..) to (T, ..).

    Backward depends on what uses the result: sharded work leaves each rank a part of
    the gradient (reduce-scatter), repeated work the whole of it (split, nothing sent).
    """
    function = _GatherFromSequenceParallelRegion
    return _apply(function, input_, group, tensor_parallel_output_grad)


def reduce_scatter_to_sequence_parallel_region(
    input_: Tensor, group: dist.ProcessGroup
) -> Tensor:
    """Reduce-scatter forward, all-gather backward: partial (T, ..) to (T/W, ..)."""
    return _apply(_ReduceScatterToSequenceParallelRegion, input_, group)


# --- 2. linear layers ---


def shard(master: Tensor, partition_dim: int, group: dist.ProcessGroup) -> nn.Parameter:
    """Return this rank's slice of a full weight, as a parameter of its own."""
    mine = master.detach().chunk(group.size(), dim=partition_dim)[group.rank()]
    return nn.Parameter(mine.clone(), requires_grad=master.requires_grad)


class LinearWithGradAccumulationAndAsyncCommunication(Function):
    """All-gather and linear layer; saves the shard, and gathers it again backward."""

    @staticmethod
    def forward(
        ctx: Any, input_: Tensor, weight: Tensor, bias: Tensor | None, tp_group: Any
    ) -> Tensor:
        """Map (T/W, B, I) to (T, B, O/W)."""
        input_ = input_.contiguous()
        ctx.save_for_backward(input_, weight)  # T/W tokens, not T
        ctx.use_bias, ctx.tp_group = bias is not None, tp_group
        return F.linear(_gather_along_first_dim(input_, tp_group), weight, bias)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        """Gather behind the input's gradient, reduce-scatter behind the weight's."""
        input_, weight = ctx.saved_tensors
        group = ctx.tp_group
        total_input = input_.new_empty(grad_output.size(0), *input_.shape[1:])
        handle = dist.all_gather_single(total_input, input_, group=group, async_op=True)
        # Autocast multiplies in another dtype than it was given; so must backward.
        grad_input = grad_output.matmul(weight.to(grad_output.dtype))
        assert handle is not None
        handle.wait()
        total_input = total_input.to(grad_output.dtype)  # (T, B, I), as grad_input

        sub_grad_input = grad_input.new_empty(input_.shape)  # (T/W, B, I)
        handle = dist.reduce_scatter_single(
            sub_grad_input, grad_input, group=group, async_op=True
        )
        grad_output = grad_output.flatten(0, -2)  # (TB, O/W)
        grad_weight = grad_output.t().matmul(total_input.flatten(0, -2))  # (O/W, I)
        grad_bias = grad_output.sum(dim=0) if ctx.use_bias else None
        assert handle is not None
        handle.wait()
        return sub_grad_input, grad_weight, grad_bias, None


class ColumnParallelLinear(nn.Module):
    """Rows of the weight divided; opened by an all-gather over the sequence."""

    def __init__(
        self, master: nn.Linear, tp_group: dist.ProcessGroup, regather: bool = True
    ) -> None:
        super().__init__()
        self.tp_group, self.regather = tp_group, regather
        self.weight = shard(master.weight, 0, tp_group)
        self.bias = shard(master.bias, 0, tp_group)

    def forward(self, input_: Tensor) -> Tensor:
        """Map this rank's tokens (T/W, B, I) to all tokens of its slice (T, B, O/W)."""
        if self.regather and self.tp_group.size() > 1:
            args = (input_, self.weight, self.bias, self.tp_group)
            return _apply(LinearWithGradAccumulationAndAsyncCommunication, *args)
        # Plain: one gather less, but autograd keeps all T tokens until backward.
        total_input = gather_from_sequence_parallel_region(input_, self.tp_group)
        return F.linear(total_input, self.weight, self.bias)


class RowParallelLinear(nn.Module):
    """Columns of the weight divided; closed by a reduce-scatter over the sequence."""

    def __init__(self, master: nn.Linear, tp_group: dist.ProcessGroup) -> None:
        super().__init__()
        self.tp_group = tp_group
        self.weight = shard(master.weight, 1, tp_group)
        self.bias = master.bias  # whole, but added to this rank's tokens only

    def forward(self, input_: Tensor) -> Tensor:
        """Map all tokens of a slice (T, B, I/W) to this rank's tokens (T/W, B, O)."""
        output = F.linear(input_, self.weight)
        output = reduce_scatter_to_sequence_parallel_region(output, self.tp_group)
        return output + self.bias


# --- 3. random streams ---


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


# --- 4. a whole model ---


class SequenceParallelEntry(nn.Module):
    """Stands where the embedding's dropout does: split the sequence, then drop."""

    def __init__(
        self, dropout: SequenceParallelDropout, tp_group: dist.ProcessGroup
    ) -> None:
        super().__init__()
        self.dropout, self.tp_group = dropout, tp_group

    def forward(self, embeddings: Tensor) -> Tensor:
        """Map (B, T, D), the same on every rank, to this rank's tokens (T/W, B, D)."""
        hidden = embeddings.transpose(0, 1)
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
        )
        return F.linear(hidden.transpose(0, 1), self.weight)


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


def allreduce_non_tensor_model_parallel_grads(
    partial: list[nn.Parameter], tp_group: dist.ProcessGroup
) -> None:
    """Add up the gradients of what saw a shard of the tokens, in one call."""
    grads = [param.grad for param in partial if param.grad is not None]
    if tp_group.size() == 1 or not grads:
        return
    coalesced = torch.cat([grad.flatten() for grad in grads])
    dist.all_reduce(coalesced, group=tp_group)
    sizes = [grad.numel() for grad in grads]
    for grad, synced in zip(grads, coalesced.split(sizes), strict=True):
        grad.copy_(synced.view_as(grad))


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


def get_traffic(
    config: GPTConfig, num_tokens: int, world_size: int, *, regather: bool = True
) -> dict[str, int]:
    """Payload bytes of each operation in one step of one rank, in fp32."""
    if world_size == 1:
        return {}
    hidden, layers = 4 * num_tokens * config.hidden_size, config.num_layers
    # Gathers of a layer: two forward, two backward, two for the inputs not kept. And
    # one before the output layer, one behind the embedding in backward.
    gathers = (6 if regather else 4) * layers + 2
    partial = 6 * layers + 2  # vectors: two norms and two biases a layer, a last norm
    return {
        "all_gather": gathers * hidden,
        "reduce_scatter": 4 * layers * hidden,
        "all_reduce": 4 * partial * config.hidden_size,
    }


if __name__ == "__main__":
    from mini_impls.demos.sequence_parallel import main

    raise SystemExit(main())
