"""Which ranks share a group when several parallel axes divide a job.

Follows the rule of Megatron's ``RankGenerator``: the first axis of the order varies
fastest. The tests hold it against the pinned function itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod

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
