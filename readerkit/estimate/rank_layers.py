"""Which layers a pipeline rank holds, and of which ranks one has most."""

from __future__ import annotations

from functools import lru_cache

from readerkit.estimate.layout import Layout, stage_layers
from readerkit.estimate.shape import NamedShape, Shape


def layers_of_rank(shape: Shape, layout: Layout, rank: int) -> tuple[int, int]:
    """Return how many dense and how many expert layers a pipeline rank holds."""
    if not isinstance(shape, NamedShape):
        return _count_layers(shape, layout.schedule, *_stages(layout), rank)
    sizes = (int(size) for size in _stages(layout))
    dense, experts = _count_layers(shape.plain(), layout.schedule, *sizes, rank)
    return (
        shape.call("n", dense, "dense layers on the rank"),
        shape.call("n_e", experts, "expert layers on the rank"),
    )


def first_chunks(shape: Shape, layout: Layout) -> list[tuple[int, int]]:
    """Return how many dense and expert layers each chunk of the first rank has."""
    p, v, first, last = (int(size) for size in _stages(layout))
    counts = stage_layers(shape.layers, p, v, first, last)
    found, layer = [], 0
    for chunk in range(v):
        # One fewer is one fewer in the model's first chunk.
        size = -(-counts[0] // v) - (chunk == 0 and counts[0] % v > 0)
        experts = sum(map(shape.has_experts, range(layer, layer + size)))
        found.append((size - experts, experts))
        layer += size + sum(-(-count // v) for count in counts[1:])
    return found


def busiest_rank(shape: Shape, layout: Layout) -> int:
    """Return the pipeline rank that a step waits for: of most layers, then experts."""

    def work(rank: int) -> tuple[int, int]:
        dense, experts = layers_of_rank(shape, layout, rank)
        return dense + experts, experts

    return max(telling_ranks(shape, layout.pp), key=work)


def _stages(layout: Layout) -> tuple[int, int, int, int]:
    return layout.pp, layout.virtual_stages, layout.first_layers, layout.last_layers


@lru_cache(maxsize=4096)
def _count_layers(
    shape: Shape, schedule: str, pp: int, v: int, first: int, last: int, rank: int
) -> tuple[int, int]:
    folded = {"zb-v": 2 * pp, "dualpipe": pp}.get(schedule)
    counts = stage_layers(shape.layers, folded or pp, v, first, last)
    stages = (rank, folded - 1 - rank) if folded else (rank,)
    count = sum(counts[stage] for stage in stages)
    if shape.plain_layers in (0, shape.layers):
        return (count, 0) if shape.plain_layers else (0, count)
    moe = layer = 0
    for chunk in range(v):
        for stage, layers in enumerate(counts):
            size = -(-layers // v)
            # One fewer is one fewer in the model's first chunk, or in its last.
            if layers % v and chunk == (0 if stage == 0 else v - 1):
                size -= 1
            if stage in stages:
                moe += sum(map(shape.has_experts, range(layer, layer + size)))
            layer += size
    return count - moe, moe


def telling_ranks(shape: Shape, pp: int) -> tuple[int, ...]:
    """Return the pipeline ranks of which one is the most loaded.

    Between the first and the last rank, weights are the same and fewer microbatches
    are in flight: the first of them and the two ends are enough, unless layers differ.
    """
    return _telling(pp, shape.plain_layers not in (0, shape.layers))


@lru_cache(maxsize=4096)
def _telling(pp: int, layers_differ: bool) -> tuple[int, ...]:
    return tuple(range(pp) if layers_differ else sorted({0, min(1, pp - 1), pp - 1}))
