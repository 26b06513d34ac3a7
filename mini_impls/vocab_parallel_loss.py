"""Cross entropy of logits that are cut along the vocabulary.

Each rank has V/W logits of every token. Plain, they are gathered, and every rank makes
the whole loss. The real one sends three numbers a token instead of V logits:

    all-reduce, maximum   the largest logit, so that no exponential overflows
    all-reduce, sum       the logit of the target: one rank has it
    all-reduce, sum       the exponentials
    loss                  log of the exponentials - the target's logit

and nothing in backward: what a rank's logits add to the loss it knows by itself.

Follows:
- NVIDIA/Megatron-LM: megatron/core/tensor_parallel/cross_entropy.py
- NVIDIA/Megatron-LM: megatron/core/tensor_parallel/mappings.py (the plain one's gather)

Leaves out:
- label smoothing, arithmetic in place, padding of a vocabulary that does not divide
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional as F

# Dimension letters: B sequences, T tokens, V vocabulary, W world_size.

# --- 1. plain: gather the logits ---


class _GatherFromModelParallelRegion(Function):
    @staticmethod
    def forward(ctx: Any, input_: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        input_ = input_.contiguous()  # (B, T, V/W)
        shards = input_.new_empty(group.size() * input_.size(0), *input_.shape[1:])
        dist.all_gather_single(shards, input_, group=group)  # (WB, T, V/W)
        return torch.cat(shards.chunk(group.size()), dim=-1)  # (B, T, V)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        # Every rank made the same loss and has the whole gradient: nothing is added.
        chunks = grad_output.chunk(ctx.group.size(), dim=-1)  # W of (B, T, V/W)
        return chunks[ctx.group.rank()], None  # (B, T, V/W)


def gathered_cross_entropy(
    vocab_parallel_logits: Tensor, target: Tensor, group: dist.ProcessGroup
) -> Tensor:
    """Return each token's loss (B, T), from logits (B, T, V/W): V numbers are sent."""
    gather = _GatherFromModelParallelRegion.apply
    logits = gather(vocab_parallel_logits, group)  # type: ignore[no-untyped-call]
    logits = logits.float().transpose(1, 2)  # (B, V, T)
    return F.cross_entropy(logits, target, reduction="none")  # (B, T)


# --- 2. three numbers a token ---


class _VocabParallelCrossEntropy(Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, group: Any) -> Tensor:
        logits = logits.float()  # (B, T, V/W)
        # Maximum of each token's logits, so that no exponential overflows.
        logits_max = logits.max(dim=-1).values  # (B, T)
        dist.all_reduce(logits_max, op=dist.ReduceOp.MAX, group=group)  # (B, T)
        logits = logits - logits_max.unsqueeze(-1)  # (B, T, V/W)

        # The target's logit: one rank has it, the others add zero.
        masked_target = target - group.rank() * logits.size(-1)  # (B, T)
        target_mask = (masked_target < 0) | (masked_target >= logits.size(-1))
        masked_target = masked_target.masked_fill(target_mask, 0).unsqueeze(-1)
        predicted_logits = logits.gather(-1, masked_target).squeeze(-1)  # (B, T)
        predicted_logits = predicted_logits.masked_fill(target_mask, 0.0)
        dist.all_reduce(predicted_logits, group=group)  # (B, T)

        # The normaliser.
        exp_logits = logits.exp()  # (B, T, V/W)
        sum_exp_logits = exp_logits.sum(dim=-1)  # (B, T)
        dist.all_reduce(sum_exp_logits, group=group)  # (B, T)

        softmax = exp_logits / sum_exp_logits.unsqueeze(-1)  # (B, T, V/W)
        ctx.save_for_backward(softmax, target_mask, masked_target)
        return sum_exp_logits.log() - predicted_logits

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None]:
        softmax, target_mask, masked_target = ctx.saved_tensors
        # softmax, less 1 at the target where it lies here: nothing has to be sent.
        softmax_update = (~target_mask).unsqueeze(-1).to(softmax.dtype)  # (B, T, 1)
        grad_input = softmax.scatter_add(-1, masked_target, -softmax_update)
        return grad_input * grad_output.unsqueeze(-1), None, None  # (B, T, V/W)


def vocab_parallel_cross_entropy(
    vocab_parallel_logits: Tensor, target: Tensor, group: dist.ProcessGroup
) -> Tensor:
    """Return each token's loss (B, T), from logits (B, T, V/W)."""
    function: Any = _VocabParallelCrossEntropy
    loss: Tensor = function.apply(vocab_parallel_logits, target, group)
    return loss
