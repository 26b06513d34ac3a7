"""Collectives in few rounds, for small messages: the second file of `collectives.py`.

What a ring does in W rounds takes log2 W here, with partners ever further away. Every
function states its rounds and what this rank sends; `cost` gives both for all of them.

Follows:
- facebookincubator/gloo: gloo/allreduce_halving_doubling.h
- facebookincubator/gloo: gloo/broadcast.cc (and, upwards, gloo/reduce.cc)

Leaves out:
- binary blocks for ranks beyond a power of two: those fold into a partner instead
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.distributed as dist
from torch import Tensor

from mini_impls.collectives import ReduceOp, _check, accumulate, exchange, wait

# Letters: W world size, N elements of the whole tensor, n_r those of chunk r. Sizes in
# bytes are the elements times the element size.

# --- 1. halving and doubling ---
#
#   W = 4, chunks 0 to 3     rank 0       rank 1       rank 2       rank 3
#   halving    distance 2    23 to 2      23 to 3      01 to 0      01 to 1
#              distance 1    1 to 1       0 to 0       3 to 3       2 to 2
#   now the sum of           chunk 0      chunk 1      chunk 2      chunk 3
#   doubling   the same ranges, backwards


def halving_doubling_all_reduce(
    tensor: Tensor, group: dist.ProcessGroup, op: dist.ReduceOp.RedOpType = ReduceOp.SUM
) -> None:
    """All-reduce in 2 log2(W) rounds; sends 2N(W-1)/W if W, a power of 2, divides N.

    Ranks beyond the largest power of two P fold: they send N to rank r-P first and get
    the result from it last, two rounds more.
    """
    _check(op, tensor.dtype)
    rank, world_size = group.rank(), group.size()
    power = 1 << (world_size.bit_length() - 1)
    partner = rank - power if rank >= power else rank + power
    flat = tensor.view(-1)  # (N)
    if rank >= power:
        wait(exchange(flat, partner, None, partner, group))
        wait(exchange(None, partner, flat, partner, group))
        return
    if partner < world_size:
        received = torch.empty_like(flat)
        wait(exchange(None, partner, received, partner, group))
        accumulate(flat, received, op)
    bounds = _bounds(flat.numel(), power)
    distance = power // 2
    while distance:  # halving: keep the half that holds chunk `rank`, send the other
        peer = rank ^ distance
        mine = _aligned(flat, bounds, rank, distance)
        received = torch.empty_like(mine)
        theirs = _aligned(flat, bounds, peer, distance)
        wait(exchange(theirs, peer, received, peer, group))
        accumulate(mine, received, op)
        distance //= 2
    if op == ReduceOp.AVG:
        flat[bounds[rank] : bounds[rank + 1]] /= world_size  # one of P chunks
    distance = 1
    while distance < power:  # doubling: the same ranges, backwards
        peer = rank ^ distance
        mine = _aligned(flat, bounds, rank, distance)
        theirs = _aligned(flat, bounds, peer, distance)
        wait(exchange(mine, peer, theirs, peer, group))
        distance *= 2
    if partner < world_size:
        wait(exchange(flat, partner, None, partner, group))


def _bounds(numel: int, parts: int) -> list[int]:
    """Return where `tensor_split` cuts `numel` elements, both ends included."""
    small, longer = divmod(numel, parts)
    return [i * small + min(i, longer) for i in range(parts + 1)]


def _aligned(flat: Tensor, bounds: Sequence[int], rank: int, width: int) -> Tensor:
    """Return the run of `width` chunks, aligned to `width`, that holds chunk `rank`."""
    first = rank // width * width
    return flat[bounds[first] : bounds[first + width]]  # (width N/P), about


# --- 2. broadcast down a tree ---


def tree_broadcast(tensor: Tensor, src: int, group: dist.ProcessGroup) -> None:
    """Broadcast in ceil(log2 W) rounds; the root sends N in each of them.

    In round i the 2^i ranks that have the tensor send it to 2^i others, or to the rest.
    """
    world_size = group.size()
    vrank = (group.rank() - src) % world_size  # the root is 0
    distance = 1
    while distance < world_size:
        peer = ((vrank ^ distance) + src) % world_size
        if vrank < distance < world_size - vrank:
            wait(exchange(tensor, peer, None, peer, group))
        elif distance <= vrank < 2 * distance:
            wait(exchange(None, peer, tensor, peer, group))
        distance *= 2


# --- 3. all-reduce up a tree, and down again ---
#
#   W = 4     up      2 to 0, 3 to 1 | 1 to 0
#             down    0 to 1 | 0 to 2, 1 to 3


def tree_all_reduce(
    tensor: Tensor, group: dist.ProcessGroup, op: dist.ReduceOp.RedOpType = ReduceOp.SUM
) -> None:
    """All-reduce in 2 ceil(log2 W) rounds; rank 0 sends N in half of them.

    The sums go up the way on which the broadcast comes down. A message is the whole
    tensor, so few rounds are bought with bytes: for small tensors.
    """
    _check(op, tensor.dtype)
    rank, world_size = group.rank(), group.size()
    distance = 1 << ((world_size - 1).bit_length() - 1) if world_size > 1 else 0
    while distance:
        peer = rank ^ distance
        if rank < distance < world_size - rank:
            received = torch.empty_like(tensor)  # (N)
            wait(exchange(None, peer, received, peer, group))
            accumulate(tensor, received, op)
        elif distance <= rank < 2 * distance:
            wait(exchange(tensor, peer, None, peer, group))
        distance //= 2
    if op == ReduceOp.AVG and rank == 0:
        tensor /= world_size
    tree_broadcast(tensor, 0, group)


# --- 4. what each costs ---


def cost(
    name: str, numel: int, rank: int, world_size: int, *, src: int = 0
) -> tuple[int, int]:
    """Return (rounds that follow one another, elements that this rank sends).

    Chunks are those of `tensor_split`; multiply by the element size for bytes.
    """
    w, bounds = world_size, _bounds(numel, world_size)
    sizes = [stop - start for start, stop in pairwise(bounds)]
    own, before = sizes[rank], sizes[rank - 1]
    match name:
        case "naive_all_reduce":
            return w - 1, (w - 1) * numel
        case "ring_reduce_scatter" | "pairwise_all_to_all":
            return w - 1, numel - own
        case "pipelined_ring_reduce_scatter":  # in two segments
            return 2 * (w - 1), numel - own
        case "ring_all_gather":
            return w - 1, numel - before
        case "ring_all_reduce":
            return 2 * (w - 1), 2 * numel - own - before
        case "tree_broadcast":
            vrank, rounds = (rank - src) % w, (w - 1).bit_length()
            ways = [1 << i for i in range(rounds) if vrank < 1 << i < w - vrank]
            return rounds, len(ways) * numel
        case "tree_all_reduce":
            rounds = (w - 1).bit_length()
            ways = [1 << i for i in range(rounds) if rank < 1 << i < w - rank]
            return 2 * rounds, (len(ways) + (rank > 0)) * numel
        case "halving_doubling_all_reduce":
            power, folded = 1 << (w.bit_length() - 1), 2 * (w & (w - 1) > 0)
            if rank >= power:
                return 2 * (power.bit_length() - 1) + folded, numel
            bounds = _bounds(numel, power)
            sent = numel - (bounds[rank + 1] - bounds[rank])  # halving
            for i in range(power.bit_length() - 1):  # doubling
                first = rank >> i << i
                sent += bounds[first + (1 << i)] - bounds[first]
            partner_sends = numel if rank + power < w else 0
            return 2 * (power.bit_length() - 1) + folded, sent + partner_sends
    raise ValueError(f"no formula for {name!r}")
