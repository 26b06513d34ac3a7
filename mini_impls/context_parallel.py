"""Context parallelism: each rank holds a part of every sequence, through all layers.

Norms, MLPs and losses go token by token and need nothing from other ranks. Attention
does: a query meets the keys of all tokens before it. Two ways to bring them together
are here, and `ring_attention.py` is the third.

    all-gather   every rank gets the keys and values of all tokens | queries stay
    Ulysses      every rank gets all tokens of 1/W of the heads    | and gives them back
    ring         keys and values go round                          | met as they pass

Follows:
- NVIDIA/Megatron-LM: megatron/core/utils.py (`get_batch_on_this_cp_rank`)
- NVIDIA/Megatron-LM: megatron/core/ssm/mamba_context_parallel.py (heads for tokens)
- pytorch/pytorch: torch/distributed/tensor/experimental/_context_parallel/
- DeepSpeed Ulysses (arXiv 2309.14509), section 3

Leaves out:
- a model whose attention this is, and the gradients of its weights:
  `context_parallel_model.py`
- dropout's streams of random numbers, masks other than the causal one
- several documents in one sequence, sequences of different length
- fused kernels: scores are written out here, (T/W, T) of them with all-gathered keys
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd import Function

# Dimension letters: B sequences, T tokens, C = T / 2W tokens of a chunk,
# G query groups, R query heads of a group (its key and value are 1 head each), H width
# of a head, W world_size.


# --- 1. plain: the whole sequence in one place ---


def attend(
    query: Tensor, key: Tensor, value: Tensor, at: Tensor, keys_at: Tensor
) -> Tensor:
    """Return what queries at the positions `at` find among keys at `keys_at`."""
    scores = query @ key.mT / math.sqrt(query.size(-1))  # (B, G, R, queries, keys)
    hidden = keys_at > at[:, None]  # (queries, keys)
    return scores.masked_fill(hidden, -math.inf).softmax(-1) @ value


def attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Return causal attention over whole sequences, (B, G, R, T, H)."""
    positions = torch.arange(query.size(-2), device=query.device)  # (T)
    return attend(query, key, value, positions, positions)


# --- 2. who has which tokens ---
#
#   W = 2     chunks  0 1 2 3     rank 0 has 0 and 3, rank 1 has 1 and 2


def chunks_of(rank: int, world_size: int) -> tuple[int, int]:
    """Return the two chunks of 2W that a rank has: an early one and a late one.

    Chunk c meets the chunks 0 to c, c + 1 of them: both together 2W + 1, on each rank.
    """
    return rank, 2 * world_size - 1 - rank


def shard(whole: Tensor, rank: int, world_size: int, *, dim: int = -2) -> Tensor:
    """Return a rank's T/W of the T tokens that `whole` has along `dim`."""
    count = 2 * world_size
    if whole.size(dim) % count:
        raise ValueError(
            f"{whole.size(dim)} tokens are not divisible into {count} chunks"
        )
    chunks = whole.chunk(count, dim)  # (.., C, ..) each
    return torch.cat([chunks[c] for c in chunks_of(rank, world_size)], dim)


def unshard(shards: Iterable[Tensor], *, dim: int = -2) -> Tensor:
    """Return all T tokens in their order, of every rank's T/W along `dim`."""
    shards, chunks = list(shards), dict[int, Tensor]()
    for rank, mine in enumerate(shards):
        both = mine.chunk(2, dim)  # (.., C, ..) each
        chunks |= dict(zip(chunks_of(rank, len(shards)), both, strict=True))
    return torch.cat([chunks[c] for c in sorted(chunks)], dim)  # (.., T, ..)


def positions_of(rank: int, world_size: int, tokens: int) -> Tensor:
    """Return where a rank's T/W of `tokens` are in their sequence."""
    return shard(torch.arange(tokens), rank, world_size, dim=0)


# --- 3. all-gather: the keys come to the queries ---


class _GatherTokens(Function):
    @staticmethod
    def forward(ctx: Any, mine: Tensor, group: dist.ProcessGroup) -> Tensor:
        """Map (B, G, 1, T/W, H) to (B, G, 1, T, H), rank after rank."""
        ctx.group = group
        whole = mine.new_empty(group.size(), *mine.shape)  # (W, B, G, 1, T/W, H)
        dist.all_gather_single(whole.view(-1), mine.contiguous().view(-1), group=group)
        return torch.cat(whole.unbind(), dim=-2)  # (B, G, 1, T, H)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """Give back the gradients of the others' tokens; get what they have of mine."""
        pieces = torch.stack(grad.chunk(ctx.group.size(), dim=-2))
        mine = torch.empty_like(pieces[0])  # (B, G, 1, T/W, H) of (W, B, G, 1, T/W, H)
        dist.reduce_scatter_single(mine.view(-1), pieces.view(-1), group=ctx.group)
        return mine, None


