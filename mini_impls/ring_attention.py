"""Ring attention: every rank holds a part of the sequence, keys and values go round.

Each rank keeps its queries. In W rounds it meets the keys and values of every rank, and
merges what each brings by the statistics of the softmax, so that no rank ever holds the
scores of the whole sequence. With a causal mask the sequence is cut into 2W chunks, of
which rank r takes r and 2W-1-r: an early and a late one, so that all work alike.

    round 0      own keys and values | sent on to the right meanwhile
    round i      those of rank r-i   | sent on
    backward     the same way round, and the gradients of keys and values go with them

Follows:
- Ring Attention (arXiv 2310.01889), section 3
- NVIDIA/Megatron-LM: megatron/core/transformer (context parallelism, in 2W chunks)

Leaves out:
- dropout, masks other than the causal one, sequences packed into one
- fused kernels: a block's scores are written out here, as plain attention has them
- overlap below a round: what travels is waited for when the next round needs it
"""

import math
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd import Function

# Letters: B sequences, H heads, T tokens, C = T / 2W tokens of a chunk, E of a head.


# --- 1. plain: the whole sequence in one place ---


def attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Return causal attention of (B, H, T, E) tensors of the whole sequence."""
    scores = query @ key.mT / math.sqrt(query.size(-1))  # (B, H, T, T)
    positions = torch.arange(query.size(-2), device=query.device)
    hidden = positions > positions[:, None]  # (T, T)
    weights = scores.masked_fill(hidden, -math.inf).softmax(-1)
    return weights @ value


# --- 2. who has which tokens ---


def chunks_of(rank: int, world_size: int) -> tuple[int, int]:
    """Return the two chunks of 2W that a rank has: an early one and a late one.

    Chunk c meets the chunks 0 to c, c + 1 of them: both together 2W + 1, on each rank.
    """
    return rank, 2 * world_size - 1 - rank


def shard(whole: Tensor, rank: int, world_size: int) -> Tensor:
    """Return a rank's tokens (B, H, T/W, E) of (B, H, T, E)."""
    if whole.size(-2) % (2 * world_size):
        raise ValueError(
            f"{whole.size(-2)} tokens are not divisible into {2 * world_size} chunks"
        )
    chunks = whole.chunk(2 * world_size, dim=-2)  # (B, H, C, E) each
    return torch.cat([chunks[c] for c in chunks_of(rank, world_size)], dim=-2)


def unshard(shards: list[Tensor]) -> Tensor:
    """Return (B, H, T, E) of all ranks' tokens (B, H, T/W, E)."""
    chunks: dict[int, Tensor] = {}
    for rank, mine in enumerate(shards):
        both = mine.chunk(2, dim=-2)  # (B, H, C, E) each
        chunks |= dict(zip(chunks_of(rank, len(shards)), both, strict=True))
    return torch.cat([chunks[c] for c in sorted(chunks)], dim=-2)


def pairs(rank: int, source: int, world_size: int) -> list[tuple[int, int, bool]]:
    """Return which of a rank's queries meet which keys of `source`, and if masked.

    Each is (place of the chunk of queries, place of that of keys, on the diagonal):
    keys behind the queries are met in full, keys ahead of them not at all.
    """
    mine, theirs = chunks_of(rank, world_size), chunks_of(source, world_size)
    return [
        (i, j, q == k)
        for i, q in enumerate(mine)
        for j, k in enumerate(theirs)
        if k <= q
    ]


# --- 3. one block, and how two are merged ---


def _scores(query: Tensor, key: Tensor, is_diagonal: bool) -> Tensor:
    """Return the scores (B, H, C, C) of a chunk of queries and one of keys."""
    scores = query @ key.mT / math.sqrt(query.size(-1))
    if is_diagonal:
        count = scores.size(-1)
        hidden = torch.ones(count, count, dtype=torch.bool, device=scores.device).triu(
            1
        )
        scores = scores.masked_fill(hidden, -math.inf)
    return scores


