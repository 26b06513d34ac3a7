"""Rank groups of a layout in five dimensions, all read off one counter.

A rank is a number whose digits are its places along tensor, context, expert, data and
pipeline parallelism, the first name of `order` turning fastest. A group of one kind is
the ranks whose other digits agree. Nothing is asked of other processes: each rank finds
all groups alike, which is why they can be made in one order everywhere.

    order tp-dp-pp, tp 2, dp 2, pp 2

    rank    0 1 2 3 4 5 6 7
    tp      0 1 0 1 0 1 0 1     groups 01 23 45 67
    dp      0 0 1 1 0 0 1 1            02 13 46 57
    pp      0 0 0 0 1 1 1 1            04 15 26 37

Follows:
- NVIDIA/Megatron-LM: megatron/core/parallel_state.py (`RankGenerator`)
- pytorch/pytorch: torch/distributed/device_mesh.py (a mesh names the slowest first)

Leaves out:
- a model on all of them: `layout_gpt.py`, `layout_stages.py`, `layout_train.py`; each
  parallelism by itself: `tensor_parallel.py`, `ddp.py`, `pipeline.py` and their like
- several meshes in one job, ranks that are in no layout
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch.distributed as dist

# Digits: one place along each dimension; d_i counts from 0 to size_i - 1.


# --- 1. plain: the counter ---


def digits_of(rank: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the digits of a rank, the fastest first."""
    digits = []
    for size in sizes:
        rank, digit = divmod(rank, size)
        digits.append(digit)
    return tuple(digits)


def rank_of(digits: Sequence[int], sizes: Sequence[int]) -> int:
    """Return the rank that has these digits, the fastest first."""
    rank = 0
    for digit, size in zip(reversed(digits), reversed(sizes), strict=True):
        rank = rank * size + digit
    return rank


# --- 2. groups: let some digits run, and hold the others ---


@dataclass(frozen=True, slots=True)
class RankLayout:
    """Sizes by name, the fastest dimension first."""

    sizes: Mapping[str, int]

    @classmethod
    def parse(cls, order: str, **sizes: int) -> "RankLayout":
        """Return a layout of dimensions in the order of `tp-cp-ep-dp-pp` or its like.

        Raises:
            ValueError: a dimension of more than 1 rank that the order does not name.
        """
        names = order.split("-")
        if len(set(names)) < len(names):
            raise ValueError(f"order {order} names a dimension twice")
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"{name} {size} is below 1")
            if size > 1 and name not in names:
                raise ValueError(f"{name} {size} is not in the order {order}")
        return cls({name: sizes.get(name, 1) for name in names})

    @property
    def world_size(self) -> int:
        """Return how many ranks it has."""
        return math.prod(self.sizes.values())

    def place(self, rank: int) -> dict[str, int]:
        """Return where a rank is along each dimension."""
        digits = digits_of(rank, list(self.sizes.values()))
        return dict(zip(self.sizes, digits, strict=True))

    def groups(self, kind: str) -> list[list[int]]:
        """Return the groups along `dp`, or along several at once as `tp-cp`.

        Both the groups and the ranks of each are in the order of their numbers.
        """
        if unknown := set(kind.split("-")) - set(self.sizes):
            raise ValueError(f"no dimension {min(unknown)} in {'-'.join(self.sizes)}")
        free = set(kind.split("-"))
        found: dict[tuple[int, ...], list[int]] = {}
        for rank in range(self.world_size):
            place = self.place(rank)
            held = tuple(place[name] for name in self.sizes if name not in free)
            found.setdefault(held, []).append(rank)
        return list(found.values())


# --- 3. experts: another layout of the same ranks ---


def expert_layout(
    order: str, world_size: int, *, etp: int, ep: int, pp: int
) -> RankLayout:
    """Return the layout that expert layers have: data takes what is left.

    Both layouts must put the same ranks in a stage, or a stage would need its neighbour
    within a layer; with pp slowest in the order they do.
    """
    used = etp * ep * pp
    if world_size % used:
        raise ValueError(f"{world_size} ranks are not divisible by {used}")
    return RankLayout.parse(order, tp=etp, ep=ep, dp=world_size // used, pp=pp)


# --- 4. process groups ---


def new_groups(
    layout: RankLayout, kinds: Sequence[str], rank: int
) -> dict[str, dist.ProcessGroup]:
    """Return this rank's group of each kind; every rank makes all, in one order.

    A rank that left out those it is not in would wait in the wrong call: making a group
    is a collective of all ranks.
    """
    mine: dict[str, dist.ProcessGroup] = {}
    for kind, ranks in each_group(layout, kinds):
        group = dist.new_group(ranks)
        if rank in ranks:
            assert isinstance(group, dist.ProcessGroup)
            mine[kind] = group
    return mine


def each_group(
    layout: RankLayout, kinds: Sequence[str]
) -> Iterator[tuple[str, list[int]]]:
    """Yield all groups of all kinds, in the same order on every rank."""
    for kind in kinds:
        for ranks in layout.groups(kind):
            yield kind, ranks


if __name__ == "__main__":
    from mini_impls.demos.layout import main

    raise SystemExit(main())
