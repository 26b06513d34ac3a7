"""Layers of a GPT on five dimensions at once, each cut along the groups it needs.

A layer's weights are cut along tp, its sequences along cp, its experts along ep, which
is another cut of the same ranks; layers are dealt out along pp. What crosses ranks is a
move of a tensor one way and of its gradient the other way, always one of these pairs:

    forward          backward         where
    -                all-reduce       into a column of weights (f); a shared router
    all-reduce       -                out of a row of weights (g)
    all-gather       reduce-scatter   keys of a whole sequence; tokens to experts
    reduce-scatter   all-gather       out of experts
    own part         all-gather       tokens that tp ranks have twice, before experts
    all-gather       own part         and behind them

Follows:
- NVIDIA/Megatron-LM: megatron/core/tensor_parallel/mappings.py
- NVIDIA/Megatron-LM: megatron/core/transformer/moe/token_dispatcher.py (all-gather)
- NVIDIA/Megatron-LM: megatron/core/utils.py (`get_batch_on_this_cp_rank`)

Leaves out:
- each dimension's better ways: `tensor_parallel.py`, `context_parallel.py`,
  `ring_attention.py`, `experts.py` and their neighbours have them
- sequence parallelism, cut vocabularies, tied weights, slices of experts (etp)
- what a step does with it: `layout_train.py`
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional as F

from mini_impls.model import MLP, Embedding, GPTConfig, SelfAttention
from mini_impls.tensor_parallel import shard

# Dimension letters: B sequences, T tokens, D hidden, N = B T/cp tokens, V vocabulary,
# G query groups, R query heads of a group, H width of a head, E experts, F MLP width;
# tp, cp, ep ranks of a group.


@dataclass(frozen=True, slots=True)
class LayerGroups:
    """The groups that a layer of one rank meets."""

    tp: dist.ProcessGroup
    cp: dist.ProcessGroup
    ep: dist.ProcessGroup


# --- 1. moves: one way forward, the other way back ---

Move = Callable[[Tensor, dist.ProcessGroup], Tensor]


def stay(tensor: Tensor, group: dist.ProcessGroup) -> Tensor:
    """Return what there is."""
    return tensor


def all_reduce(tensor: Tensor, group: dist.ProcessGroup) -> Tensor:
    """Return the sum over ranks."""
    total = tensor.clone(memory_format=torch.contiguous_format)  # others may read it
    dist.all_reduce(total, group=group)  # in its own shape
    return total


def all_gather(tensor: Tensor, group: dist.ProcessGroup) -> Tensor:
    """Return (X, ..) of every rank below each other, (WX, ..)."""
    whole = tensor.new_empty(group.size() * tensor.size(0), *tensor.shape[1:])
    dist.all_gather_single(whole, tensor.contiguous(), group=group)  # to (WX, ..)
    return whole


def reduce_scatter(tensor: Tensor, group: dist.ProcessGroup) -> Tensor:
    """Return this rank's (X, ..) of the sum of (WX, ..) over ranks."""
    mine = tensor.new_empty(tensor.size(0) // group.size(), *tensor.shape[1:])
    dist.reduce_scatter_single(mine, tensor.contiguous(), group=group)  # to (X, ..)
    return mine


def own_part(tensor: Tensor, group: dist.ProcessGroup) -> Tensor:
    """Return this rank's (X, ..) of (WX, ..)."""
    return tensor.chunk(group.size())[group.rank()]


class _Conjugate(Function):
    @staticmethod
    def forward(
        ctx: Any, input_: Tensor, there: Move, back: Move, group: dist.ProcessGroup
    ) -> Tensor:
        ctx.back, ctx.group = back, group
        return there(input_, group)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        return ctx.back(grad, ctx.group), None, None, None


def move(tensor: Tensor, there: Move, back: Move, group: dist.ProcessGroup) -> Tensor:
    """Move a tensor one way, and its gradient the other way."""
    if group.size() == 1:
        return tensor
    moved: Tensor = _Conjugate.apply(tensor, there, back, group)  # type: ignore[no-untyped-call]
    return moved


# --- 2. tp: columns of weights, then rows ---


class ColumnParallelLinear(nn.Module):
    """Maps (.., I), the same on every rank, to this rank's (.., O/tp)."""

    def __init__(self, master: nn.Linear, tp: dist.ProcessGroup) -> None:
        super().__init__()
        self.tp = tp
        self.weight = shard(master.weight, 0, tp)  # (O/tp, I)
        self.bias = shard(master.bias, 0, tp)  # (O/tp)

    def forward(self, input_: Tensor) -> Tensor:
        """Each slice had a use of its own of the input: their gradients add up."""
        return F.linear(move(input_, stay, all_reduce, self.tp), self.weight, self.bias)


class RowParallelLinear(nn.Module):
    """Maps this rank's (.., I/tp) to (.., O), the same on every rank."""

    def __init__(self, master: nn.Linear, tp: dist.ProcessGroup) -> None:
        super().__init__()
        self.tp, self.bias = tp, master.bias
        self.weight = shard(master.weight, 1, tp)  # (O, I/tp)

    def forward(self, input_: Tensor) -> Tensor:
        """Add up what the slices made, then the bias, once."""
        output = F.linear(input_, self.weight)  # (.., O), one part of tp
        return move(output, all_reduce, stay, self.tp) + self.bias


# --- 3. cp: a part of each sequence ---


def positions_of(rank: int, world_size: int, tokens: int) -> Tensor:
    """Return where this rank's T/cp of T tokens are: an early chunk and a late one.

    Chunk c of 2 cp meets c + 1 chunks of keys: with these two all ranks meet as many.
    """
    if tokens % (2 * world_size):
        raise ValueError(f"{tokens} tokens are not divisible by {2 * world_size}")
    chunks = torch.arange(tokens).chunk(2 * world_size)  # 2 cp times (T / 2 cp)
    return torch.cat([chunks[rank], chunks[2 * world_size - 1 - rank]])  # (T/cp)


class LayoutEmbedding(nn.Module):
    """Words, and positions as they are in the whole sequence."""

    def __init__(self, master: Embedding, cp: dist.ProcessGroup) -> None:
        super().__init__()
        self.word_embeddings = master.word_embeddings
        self.position_embeddings = master.position_embeddings
        self.embedding_dropout, self.cp = master.embedding_dropout, cp

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T/cp) -> (B, T/cp, D)."""
        size = self.cp.size()
        at = positions_of(self.cp.rank(), size, size * tokens.size(1)).to(tokens.device)
        hidden = self.word_embeddings(tokens) + self.position_embeddings(at)
        dropped: Tensor = self.embedding_dropout(hidden)
        return dropped


class LayoutAttention(nn.Module):
    """Some query groups (tp), queries of some tokens and keys of all (cp)."""

    def __init__(self, master: SelfAttention, groups: LayerGroups) -> None:
        super().__init__()
        self.linear_qkv = ColumnParallelLinear(master.linear_qkv, groups.tp)
        self.linear_proj = RowParallelLinear(master.linear_proj, groups.tp)
        self.heads = (master.heads_per_group + 2, master.kv_channels)
        self.cp = groups.cp

    def forward(self, hidden: Tensor) -> Tensor:
        """(B, T/cp, D) -> (B, T/cp, D)."""
        size, tokens = self.cp.size(), self.cp.size() * hidden.size(1)
        each = [positions_of(rank, size, tokens) for rank in range(size)]  # (T/cp)
        qkv = self.linear_qkv(hidden).unflatten(-1, (-1, *self.heads))
        query, key_value = qkv.transpose(0, 1).split([self.heads[0] - 2, 2], dim=3)
        # All keys, in the order of the ranks: (T, B, G/tp, 2, H) of (T/cp, ..).
        key_value = move(key_value, all_gather, reduce_scatter, self.cp)
        query = query.flatten(2, 3).permute(1, 2, 0, 3)  # (B, G/tp R, T/cp, H)
        key, value = key_value.permute(3, 1, 2, 0, 4)  # (B, G/tp, T, H) each
        seen = torch.cat(each) <= each[self.cp.rank()][:, None]  # (T/cp, T)
        context = F.scaled_dot_product_attention(
            query, key, value, attn_mask=seen.to(hidden.device), enable_gqa=True
        )  # (B, G/tp R, T/cp, H)
        out: Tensor = self.linear_proj(context.transpose(1, 2).flatten(2))
        return out


# --- 4. ep: experts, one for each token ---


class RoutedMLP(nn.Module):
    """Many MLPs, of which a token sees the one that its router likes best."""

    def __init__(self, config: GPTConfig, num_moe_experts: int) -> None:
        super().__init__()
        self.router = nn.Linear(config.hidden_size, num_moe_experts, bias=False)
        each = {str(i): MLP(config) for i in range(num_moe_experts)}
        self.experts = nn.ModuleDict(each)

    def forward(self, hidden: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        tokens = hidden.flatten(0, 1)  # (N, D)
        return self.work(tokens, self.route(tokens, self.router.weight)).view_as(hidden)

    def route(self, tokens: Tensor, weight: Tensor) -> Tensor:
        """Return (N, E): the score of each token's expert, and 0 for the others."""
        scores = F.linear(tokens, weight).softmax(-1)  # (N, E)
        best = scores.argmax(-1, keepdim=True)  # (N, 1)
        return torch.zeros_like(scores).scatter(-1, best, scores.gather(-1, best))

    def work(self, tokens: Tensor, gates: Tensor) -> Tensor:
        """Return (N, D): what the experts here make of their tokens, 0 for others."""
        output = torch.zeros_like(tokens)
        for name, expert in self.experts.items():
            gate = gates[:, int(name)]  # (N)
            mine = gate.nonzero().squeeze(1)  # of no token too: a gradient of zeros
            output = output.index_add(0, mine, expert(tokens[mine]) * gate[mine, None])
        return output