def merge(
    output: Tensor, logsumexp: Tensor, other: Tensor, other_logsumexp: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the attention over both sets of keys, and its logsumexp (B, H, C, 1).

    Each output was divided by the sum of its own exponents; their shares of the sum of
    both are what they weigh.
    """
    total = torch.logaddexp(logsumexp, other_logsumexp)
    mine, theirs = (logsumexp - total).exp(), (other_logsumexp - total).exp()
    return mine * output + theirs * other, total


# --- 4. the ring ---


def _pass_on(tensor: Tensor, group: dist.ProcessGroup) -> tuple[Tensor, list[Any]]:
    """Start to send to the right and to receive from the left."""
    rank, world_size = group.rank(), group.size()
    received = torch.empty_like(tensor)
    ops = [
        dist.P2POp(dist.isend, tensor, group=group, group_peer=(rank + 1) % world_size),
        dist.P2POp(
            dist.irecv, received, group=group, group_peer=(rank - 1) % world_size
        ),
    ]
    return received, dist.batch_isend_irecv(ops)


def _wait(works: list[Any]) -> None:
    for work in works:
        work.wait()


class RingAttention(Function):
    """Causal attention of this rank's queries over the keys of all ranks."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, group: dist.ProcessGroup
    ) -> Tensor:
        """Map (B, H, T/W, E) each to (B, H, T/W, E)."""
        rank, world_size = group.rank(), group.size()
        queries = query.chunk(2, dim=-2)  # (B, H, C, E) each
        outputs = [torch.zeros_like(q) for q in queries]
        logsumexps = [torch.full_like(q[..., :1], -math.inf) for q in queries]
        pair = torch.stack([key, value])  # (2, B, H, T/W, E)
        for hop in range(world_size):
            if hop < world_size - 1:
                following, works = _pass_on(pair, group)
            keys, values = (each.chunk(2, dim=-2) for each in pair)
            for i, j, is_diagonal in pairs(rank, (rank - hop) % world_size, world_size):
                scores = _scores(queries[i], keys[j], is_diagonal)  # (B, H, C, C)
                logsumexp = scores.logsumexp(-1, keepdim=True)  # (B, H, C, 1)
                output = (scores - logsumexp).exp() @ values[j]  # (B, H, C, E)
                outputs[i], logsumexps[i] = merge(
                    outputs[i], logsumexps[i], output, logsumexp
                )
            if hop < world_size - 1:
                _wait(works)
                pair = following
        output = torch.cat(outputs, dim=-2)  # (B, H, T/W, E)
        ctx.save_for_backward(query, key, value, output, torch.cat(logsumexps, dim=-2))
        ctx.group = group
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        """Send keys and values round again, and their gradients with them."""
        query, key, value, output, logsumexp = ctx.saved_tensors
        group = ctx.group
        rank, world_size = group.rank(), group.size()
        # The sum over keys of weight times its gradient: the same for every block.
        delta = (grad_output * output).sum(-1, keepdim=True)  # (B, H, T/W, 1)
        saved = (query, grad_output, delta, logsumexp)
        queries = [*zip(*(each.chunk(2, dim=-2) for each in saved), strict=True)]
        grad_query = torch.zeros_like(query)
        grad_queries = grad_query.chunk(2, dim=-2)
        pair, grads = torch.stack([key, value]), query.new_zeros(2, *key.shape)
        for hop in range(world_size):
            keys, values = (each.chunk(2, dim=-2) for each in pair)
            grad_keys, grad_values = (each.chunk(2, dim=-2) for each in grads)
            for i, j, is_diagonal in pairs(rank, (rank - hop) % world_size, world_size):
                q, grad, its_delta, its_logsumexp = queries[i]
                weights = (_scores(q, keys[j], is_diagonal) - its_logsumexp).exp()
                grad_values[j].add_(weights.mT @ grad)  # (B, H, C, E)
                grad_scores = weights * (grad @ values[j].mT - its_delta)
                grad_scores /= math.sqrt(q.size(-1))  # (B, H, C, C)
                grad_queries[i].add_(grad_scores @ keys[j])
                grad_keys[j].add_(grad_scores.mT @ q)
            # After W hops the gradients are back where their keys and values live.
            if world_size > 1:
                (pair, sent), (grads, others) = (
                    _pass_on(each, group) for each in (pair, grads)
                )
                _wait([*sent, *others])
        return grad_query, grads[0], grads[1], None


def ring_attention(
    query: Tensor, key: Tensor, value: Tensor, group: dist.ProcessGroup
) -> Tensor:
    """Return this rank's part of causal attention, (B, H, T/W, E), of its shards."""
    output: Tensor = RingAttention.apply(query, key, value, group)  # type: ignore[no-untyped-call]
    return output
