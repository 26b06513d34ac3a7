"""The collectives, built from sends and receives alone: one neighbour at a time.

Every function states how many rounds of messages it takes and how much this rank sends.
Fewer rounds, and the same two numbers without sending anything: `collectives_log.py`.

Follows:
- facebookincubator/gloo: gloo/allreduce.cc (ring, then segments in flight)
- facebookincubator/gloo: gloo/alltoall.cc

Leaves out:
- rings laid along the machine's links, several channels, shared memory
"""

from collections import deque
from collections.abc import Callable, Sequence

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
    everyone = [torch.empty_like(tensor) for _ in range(world_size)]  # W of N elements
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
    chunks = tensor.view(-1).tensor_split(group.size())  # W of (n_r), the first longer
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
    pieces = [chunk.tensor_split(segments) for chunk in chunks]  # (n_r/segments) each
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


# --- 5. all-to-all: everyone has something else for everyone ---


def pairwise_all_to_all(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], group: dist.ProcessGroup
) -> None:
    """Send `inputs[i]` to rank i, in W-1 rounds; sends N - n_r."""
    rank, world_size = group.rank(), group.size()
    outputs[rank].copy_(inputs[rank])
    for hop in range(1, world_size):
        dst, src = (rank + hop) % world_size, (rank - hop) % world_size
        wait(exchange(inputs[dst], dst, outputs[src], src, group))


if __name__ == "__main__":
    from mini_impls.demos.collectives import main

    raise SystemExit(main())