def all_gather_attention(
    query: Tensor, key: Tensor, value: Tensor, group: dist.ProcessGroup
) -> Tensor:
    """Attend with this rank's queries over the gathered keys of all ranks."""
    world_size = group.size()
    tokens = query.size(-2) * world_size
    each = [positions_of(rank, world_size, tokens) for rank in range(world_size)]
    at, keys_at = each[group.rank()].to(query.device), torch.cat(each).to(query.device)
    keys: Tensor = _GatherTokens.apply(key, group)  # type: ignore[no-untyped-call]
    values: Tensor = _GatherTokens.apply(value, group)  # type: ignore[no-untyped-call]
    return attend(query, keys, values, at, keys_at)  # (B, G, R, T/W, H)


class RegatheringAttention(Function):
    """The same, with T/W keys kept until backward, which gathers the others again."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, group: dist.ProcessGroup
    ) -> Tensor:
        """Map (B, G, R, T/W, H) and twice (B, G, 1, T/W, H) to (B, G, R, T/W, H)."""
        ctx.save_for_backward(query, key, value)
        ctx.group = group
        return all_gather_attention(query, key, value, group)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        """Attend once more; a fused kernel would start from the kept logsumexp."""
        query, key, value = inputs = [
            saved.detach().requires_grad_() for saved in ctx.saved_tensors
        ]
        with torch.enable_grad():
            output = all_gather_attention(query, key, value, ctx.group)
        return (*torch.autograd.grad(output, inputs, grad_output), None)


def regathering_attention(
    query: Tensor, key: Tensor, value: Tensor, group: dist.ProcessGroup
) -> Tensor:
    """Attend as `all_gather_attention`: less is kept, one gather more is sent."""
    output: Tensor = RegatheringAttention.apply(query, key, value, group)  # type: ignore[no-untyped-call]
    return output


# --- 4. Ulysses: heads for tokens, and back ---


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, pieces: Tensor, group: dist.ProcessGroup) -> Tensor:
        """Send piece i of (W, ..) to rank i; return what every rank has sent here."""
        ctx.group = group
        received = torch.empty_like(pieces, memory_format=torch.contiguous_format)
        dist.all_to_all_single(
            received.view(-1), pieces.contiguous().view(-1), group=group
        )  # (W, ..), piece i from rank i
        return received

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """Send each gradient back to where its piece came from."""
        returned: Tensor = _AllToAll.apply(grad, ctx.group)  # type: ignore[no-untyped-call]
        return returned, None


def _swap(pieces: list[Tensor], group: dist.ProcessGroup) -> Iterator[Tensor]:
    received: Tensor = _AllToAll.apply(torch.stack(pieces), group)  # type: ignore[no-untyped-call]
    yield from received.unbind()  # W pieces, one from each rank


def heads_of_all_tokens(mine: Tensor, group: dist.ProcessGroup) -> Tensor:
    """Map all heads of T/W tokens, (B, G, R, T/W, H), to (B, G/W, R, T, H)."""
    if mine.size(1) % group.size():
        raise ValueError(
            f"{mine.size(1)} heads are not divisible by {group.size()} ranks"
        )
    return unshard(_swap(list(mine.chunk(group.size(), dim=1)), group))


def tokens_of_all_heads(mine: Tensor, group: dist.ProcessGroup) -> Tensor:
    """Map (B, G/W, R, T, H) back to (B, G, R, T/W, H)."""
    world_size = group.size()
    pieces = [shard(mine, rank, world_size) for rank in range(world_size)]
    return torch.cat(list(_swap(pieces, group)), dim=1)  # (B, G, R, T/W, H)


def ulysses_attention(
    query: Tensor, key: Tensor, value: Tensor, group: dist.ProcessGroup
) -> Tensor:
    """Attend over whole sequences in some of the heads."""
    parts = [query, key, value]
    if key.size(1) % group.size():  # too few key heads: each query head takes a copy
        shape = query.shape  # (B, G, R, T/W, H); below (B, GR, 1, T/W, H)
        parts = [each.expand(shape).flatten(1, 2).unsqueeze(2) for each in parts]
    context = attention(*(heads_of_all_tokens(each, group) for each in parts))
    return tokens_of_all_heads(context, group).view_as(query)  # (B, G, R, T/W, H)


if __name__ == "__main__":
    from mini_impls.demos.context_parallel import main

    raise SystemExit(main())
