"""Sequence parallelism: tensor parallelism with norm and dropout cut by tokens too.

Between the sharded layers, plain tensor parallelism repeats norm, dropout and residual
on every rank. Here a rank does them for its own tokens: the all-reduce that closes a
row-parallel layer becomes a reduce-scatter over the sequence, and an all-gather opens
the next column-parallel one. Hidden states are (T, B, D), so that shards of the
sequence are contiguous.

    norm (T/W, B, D) | all-gather | column (T, B, O/W) .. row | reduce-scatter | dropout

Follows:
- NVIDIA/Megatron-LM: megatron/core/tensor_parallel/mappings.py
- NVIDIA/Megatron-LM: megatron/core/tensor_parallel/layers.py

Leaves out:
- a model of these layers, its random streams and its last all-reduce:
  `sequence_parallel_model.py`
- recomputation, uneven shards of the sequence, linear layers without a bias
"""

from typing import Any

import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional as F

# Dimension letters: T tokens, B sequences, D hidden, I and O inputs and outputs of a
# linear layer, W world_size, the size of the tensor group.

# --- 1. into and out of the sequence shards ---


def _split_along_first_dim(input_: Tensor, group: dist.ProcessGroup) -> Tensor:
    if input_.size(0) % group.size():
        raise ValueError(
            f"{input_.size(0)} tokens are not divisible by {group.size()} ranks"
        )
    return input_.chunk(group.size())[group.rank()].contiguous()  # (T/W, ..)


def _gather_along_first_dim(input_: Tensor, group: dist.ProcessGroup) -> Tensor:
    if group.size() == 1:
        return input_
    output = input_.new_empty(input_.size(0) * group.size(), *input_.shape[1:])
    dist.all_gather_single(output, input_.contiguous(), group=group)  # to (T, ..)
    return output


def _reduce_scatter_along_first_dim(input_: Tensor, group: dist.ProcessGroup) -> Tensor:
    if group.size() == 1:
        return input_
    output = input_.new_empty(input_.size(0) // group.size(), *input_.shape[1:])
    dist.reduce_scatter_single(output, input_.contiguous(), group=group)  # to (T/W, ..)
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
    mine = master.detach().chunk(group.size(), dim=partition_dim)[group.rank()]  # 1/W
    return nn.Parameter(mine.clone(), requires_grad=master.requires_grad)


class ColumnParallelLinear(nn.Module):
    """Rows of the weight divided; opened by an all-gather over the sequence."""

    def __init__(
        self, master: nn.Linear, tp_group: dist.ProcessGroup, regather: bool = True
    ) -> None:
        super().__init__()
        self.tp_group, self.regather = tp_group, regather
        self.weight = shard(master.weight, 0, tp_group)  # (O/W, I)
        self.bias = shard(master.bias, 0, tp_group)  # (O/W)

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
        self.weight = shard(master.weight, 1, tp_group)  # (O, I/W)
        self.bias = master.bias  # whole, but added to this rank's tokens only

    def forward(self, input_: Tensor) -> Tensor:
        """Map all tokens of a slice (T, B, I/W) to this rank's tokens (T/W, B, O)."""
        output = F.linear(input_, self.weight)  # (T, B, O), one part of W
        output = reduce_scatter_to_sequence_parallel_region(output, self.tp_group)
        return output + self.bias  # (T/W, B, O)


# --- 3. the column layer, its messages hidden behind products, its input a shard ---


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
        grad_input = grad_output.matmul(weight.to(grad_output.dtype))  # (T, B, I)
        assert handle is not None
        handle.wait()
        total_input = total_input.to(grad_output.dtype)  # (T, B, I)

        sub_grad_input = grad_input.new_empty(input_.shape)  # (T/W, B, I)
        handle = dist.reduce_scatter_single(
            sub_grad_input, grad_input, group=group, async_op=True
        )  # (T, B, I) to (T/W, B, I)
        grad_output = grad_output.flatten(0, -2)  # (TB, O/W)
        grad_weight = grad_output.t().matmul(total_input.flatten(0, -2))  # (O/W, I)
        grad_bias = grad_output.sum(dim=0) if ctx.use_bias else None
        assert handle is not None
        handle.wait()
        return sub_grad_input, grad_weight, grad_bias, None


if __name__ == "__main__":
    from mini_impls.demos.sequence_parallel import main

    raise SystemExit(main())
