"""The plan of a checkpoint: which rank writes which box, and what a reader needs of it.

A tensor is known by its name and its size, whoever holds it; a rank holds boxes of it.
Plans are values: every rank makes one of what it holds, one place turns all of them
into who writes what, and nothing here sends, reads or writes.

Follows:
- pytorch/pytorch: torch/distributed/checkpoint/default_planner.py
- pytorch/pytorch: torch/distributed/checkpoint/_dedup_save_plans.py
- pytorch/pytorch: torch/distributed/checkpoint/planner_helpers.py (overlapping boxes)

Leaves out:
- plans kept from one save to the next, and only what changed of them sent
- a sweep over sorted boxes: here each box is held against each other one
- tensors nested in dicts and lists, and objects: a state is tensors by their names
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torch import Tensor

# Dimension letters: W for world_size; a tensor of size (N, M) is held as boxes (n, m).


@dataclass(frozen=True, slots=True)
class TensorBox:
    """The part of a tensor from `offsets` on, so long in each dimension."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]

    def numel(self) -> int:
        """Return how many elements it has: one, where there is no dimension."""
        return math.prod(self.sizes)

    def overlap(self, other: "TensorBox") -> "TensorBox | None":
        """Return what two boxes of one tensor share, None where they share nothing."""
        ours = [o + s for o, s in zip(self.offsets, self.sizes, strict=True)]
        theirs = [o + s for o, s in zip(other.offsets, other.sizes, strict=True)]
        starts = tuple(map(max, self.offsets, other.offsets))
        stops = tuple(map(min, ours, theirs))
        if any(start >= stop for start, stop in zip(starts, stops, strict=True)):
            return None
        sizes = tuple(b - a for a, b in zip(starts, stops, strict=True))
        return TensorBox(starts, sizes)

    def is_within(self, size: tuple[int, ...]) -> bool:
        """Say whether a tensor of this size has all of it."""
        ends = [o + s for o, s in zip(self.offsets, self.sizes, strict=True)]
        return min((0, *self.offsets, *self.sizes)) == 0 and all(
            end <= whole for end, whole in zip(ends, size, strict=True)
        )

    def cut_out_of(self, data: Tensor, held: "TensorBox") -> Tensor:
        """Return these elements of the tensor whose box `held` is; a view."""
        for dim, length in enumerate(self.sizes):
            data = data.narrow(dim, self.offsets[dim] - held.offsets[dim], length)
        return data  # (n, m)


@dataclass(frozen=True, slots=True)
class HeldTensor:
    """What one rank holds of a tensor of this size; others may hold the very same."""

    data: Tensor
    offsets: tuple[int, ...]
    size: tuple[int, ...]

    def box(self) -> TensorBox:
        """Return where in the tensor it is."""
        return TensorBox(self.offsets, tuple(self.data.shape))


Place = tuple[str, TensorBox]
"""The name of a tensor and a box of it: what two ranks hold alike is one place."""


@dataclass(frozen=True, slots=True)
class WriteItem:
    """One box that a rank means to write."""

    name: str
    box: TensorBox
    size: tuple[int, ...]
    dtype: str
    element_bytes: int

    def place(self) -> Place:
        """Return the name and the box."""
        return self.name, self.box

    def bytes(self) -> int:
        """Return how many bytes the file grows by."""
        return self.box.numel() * self.element_bytes


SavePlan = list[WriteItem]


# --- 1. what one rank would write ---


def create_local_plan(state: Mapping[str, HeldTensor]) -> SavePlan:
    """Return an item for each tensor that this rank holds a part of."""
    return [
        WriteItem(
            name,
            held.box(),
            held.size,
            str(held.data.dtype).removeprefix("torch."),
            held.data.element_size(),
        )
        for name, held in state.items()
    ]


# --- 2. who writes what several ranks hold ---


