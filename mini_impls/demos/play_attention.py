"""Ring attention, written down: whose keys are here, and which blocks are done."""

from typing import Any

import torch
from torch import Tensor

from mini_impls import ring_attention
from mini_impls.context_parallel import chunks_of, shard
from mini_impls.demos.play import Notebook, Noted, join, replaced
from mini_impls.launch import Rank

CHUNK, FEATURES = 4, 8


def forward(rank: Rank) -> list[Noted]:
    """Write a forward down; the first number of each key says whose it is."""
    w, me = rank.world_size, rank.rank
    generator = torch.Generator().manual_seed(0)
    whole = [
        torch.randn(1, 1, 2 * w * CHUNK, FEATURES, generator=generator) for _ in "qkv"
    ]
    query, key, value = (shard(each, me, w) for each in whole)
    key = key.contiguous()
    key[..., 0] = me
    mine = chunks_of(me, w)
    done = [[_need(chunk, k) for k in range(2 * w)] for chunk in mine]
    here = {"source": me}
    real_pass, real_pairs = ring_attention._pass_on, ring_attention.pairs

    def look() -> list[str]:
        keys = ["."] * (2 * w)
        for chunk in chunks_of(here["source"], w):
            keys[chunk] = str(here["source"])
        return [" ".join(keys), *(" ".join(row) for row in done)]

    notebook = Notebook(look)
    notebook.phase = "forward"

    def pass_on(tensor: Tensor, group: Any) -> Any:
        entry = notebook.begin("send", of="K, V")
        here["source"] = int(tensor[0, 0, 0, 0, 0])
        entry.sent.append((me, (me + 1) % w, 0, tensor.nbytes))
        return real_pass(tensor, group)

    def pairs(rank: int, source: int, world_size: int) -> Any:
        notebook.begin("compute", of="Q Kᵀ, softmax, V")
        here["source"] = source
        found = real_pairs(rank, source, world_size)
        theirs = chunks_of(source, world_size)
        for i, j, _ in found:
            done[i][theirs[j]] = str(source)
        return found

    with replaced(ring_attention, _pass_on=pass_on, pairs=pairs):
        ring_attention.ring_attention(query, key, value, rank.group)
    notebook.close()
    return notebook.entries


def _need(query: int, key: int) -> str:
    """Return how a block begins: one that the mask hides is never met."""
    return "." if key <= query else ".:×"


def blocks_of(per_rank: list[list[Noted]]) -> dict[str, Any]:
    """Return a run whose slots are the keys at hand and both rows of blocks."""
    w = len(per_rank)
    size = 2 * 2 * w * CHUNK * FEATURES * 4
    names = {"keys, values": size, "early queries": 0, "late queries": 0}
    slots = [{"name": n, "pieces": 2 * w, "bytes": b} for n, b in names.items()]
    return join(per_rank, slots)


RUNS = {"ring-attention": (forward, blocks_of, "ring_attention")}
"""By name: what each rank runs, how their notes are joined, the mini."""
