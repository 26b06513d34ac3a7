"""Which ranks share a group when several parallel axes divide a job.

Follows the rule of Megatron's ``RankGenerator``: the first axis of the order varies
fastest. The tests hold it against the pinned function itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

from readerkit.model.language import Told

Groups = tuple[tuple[int, ...], ...]


def rank_groups(sizes: Mapping[str, int], axis: str) -> Groups:
    """Return the groups along one axis; ``sizes`` name the axes, the fastest first.

    >>> rank_groups({"tp": 2, "dp": 2, "pp": 2}, "dp")
    ((0, 2), (1, 3), (4, 6), (5, 7))
    """
    names = list(sizes)
    strides = {name: prod(sizes[n] for n in names[:i]) for i, name in enumerate(names)}
    others = [range(sizes[name]) for name in reversed(names) if name != axis]
    kept = [strides[name] for name in reversed(names) if name != axis]
    groups = []
    for position in product(*others):
        first = sum(i * stride for i, stride in zip(position, kept, strict=True))
        groups.append(tuple(first + i * strides[axis] for i in range(sizes[axis])))
    return tuple(sorted(groups))


def wrong_groups(
    given: Sequence[Sequence[int]], sizes: Mapping[str, int], axis: str
) -> Told:
    """Return what is wrong with groups along an axis, told from the ranks in them.

    >>> sizes = {"tp": 2, "dp": 2, "pp": 2}
    >>> str(wrong_groups([[0, 1], [2, 3], [4, 5], [6, 7]], sizes, "dp"))
    'ranks 0 and 1 differ in tp, 0 and 1; ranks of a dp group differ in dp alone'
    """
    count = prod(sizes.values())
    every = [rank for group in given for rank in group]
    for rank in every:
        if rank >= count:
            told = "there is no rank {rank}: the last is {last}"
            return Told(told, rank=rank, last=count - 1)
    for rank in range(count):
        if every.count(rank) != 1:
            told = "rank {rank} stands in {count} of these groups, and belongs to one"
            return Told(told, rank=rank, count=every.count(rank))
    for group in given:
        first = _place(group[0], sizes)
        for other in group[1:]:
            there = _place(other, sizes)
            for name in sizes:
                if name != axis and first[name] != there[name]:
                    return Told(
                        "ranks {one} and {other} differ in {name}, {here} and {there}; "
                        "ranks of a {axis} group differ in {axis} alone",
                        one=group[0],
                        other=other,
                        name=name,
                        here=first[name],
                        there=there[name],
                        axis=axis,
                    )
    return Told(
        "a group of {size} ranks is too small: {axis} is {wanted}, so that many ranks "
        "differ in {axis} alone",
        size=min(map(len, given), default=0),
        axis=axis,
        wanted=sizes[axis],
    )


def _place(rank: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return where a rank stands along each axis."""
    found = {}
    for name, size in sizes.items():
        found[name] = rank % size
        rank //= size
    return found
