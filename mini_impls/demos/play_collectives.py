"""Collectives made of sends, written down: rank r gives 2^r, so a sum says whose."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from mini_impls import collectives
from mini_impls.demos.play import Notebook, Noted, join, powers, replaced
from mini_impls.launch import Rank

NUMEL = 1024


def _chunk_slots(numel: int, world_size: int) -> list[dict[str, Any]]:
    size = numel // world_size * torch.int64.itemsize
    return [
        {"name": f"chunk {i}", "pieces": 1, "bytes": size, "first_hue": i}
        for i in range(world_size)
    ]


def _play(
    rank: Rank,
    chunks: Sequence[Tensor],
    module: Any,
    work: Callable[[Notebook], None],
    place: Callable[[int, int], tuple[Any, ...]],
) -> list[Noted]:
    """Run something that exchanges chunks; `place` tells a round by its peers."""
    notebook = Notebook(lambda: [powers(chunk) for chunk in chunks])
    starts = {chunk.data_ptr(): i for i, chunk in enumerate(chunks) if chunk.numel()}
    real = module.exchange

    def exchange(send: Any, dst: int, recv: Any, src: int, group: Any) -> Any:
        at = place(dst, src)
        entry = notebook.begin("send", at=at, of=notebook.phase)
        if send is not None and send.numel():
            for chunk in send.split(chunks[0].numel()):
                slot = starts[chunk.data_ptr()]
                entry.sent.append((rank.rank, dst, slot, chunk.nbytes))
        return real(send, dst, recv, src, group)

    with replaced(module, exchange=exchange):
        work(notebook)
    notebook.close()
    return notebook.entries


def _rounds() -> Callable[[int, int], tuple[Any, ...]]:
    """Return what numbers rounds in which every rank takes part."""
    count = iter(range(1, 1000))
    return lambda dst, src: (next(count),)


def _full(rank: Rank) -> tuple[Tensor, list[Tensor]]:
    tensor = torch.full((NUMEL,), 1 << rank.rank, dtype=torch.int64)
    return tensor, list(tensor.tensor_split(rank.world_size))


def ring_reduce_scatter(rank: Rank) -> list[Noted]:
    """Write a reduce-scatter down."""
    _, chunks = _full(rank)

    def work(notebook: Notebook) -> None:
        notebook.phase = "reduce-scatter"
        collectives.ring_reduce_scatter(chunks, rank.group)

    return _play(rank, chunks, collectives, work, _rounds())


def ring_all_gather(rank: Rank) -> list[Noted]:
    """Write an all-gather down; a chunk that is not there yet is zero."""
    tensor, chunks = _full(rank)
    mine = chunks[rank.rank].clone()
    tensor.zero_()
    chunks[rank.rank].copy_(mine)

    def work(notebook: Notebook) -> None:
        notebook.phase = "all-gather"
        collectives.ring_all_gather(chunks, rank.group)

    return _play(rank, chunks, collectives, work, _rounds())


def ring_all_reduce(rank: Rank) -> list[Noted]:
    """Write an all-reduce down: the one, then the other."""
    tensor, chunks = _full(rank)
    scatter, gather = collectives.ring_reduce_scatter, collectives.ring_all_gather

    def work(notebook: Notebook) -> None:
        def reduce_scatter(*args: Any) -> Any:
            notebook.phase = "reduce-scatter"
            return scatter(*args)

        def all_gather(*args: Any) -> None:
            notebook.phase = "all-gather"
            gather(*args)

        halves = {"ring_reduce_scatter": reduce_scatter, "ring_all_gather": all_gather}
        with replaced(collectives, **halves):
            collectives.ring_all_reduce(tensor, rank.group)

    return _play(rank, chunks, collectives, work, _rounds())


def chunks_of(per_rank: list[list[Noted]]) -> dict[str, Any]:
    """Return a run whose slots are the chunks of one tensor."""
    return join(per_rank, _chunk_slots(NUMEL, len(per_rank)))


RUNS = {
    "ring-all-reduce": (ring_all_reduce, chunks_of, "collectives"),
    "reduce-scatter": (ring_reduce_scatter, chunks_of, "collectives"),
    "all-gather": (ring_all_gather, chunks_of, "collectives"),
}
"""By name: what each rank runs, how their notes are joined, the mini."""