def dedup_save_plans(
    all_plans: list[SavePlan], *, save_to_lowest_rank: bool = False
) -> list[SavePlan]:
    """Return the W plans, each place in one of them alone.

    Plain: the lowest rank that holds it, so rank 0 writes every replica and the others
    wait for it. Otherwise the one that has the fewest bytes to write so far.

         held      rank 0: A B C   rank 1: A B C     (A, B and C equally large)
         lowest    rank 0: A B C   rank 1: -
         fewest    rank 0: A C     rank 1: B

    So far: as the places stand in the plans, rank 0's first. What only a later rank
    holds is not counted when the replicas are given away, and comes on top of them.
    """
    holders: dict[Place, list[int]] = {}
    bytes_of: dict[Place, int] = {}
    for rank, plan in enumerate(all_plans):
        for item in plan:
            holders.setdefault(item.place(), []).append(rank)
            bytes_of[item.place()] = item.bytes()
    to_write = [0] * len(all_plans)
    writer: dict[Place, int] = {}
    for place, ranks in holders.items():
        least = min(ranks, key=lambda rank: to_write[rank])  # of equals the lowest rank
        writer[place] = min(ranks) if save_to_lowest_rank else least
        to_write[writer[place]] += bytes_of[place] or 1
    return [
        [item for item in plan if writer[item.place()] == rank]
        for rank, plan in enumerate(all_plans)
    ]


# --- 3. together they must be every element, once ---


def check_global_plan(all_plans: list[SavePlan]) -> None:
    """Hold the boxes of all plans against the tensors that they are parts of.

    Raises:
        ValueError: each tensor that has a box outside of it, two that overlap, an
            element that nobody writes, or another size or type on another rank.
    """
    items: dict[str, list[WriteItem]] = {}
    for plan in all_plans:
        for item in plan:
            items.setdefault(item.name, []).append(item)
    faults = [f"{name}: {text}" for name in items for text in _faults_of(items[name])]
    if faults:
        raise ValueError("ranks do not hold one state: " + "; ".join(faults))


def _faults_of(items: list[WriteItem]) -> Iterator[str]:
    first = items[0]
    for item in items:
        if (item.size, item.dtype) != (first.size, first.dtype):
            yield (
                f"{item.size} of {item.dtype} on one rank, "
                f"{first.size} of {first.dtype} on another"
            )
            return
        if not item.box.is_within(item.size):
            yield f"{item.box} is not within {item.size}"
            return
    for i, item in enumerate(items):
        for other in items[:i]:
            if item.box.overlap(other.box):
                yield f"{other.box} and {item.box} overlap"
    # No box is outside and no two overlap: with the volume right they fill the tensor.
    covered, whole = sum(item.box.numel() for item in items), math.prod(first.size)
    if covered < whole:
        yield f"{covered} of its {whole} elements are written"


# --- 4. what a reader needs: the overlaps of what it holds with what was written ---


@dataclass(frozen=True, slots=True)
class ReadItem:
    """A part of one written box that goes into a tensor held here."""

    name: str
    part: TensorBox
    stored: TensorBox


def create_read_items(
    state: Mapping[str, HeldTensor], stored: Mapping[str, list[TensorBox]]
) -> list[ReadItem]:
    """Return what fills the state, from whichever boxes were written.

    Neither the number of ranks nor the dimension that was cut has to be the one of the
    save: rows that two ranks wrote are columns on three.

         written   0 0 0 0      needed   0 1 2 2      rank 2 reads two columns
                   1 1 1 1               0 1 2 2      of each of both files

    Raises:
        ValueError: the checkpoint lacks a tensor, or a part of one.
    """
    reads = []
    for name, held in state.items():
        if name not in stored:
            raise ValueError(f"{name} is not in the checkpoint")
        found = [(held.box().overlap(box), box) for box in stored[name]]
        parts = [ReadItem(name, part, box) for part, box in found if part is not None]
        due, got = held.box().numel(), sum(item.part.numel() for item in parts)
        if got != due:
            raise ValueError(f"{name}: the checkpoint has {got} of {due} elements here")
        reads += parts
    return reads
