"""The collectives, built from sends and receives alone.

Every function states how many rounds of messages it takes and how many bytes this rank
sends; `cost` gives the same two numbers without sending anything.

Follows:
- facebookincubator/gloo: gloo/allreduce.cc (ring, then segments in flight)
- facebookincubator/gloo: gloo/allreduce_halving_doubling.h
- facebookincubator/gloo: gloo/broadcast.cc, gloo/alltoall.cc

Leaves out:
- rings laid along the machine's links, several channels, shared memory
- binary blocks for ranks beyond a power of two: those fold into a partner instead
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
import torch.distributed as dist
from torch import Tensor

# Letters: W world size, N elements of the whole tensor, n_r those of chunk r. Sizes in
# bytes are the elements times the element size.

ReduceOp = dist.ReduceOp

REDUCE: dict[dist.ReduceOp.RedOpType, Callable[..., Tensor]] = {
    ReduceOp.SUM: torch.add,
    ReduceOp.AVG: torch.add,  # divided by W at the end
    ReduceOp.PRODUCT: torch.mul,
    ReduceOp.MIN: torch.minimum,
    ReduceOp.MAX: torch.maximum,
    ReduceOp.BAND: torch.bitwise_and,
    ReduceOp.BOR: torch.bitwise_or,
    ReduceOp.BXOR: torch.bitwise_xor,
}


# --- 1. one round of messages ---


def exchange(
    send: Tensor | None,
    dst: int,
    recv: Tensor | None,
    src: int,
    group: dist.ProcessGroup,
) -> list[dist.Work]:
    """Start sending `send` to `dst` while receiving `recv` from `src`.

    Both are posted before either is waited for: two neighbours that first send and
    then receive would wait for each other.
    """
    ops = []
    if send is not None and send.numel():
        ops.append(dist.P2POp(dist.isend, send, group=group, group_peer=dst))
    if recv is not None and recv.numel():
        ops.append(dist.P2POp(dist.irecv, recv, group=group, group_peer=src))
    return dist.batch_isend_irecv(ops) if ops else []


def wait(works: Sequence[dist.Work]) -> None:
    """Wait for one round."""
    for work in works:
        work.wait()


def accumulate(mine: Tensor, received: Tensor, op: dist.ReduceOp.RedOpType) -> None:
    """Reduce `received` into `mine`, in place."""
    REDUCE[op](mine, received, out=mine)


def _check(op: dist.ReduceOp.RedOpType, dtype: torch.dtype) -> None:
    if op == ReduceOp.AVG and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"the mean of {dtype} is not {dtype}: reduce a floating type")


# --- 2. plain: everyone sends everything to everyone ---


def naive_all_reduce(
    tensor: Tensor, group: dist.ProcessGroup, op: dist.ReduceOp.RedOpType = ReduceOp.SUM
) -> None:
    """All-reduce in W-1 rounds; sends (W-1) N."""
    _check(op, tensor.dtype)
    rank, world_size = group.rank(), group.size()
    everyone = [torch.empty_like(tensor) for _ in range(world_size)]
    everyone[rank].copy_(tensor)
    for hop in range(1, world_size):
        dst, src = (rank + hop) % world_size, (rank - hop) % world_size
        wait(exchange(everyone[rank], dst, everyone[src], src, group))
    # Rank order everywhere: were each to start from its own, the ranks would drift.
    tensor.copy_(everyone[0])
    for other in everyone[1:]:
        accumulate(tensor, other, op)
    if op == ReduceOp.AVG:
        tensor /= world_size


# --- 3. ring: every rank talks to its two neighbours only ---
#
#   reduce-scatter, W = 3: chunks move to the left and grow
#     round 0   rank 0 sends chunk 1, rank 1 sends 2, rank 2 sends 0
#     round 1   rank 0 sends chunk 2, rank 1 sends 0, rank 2 sends 1
#     after     rank r holds the sum of chunk r


def ring_reduce_scatter(
    chunks: Sequence[Tensor],
    group: dist.ProcessGroup,
    op: dist.ReduceOp.RedOpType = ReduceOp.SUM,
) -> Tensor:
    """Return chunk r reduced, in W-1 rounds; sends N - n_r. The rest is overwritten.

    Chunks may differ in size; chunk i has one size on all ranks.
    """
    rank, world_size = group.rank(), group.size()
    _check(op, chunks[rank].dtype)
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    for hop in range(world_size - 1):
        send = chunks[(rank + 1 + hop) % world_size]
        mine = chunks[(rank + 2 + hop) % world_size]
        received = torch.empty_like(mine)
        wait(exchange(send, left, received, right, group))
        accumulate(mine, received, op)
    if op == ReduceOp.AVG:
        chunks[rank].div_(world_size)
    return chunks[rank]


def ring_all_gather(chunks: Sequence[Tensor], group: dist.ProcessGroup) -> None:
    """Fill every chunk from the rank that owns it, in W-1 rounds; sends N - n_(r-1)."""
    rank, world_size = group.rank(), group.size()
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    for hop in range(world_size - 1):
        send = chunks[(rank + hop) % world_size]
        received = chunks[(rank + 1 + hop) % world_size]
        wait(exchange(send, left, received, right, group))


def ring_all_reduce(
    tensor: Tensor, group: dist.ProcessGroup, op: dist.ReduceOp.RedOpType = ReduceOp.SUM
) -> None:
    """All-reduce in 2(W-1) rounds; sends 2N - n_r - n_(r-1), about 2N whatever W."""
    chunks = tensor.view(-1).tensor_split(group.size())  # uneven: the first ones longer
    ring_reduce_scatter(chunks, group, op)
    ring_all_gather(chunks, group)


# --- 4. overlapped ring: one segment travels while another is added ---


def pipelined_ring_reduce_scatter(
    chunks: Sequence[Tensor],
    group: dist.ProcessGroup,
    op: dist.ReduceOp.RedOpType = ReduceOp.SUM,
    *,
    segments: int = 2,
) -> Tensor:
    """Return what `ring_reduce_scatter` returns, in `segments` (W-1) smaller rounds.

    Two rounds are in flight, so a chunk needs two segments: a segment may leave only
    after the sum of two rounds ago has gone into it.
    """
    rank, world_size = group.rank(), group.size()
    _check(op, chunks[rank].dtype)
    if segments < 2:
        raise ValueError(f"{segments} segments a chunk cannot keep 2 rounds in flight")
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    pieces = [chunk.tensor_split(segments) for chunk in chunks]
    in_flight: deque[tuple[list[dist.Work], Tensor, Tensor]] = deque()
    rounds = segments * (world_size - 1)
    for i in range(rounds + 2):
        if i >= 2 and in_flight:
            works, mine, received = in_flight.popleft()
            wait(works)
            accumulate(mine, received, op)
        if i < rounds:
            hop, segment = divmod(i, segments)
            send = pieces[(rank + 1 + hop) % world_size][segment]
            mine = pieces[(rank + 2 + hop) % world_size][segment]
            received = torch.empty_like(mine)
            works = exchange(send, left, received, right, group)
            in_flight.append((works, mine, received))
    if op == ReduceOp.AVG:
        chunks[rank].div_(world_size)
    return chunks[rank]


# --- 5. halving and doubling: few rounds, for small messages ---


def halving_doubling_all_reduce(
    tensor: Tensor, group: dist.ProcessGroup, op: dist.ReduceOp.RedOpType = ReduceOp.SUM
) -> None:
    """All-reduce in 2 log2(W) rounds; sends 2N(W-1)/W where W divides N.

    Ranks beyond the largest power of two P fold: they send N to rank r-P first and get
    the result from it last, two rounds more.
    """
    _check(op, tensor.dtype)
    rank, world_size = group.rank(), group.size()
    power = 1 << (world_size.bit_length() - 1)
    partner = rank - power if rank >= power else rank + power
    flat = tensor.view(-1)
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
        flat[bounds[rank] : bounds[rank + 1]] /= world_size
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
    return flat[bounds[first] : bounds[first + width]]


# --- 6. broadcast down a tree, all-to-all in pairs ---


def tree_broadcast(tensor: Tensor, src: int, group: dist.ProcessGroup) -> None:
    """Broadcast in ceil(log2 W) rounds; the root sends N in each of them.

    In round i the 2^i ranks that have the tensor send it to 2^i that do not.
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


def pairwise_all_to_all(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], group: dist.ProcessGroup
) -> None:
    """Send `inputs[i]` to rank i, in W-1 rounds; sends N - n_r."""
    rank, world_size = group.rank(), group.size()
    outputs[rank].copy_(inputs[rank])
    for hop in range(1, world_size):
        dst, src = (rank + hop) % world_size, (rank - hop) % world_size
        wait(exchange(inputs[dst], dst, outputs[src], src, group))


# --- 7. what each costs ---


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


if __name__ == "__main__":
    from mini_impls.demos.collectives import main

    raise SystemExit(main())
