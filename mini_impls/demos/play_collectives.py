"""Collectives made of sends, written down: rank r gives 2^r, so a sum says whose."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from mini_impls import collectives, collectives_log
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
    place: Callable[[Notebook, int], tuple[Any, ...]],
) -> list[Noted]:
    """Run something that exchanges chunks; `place` tells a round by its peers."""
    notebook = Notebook(lambda: [powers(chunk) for chunk in chunks])
    starts = {chunk.data_ptr(): i for i, chunk in enumerate(chunks) if chunk.numel()}
    real = module.exchange

    def exchange(send: Any, dst: int, recv: Any, src: int, group: Any) -> Any:
        at = place(notebook, dst)
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


def _rounds() -> Callable[[Notebook, int], tuple[Any, ...]]:
    """Return what numbers rounds in which every rank takes part."""
    count = iter(range(1, 1000))
    return lambda notebook, dst: (next(count),)


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


def tree_all_reduce(rank: Rank) -> list[Noted]:
    """Write down sums that go up a tree, and their broadcast down it."""
    tensor = torch.full((NUMEL,), 1 << rank.rank, dtype=torch.int64)
    down = collectives_log.tree_broadcast

    def work(notebook: Notebook) -> None:
        def broadcast(*args: Any) -> None:
            notebook.phase = "broadcast"
            down(*args)

        notebook.phase = "reduce"
        with replaced(collectives_log, tree_broadcast=broadcast):
            collectives_log.tree_all_reduce(tensor, rank.group)

    def place(notebook: Notebook, dst: int) -> tuple[Any, ...]:
        return (notebook.phase, rank.rank ^ dst)

    return _play(rank, [tensor], collectives_log, work, place)


def whole_of(per_rank: list[list[Noted]]) -> dict[str, Any]:
    """Return a run whose only slot is the whole tensor."""
    size = NUMEL * torch.int64.itemsize
    return join(per_rank, [{"name": "tensor", "pieces": 1, "bytes": size}])


# --- experts ---

TOKENS, FEATURES = 6, 32


def expert_dispatch(rank: Rank) -> list[Noted]:
    """Write down tokens that go to their experts, one on each rank, and come back.

    The first feature of a token says whose it is, the second which expert it wants.
    """
    w, me = rank.world_size, rank.rank
    generator = torch.Generator().manual_seed(me)
    tokens = torch.randn(TOKENS, FEATURES, generator=generator)
    chosen = (tokens @ torch.randn(FEATURES, w, generator=generator)).argmax(-1)
    tokens[:, 0], tokens[:, 1] = me, chosen.float()
    held: list[Tensor | None] = [tokens, None, None, None]
    room = [TOKENS, TOKENS, TOKENS * w, TOKENS]

    def word(token: Tensor) -> str:
        return f"{int(token[0])}:{int(token[1])}"

    def look() -> list[str]:
        rows = [[] if rows is None else [word(row) for row in rows] for rows in held]
        return [
            " ".join(row + ["."] * (most - len(row)))
            for row, most in zip(rows, room, strict=True)
        ]

    notebook = Notebook(look)
    notebook.phase = "dispatch"
    order = chosen.argsort(stable=True)
    notebook.begin("route")
    by_expert = held[1] = tokens[order]
    counts = chosen.bincount(minlength=w)
    theirs = torch.empty_like(counts)
    _all_to_all(
        rank, notebook, 1, theirs.chunk(w), counts.chunk(w), "tokens per expert"
    )
    inbox = torch.empty(int(theirs.sum()), FEATURES)
    inputs = by_expert.split(counts.tolist())
    outputs = inbox.split(theirs.tolist())
    _all_to_all(rank, notebook, 1, outputs, inputs, "tokens")
    held[2] = inbox
    notebook.phase = "experts"
    notebook.begin("compute", of="expert(tokens)")
    inbox[:, 2:] *= me + 1
    notebook.phase = "combine"
    back = torch.empty(TOKENS, FEATURES)
    outputs, inputs = back.split(counts.tolist()), inbox.split(theirs.tolist())
    _all_to_all(rank, notebook, 2, outputs, inputs, "tokens")
    again = torch.empty_like(back)
    again[order] = back
    held[3] = again
    notebook.close()
    return notebook.entries


def _all_to_all(
    rank: Rank,
    notebook: Notebook,
    slot: int,
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    what: str,
) -> None:
    """Send everyone what is theirs, and note who sent how much."""
    entry = notebook.begin("all_to_all", of=what)
    real = collectives.exchange

    def exchange(send: Any, dst: int, recv: Any, src: int, group: Any) -> Any:
        if send.numel():
            entry.sent.append((rank.rank, dst, slot, send.nbytes))
        return real(send, dst, recv, src, group)

    with replaced(collectives, exchange=exchange):
        collectives.pairwise_all_to_all(outputs, inputs, rank.group)


def tokens_of(per_rank: list[list[Noted]]) -> dict[str, Any]:
    """Return a run whose slots are where tokens are, as long as the longest inbox."""
    longest = max(
        sum(word != "." for word in entry.cells[2].split())
        for rank in per_rank
        for entry in rank
    )
    for rank in per_rank:
        for entry in rank:
            entry.cells[2] = " ".join(entry.cells[2].split()[:longest])
    row = FEATURES * 4
    names = {"tokens": TOKENS, "by expert": TOKENS, "at the expert": longest}
    names["tokens again"] = TOKENS
    slots = [{"name": n, "pieces": p, "bytes": p * row} for n, p in names.items()]
    return join(per_rank, slots)


def chunks_of(per_rank: list[list[Noted]]) -> dict[str, Any]:
    """Return a run whose slots are the chunks of one tensor."""
    return join(per_rank, _chunk_slots(NUMEL, len(per_rank)))


RUNS = {
    "ring-all-reduce": (ring_all_reduce, chunks_of, "collectives"),
    "tree-all-reduce": (tree_all_reduce, whole_of, "collectives collectives_log"),
    "reduce-scatter": (ring_reduce_scatter, chunks_of, "collectives"),
    "all-gather": (ring_all_gather, chunks_of, "collectives"),
    "expert-dispatch": (expert_dispatch, tokens_of, "collectives"),
}
"""By name: what each rank runs, how their notes are joined, the mini."""
