"""Ring attention: every rank holds a part of the sequence, keys and values go round.

The second file of `context_parallel.py`. Each rank keeps its queries. In W rounds it
meets the keys and values of every rank, and merges what each brings by the statistics
of the softmax, so that no rank ever holds the scores of the whole sequence. Each rank
has an early and a late chunk of 2W, so that under a causal mask all work alike.

    round 0      own keys and values | sent on to the right meanwhile
    round i      those of rank r-i   | sent on
    backward     the same way round; gradients of keys and values follow a hop behind

Follows:
- Ring Attention (arXiv 2310.01889), section 3
- pytorch/pytorch: torch/distributed/tensor/experimental/_context_parallel/_attention.py
  (`_templated_ring_attention`)
- NVIDIA/TransformerEngine: transformer_engine/pytorch/attention/dot_product_attention/
  context_parallel.py (by sends and receives, as here)

Leaves out:
- dropout, masks other than the causal one, sequences packed into one
- fused kernels: a block's scores are written out here, as plain attention has them
- sums in fp32 where the inputs are narrower
"""

import math
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd import Function

from mini_impls.context_parallel import chunks_of

# Letters: B sequences, G query groups, R query heads of a group (its key and value are
# 1 head each), T tokens, C = T / 2W of a chunk, H width of a head, W world_size.

# --- 1. who meets whom ---


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


# --- 2. one block, and how two are merged ---


def _scores(query: Tensor, key: Tensor, is_diagonal: bool) -> Tensor:
    """Return the scores (B, G, R, C, C) of a chunk of queries and one of keys."""
    scores = query @ key.mT / math.sqrt(query.size(-1))
    if is_diagonal:
        hidden = torch.ones_like(scores, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    return scores


def merge(
    output: Tensor, logsumexp: Tensor, other: Tensor, other_logsumexp: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the attention over both sets of keys, and its logsumexp (B, G, R, C, 1).

    Each output was divided by the sum of its own exponents; their shares of the sum of
    both are what they weigh.
    """
    total = torch.logaddexp(logsumexp, other_logsumexp)
    mine, theirs = (logsumexp - total).exp(), (other_logsumexp - total).exp()
    return mine * output + theirs * other, total


# --- 3. the ring ---


def _pass_on(tensor: Tensor, group: dist.ProcessGroup) -> tuple[Tensor, list[Any]]:
    """Start to send to the right and to receive from the left."""
    rank, world_size = group.rank(), group.size()
    if world_size == 1:
        return tensor, []
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    received = torch.empty_like(tensor)  # (2, B, G, 1, T/W, H)
    ops = [
        dist.P2POp(dist.isend, tensor, group=group, group_peer=right),
        dist.P2POp(dist.irecv, received, group=group, group_peer=left),
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
        """Map (B, G, R, T/W, H) and twice (B, G, 1, T/W, H) to (B, G, R, T/W, H)."""
        rank, world_size = group.rank(), group.size()
        queries = query.chunk(2, dim=-2)  # (B, G, R, C, H) each
        outputs = [torch.zeros_like(q) for q in queries]
        logsumexps = [torch.full_like(q[..., :1], -math.inf) for q in queries]
        pair = torch.stack([key, value])  # (2, B, G, 1, T/W, H)
        for hop in range(world_size):
            if hop < world_size - 1:
                following, works = _pass_on(pair, group)  # (2, B, G, 1, T/W, H)
            keys, values = (each.chunk(2, dim=-2) for each in pair)  # (B, G, 1, C, H)
            for i, j, is_diagonal in pairs(rank, (rank - hop) % world_size, world_size):
                scores = _scores(queries[i], keys[j], is_diagonal)  # (B, G, R, C, C)
                logsumexp = scores.logsumexp(-1, keepdim=True)  # (B, G, R, C, 1)
                output = (scores - logsumexp).exp() @ values[j]  # (B, G, R, C, H)
                outputs[i], logsumexps[i] = merge(
                    outputs[i], logsumexps[i], output, logsumexp
                )
            if hop < world_size - 1:
                _wait(works)
                pair = following
        output = torch.cat(outputs, dim=-2)  # (B, G, R, T/W, H)
        ctx.save_for_backward(query, key, value, output, torch.cat(logsumexps, dim=-2))
        ctx.group = group
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        """Send keys and values round again; what they are owed follows a hop behind."""
        query, key, value, output, logsumexp = ctx.saved_tensors
        group = ctx.group
        rank, world_size = group.rank(), group.size()
        # The sum over keys of weight times its gradient: the same for every block.
        delta = (grad_output * output).sum(-1, keepdim=True)  # (B, G, R, T/W, 1)
        saved = (query, grad_output, delta, logsumexp)
        queries = [*zip(*(each.chunk(2, dim=-2) for each in saved), strict=True)]
        grad_query = torch.zeros_like(query)
        grad_queries = grad_query.chunk(2, dim=-2)  # (B, G, R, C, H) each, views
        pair, owed = torch.stack([key, value]), list[Any]()  # (2, B, G, 1, T/W, H)
        arrived = pair.new_zeros(())  # nothing yet
        for hop in range(world_size):
            if hop < world_size - 1:
                following, works = _pass_on(pair, group)  # (2, B, G, 1, T/W, H)
            keys, values = (each.chunk(2, dim=-2) for each in pair)  # (B, G, 1, C, H)
            grads = torch.zeros_like(pair)  # (2, B, G, 1, T/W, H)
            grad_keys, grad_values = (each.chunk(2, dim=-2) for each in grads)
            for i, j, is_diagonal in pairs(rank, (rank - hop) % world_size, world_size):
                q, grad, its_delta, its_logsumexp = queries[i]
                weights = (_scores(q, keys[j], is_diagonal) - its_logsumexp).exp()
                grad_scores = weights * (grad @ values[j].mT - its_delta)
                grad_scores /= math.sqrt(q.size(-1))  # (B, G, R, C, C)
                grad_queries[i].add_(grad_scores @ keys[j])  # (B, G, R, C, H)
                # The heads of a group share a key: (B, G, R, C, H) to (B, G, 1, C, H).
                one = keys[j].shape
                grad_keys[j].add_((grad_scores.mT @ q).sum_to_size(one))
                grad_values[j].add_((weights.mT @ grad).sum_to_size(one))
            _wait(owed)  # what ranks before this one owe the keys that are here now
            grads += arrived
            arrived, owed = _pass_on(grads, group)  # (2, B, G, 1, T/W, H)
            if hop < world_size - 1:
                _wait(works)
                pair = following
        _wait(owed)  # W hops: the gradients are back where their keys and values live
        return grad_query, arrived[0], arrived[1], None


def ring_attention(
    query: Tensor, key: Tensor, value: Tensor, group: dist.ProcessGroup
) -> Tensor:
    """Return this rank's part of causal attention, (B, G, R, T/W, H), of its shards."""
    output: Tensor = RingAttention.apply(query, key, value, group)  # type: ignore[no-untyped-call]
    return output
