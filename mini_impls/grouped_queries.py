"""Fewer query groups than ranks: several ranks share one group's key and value.

Where every rank has whole groups, its slice of the fused projection is a complete
smaller attention, and nothing is left to do. With four queries in one group and two
ranks a slice ends in the middle of the group:

    rows of the projection    q0 q1 q2 q3 k v
    made by rank 0 | rank 1   q0 q1 q2  |  q3 k v       column-parallel, equal slices
    gathered, on both         q0 q1 q2 q3 k v
    used by rank 0 | rank 1   q0 q1 k v |  q2 q3 k v

Backward the other way round: what the ranks used is added up, and each gets its slice.

Follows:
- NVIDIA/Megatron-LM: megatron/core/transformer/attention.py
- NVIDIA/Megatron-LM: megatron/core/tensor_parallel/mappings.py

Leaves out:
- sending each rank only what it will use: all rows go to all ranks, as upstream
- output gates, norms of query and key
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Function

from mini_impls.model import GPTConfig, SelfAttention

# Dimension letters: B sequences, T tokens, W world_size, N heads, G query groups, H
# width of a head, R = G(N/G+2)H rows of the fused projection.

# --- 1. all rows on every rank, and back ---


class _AllGatherFromTensorParallelRegion(Function):
    @staticmethod
    def forward(ctx: Any, input_: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        world_size = group.size()
        input_ = input_.contiguous()  # (B, T, R/W)
        shards = input_.new_empty(world_size * input_.size(0), *input_.shape[1:])
        dist.all_gather_single(shards, input_, group=group)  # (WB, T, R/W)
        return torch.cat(shards.chunk(world_size), dim=-1)  # (B, T, R)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        # Each rank used some of the whole: add up, and keep what came from here.
        chunks = grad_output.chunk(ctx.group.size(), dim=-1)  # W of (B, T, R/W)
        shards = torch.cat(chunks)  # (WB, T, R/W)
        grad_input = shards.new_empty(grad_output.size(0), *shards.shape[1:])
        dist.reduce_scatter_single(grad_input, shards, group=ctx.group)  # (B, T, R/W)
        return grad_input, None


# --- 2. this rank's part of its group ---


def share_query_groups(attention: SelfAttention, tp_group: dist.ProcessGroup) -> None:
    """Let an attention whose `linear_qkv` is cut by rows go on with whole heads.

    Behind the projection a rank takes its group's key and value and its share of the
    group's queries; `core_attention` sees one group of N/W heads.

    Shapes: what `linear_qkv` hands on, (B, T, R/W), becomes (B, T, (N/W+2)H).
    """
    num_query_groups = attention.num_query_groups
    ranks_per_group = tp_group.size() // num_query_groups
    heads = (attention.heads_per_group, 1, 1)  # of query, key, value in a group
    channels = [n * attention.kv_channels for n in heads]
    idx, part = divmod(tp_group.rank(), ranks_per_group)

    def take_part(module: nn.Module, args: Any, output: Tensor) -> Tensor:
        gather = _AllGatherFromTensorParallelRegion.apply
        mixed_qkv = gather(output, tp_group)  # type: ignore[no-untyped-call]
        mixed_qkv = mixed_qkv.chunk(num_query_groups, dim=-1)[idx]  # (B, T, R/G)
        query, key, value = mixed_qkv.split(channels, dim=-1)  # (B, T, NH/G), 2 (.., H)
        query = query.chunk(ranks_per_group, dim=-1)[part]  # (B, T, NH/W)
        return torch.cat([query, key, value], dim=-1)  # (B, T, (N/W+2)H)

    attention.linear_qkv.register_forward_hook(take_part)
    attention.heads_per_group //= ranks_per_group


def check_groups(config: GPTConfig, world_size: int) -> None:
    """Raise ValueError where the slices of the ranks are not alike.

    A slice need not end where a head does, but must be as large as the others, and a
    rank must not be between two groups.
    """
    groups = config.num_query_groups
    if groups % world_size and world_size % groups:
        raise ValueError(
            f"{groups} query groups are no multiple of {world_size} ranks, "
            f"and {world_size} ranks no multiple of {groups} query groups"
        )
    rows = (config.num_attention_heads + 2 * groups) * config.kv_channels
    if rows % world_size:
        raise ValueError(
            f"{rows} rows of query, key and value are not divisible by {world_size}"
        )