class ParallelRoutedMLP(RoutedMLP):
    """E/ep experts here; every token of the group comes, and goes home in the sum."""

    def __init__(self, master: RoutedMLP, groups: LayerGroups) -> None:
        nn.Module.__init__(self)
        self.router, self.groups = master.router, groups
        whole = list(master.experts.items())
        first = groups.ep.rank() * (len(whole) // groups.ep.size())
        mine = whole[first : first + len(whole) // groups.ep.size()]
        self.experts = nn.ModuleDict(dict(mine))

    def forward(self, hidden: Tensor) -> Tensor:
        """(B, T/cp, D) -> (B, T/cp, D), the same on every rank of tp."""
        tp, ep = self.groups.tp, self.groups.ep
        # Ranks of tp have the same tokens: one of them sends each.
        tokens = move(hidden.flatten(0, 1), own_part, all_gather, tp)  # (N/tp, D)
        weight = move(self.router.weight, stay, all_reduce, tp)  # (E, D)
        gates = self.route(tokens, weight)  # (N/tp, E)
        gates = move(gates, all_gather, reduce_scatter, ep)  # (ep N/tp, E)
        tokens = move(tokens, all_gather, reduce_scatter, ep)  # (ep N/tp, D)
        output = move(self.work(tokens, gates), reduce_scatter, all_gather, ep)
        return move(output, all_gather, own_part, tp).view_as(hidden)  # (B, T/cp, D)
