"""The collectives mini beside gloo's own: a training step that calls every one of them.

Rank 0 hands out the batch by a broadcast. After backward the gradients are one flat
tensor, cut into parts that are averaged in a way of their own each: all-reduced by
three algorithms, reduce-scattered and gathered, exchanged all-to-all and gathered. The
mini does so with sends and receives, the other side with one call into the backend.
Each has a process group of its own, so that the events of a step say what they are of.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

from mini_impls import collectives
from mini_impls.compare.sides import (
    Comparison,
    DataParallelSide,
    Formula,
    Formulas,
    SetPhase,
    Sides,
    Tolerance,
    adamw_state,
    all_bytes,
)
from mini_impls.launch import Rank
from mini_impls.model import Batch, build_model, make_batch
from readerkit.records import Category, SideName

Group = dist.ProcessGroup
AllReduce = Callable[[Tensor, Group], None]

ALL_REDUCES: Mapping[str, AllReduce] = {
    "ring": collectives.ring_all_reduce,
    "halving_doubling": collectives.halving_doubling_all_reduce,
    "naive": collectives.naive_all_reduce,
}
PARTS = (*ALL_REDUCES, "reduce_scatter", "all_to_all")
"""How the parts of the gradients are averaged, in order."""
GROUPS = ("broadcast", *PARTS, "all_gather")


@dataclass(frozen=True, slots=True)
class Operations:
    """The collectives as one side has them; chunk r is the r-th of as many as ranks."""

    broadcast: Callable[[Tensor, int, Group], None]
    all_reduces: Mapping[str, AllReduce]
    reduce_scatter: Callable[[Tensor, Group], Tensor]
    """Returns this rank's chunk, reduced."""
    all_gather: Callable[[Tensor, Tensor, Group], None]
    """Fills the first tensor with the chunks that all ranks have."""
    all_to_all: Callable[[Tensor, Group], Tensor]
    """Returns what all ranks have as this rank's chunk."""


# --- the two sides ---


def ring_reduce_scatter(tensor: Tensor, group: Group) -> Tensor:
    """Reduce-scatter by the mini."""
    return collectives.ring_reduce_scatter(tensor.chunk(group.size()), group)


def ring_all_gather(into: Tensor, chunk: Tensor, group: Group) -> None:
    """All-gather by the mini."""
    chunks = into.chunk(group.size())
    chunks[group.rank()].copy_(chunk)
    collectives.ring_all_gather(chunks, group)


def pairwise_all_to_all(tensor: Tensor, group: Group) -> Tensor:
    """All-to-all by the mini."""
    received, w = torch.empty_like(tensor), group.size()
    collectives.pairwise_all_to_all(received.chunk(w), tensor.chunk(w), group)
    return received


def backend_broadcast(tensor: Tensor, src: int, group: Group) -> None:
    """Broadcast as the backend does it."""
    dist.broadcast(tensor, group_src=src, group=group)


def backend_all_reduce(tensor: Tensor, group: Group) -> None:
    """All-reduce as the backend does it."""
    dist.all_reduce(tensor, group=group)


def backend_reduce_scatter(tensor: Tensor, group: Group) -> Tensor:
    """Reduce-scatter as the backend does it."""
    chunk = tensor.new_empty(tensor.numel() // group.size())
    dist.reduce_scatter_single(chunk, tensor, group=group)
    return chunk


def backend_all_gather(into: Tensor, chunk: Tensor, group: Group) -> None:
    """All-gather as the backend does it."""
    dist.all_gather_single(into, chunk, group=group)


def backend_all_to_all(tensor: Tensor, group: Group) -> Tensor:
    """All-to-all as the backend does it."""
    received = torch.empty_like(tensor)
    dist.all_to_all_single(received, tensor, group=group)
    return received


MINI = Operations(
    collectives.tree_broadcast,
    ALL_REDUCES,
    ring_reduce_scatter,
    ring_all_gather,
    pairwise_all_to_all,
)
BACKEND = Operations(
    backend_broadcast,
    dict.fromkeys(ALL_REDUCES, backend_all_reduce),
    backend_reduce_scatter,
    backend_all_gather,
    backend_all_to_all,
)


class CollectivesSide(DataParallelSide):
    """A side that trains data-parallel, by collectives of its own."""

    def __init__(
        self,
        operations: Operations,
        groups: Mapping[str, Group],
        rank: Rank,
        module: nn.Module,
        learning_rate: float,
    ) -> None:
        optimizer = torch.optim.AdamW(module.parameters(), learning_rate)
        super().__init__(rank, module, module, optimizer)
        self.operations, self.groups = operations, groups

    def step(self, batch: Batch, set_phase: SetPhase) -> float:
        """Get the batch from rank 0, then train on this rank's rows."""
        set_phase("forward")
        both = torch.stack(batch)
        if self.rank.rank != 0:
            both.fill_(-1)  # nothing of it is known here
        self.operations.broadcast(both, 0, self.groups["broadcast"])
        tokens, labels = both
        return super().step((tokens, labels), set_phase)

    def finish_gradients(self) -> None:
        """Average in place, each part in its own way."""
        grads = [p.grad for p in self.module.parameters() if p.grad is not None]
        flat = torch.cat([grad.flatten() for grad in grads])
        flat /= self.rank.world_size
        sizes = part_sizes(flat.numel(), self.rank.world_size)
        parts = dict(zip(PARTS, flat.split(sizes), strict=True))
        for name, all_reduce in self.operations.all_reduces.items():
            all_reduce(parts[name], self.groups[name])
        self.reduce_scatter_and_gather(parts["reduce_scatter"])
        self.exchange_and_gather(parts["all_to_all"])
        pieces = flat.split([grad.numel() for grad in grads])
        for grad, piece in zip(grads, pieces, strict=True):
            grad.copy_(piece.view_as(grad))

    def reduce_scatter_and_gather(self, part: Tensor) -> None:
        """All-reduce in two halves."""
        group = self.groups["reduce_scatter"]
        chunk = self.operations.reduce_scatter(part.clone(), group)
        self.operations.all_gather(part, chunk, self.groups["all_gather"])

    def exchange_and_gather(self, part: Tensor) -> None:
        """All-reduce in two halves, the first of them without a ring."""
        received = self.operations.all_to_all(part, self.groups["all_to_all"])
        chunk = received.view(self.rank.world_size, -1).sum(0)
        self.operations.all_gather(part, chunk, self.groups["all_gather"])


def part_sizes(numel: int, world_size: int) -> list[int]:
    """Return how many elements are averaged in each way.

    All but the ring's part can be cut evenly, which the backend asks for, also among
    the largest power of two of the ranks; so what a rank receives there is as much as
    it sends.
    """
    even = world_size * (1 << (world_size.bit_length() - 1))
    size = numel // len(PARTS) // even * even
    return [numel - (len(PARTS) - 1) * size, *[size] * (len(PARTS) - 1)]


# --- what should be sent ---


def mini_formulas(
    batch_bytes: int, sizes: Mapping[str, int], rank: int, world_size: int
) -> dict[str, Formula]:
    """Return what a rank sends and receives, algorithm by algorithm."""

    def elements(name: str, numel: int, of_rank: int) -> int:
        return collectives.cost(name, numel, of_rank, world_size)[1]

    even = {
        "halving-doubling": ("halving_doubling_all_reduce", sizes["halving_doubling"]),
        "naive": ("naive_all_reduce", sizes["naive"]),
        "reduce-scatter": ("ring_reduce_scatter", sizes["reduce_scatter"]),
        "all-to-all": ("pairwise_all_to_all", sizes["all_to_all"]),
        "all-gather": ("ring_all_gather", sizes["reduce_scatter"]),
        "all-gather again": ("ring_all_gather", sizes["all_to_all"]),
    }
    same = {what: 4 * elements(*how, rank) for what, how in even.items()}
    right = (rank + 1) % world_size  # chunks move to the left
    sent = {
        "broadcast": elements("tree_broadcast", batch_bytes, rank),
        "ring": 4 * elements("ring_all_reduce", sizes["ring"], rank),
        **same,
    }
    received = {
        "broadcast": batch_bytes if rank != 0 else 0,
        "ring": 4 * elements("ring_all_reduce", sizes["ring"], right),
        **same,
    }
    return {"send": summed(sent), "recv": summed(received)}


def summed(parts: Mapping[str, int]) -> Formula:
    """Return a sum that names its parts."""
    text = ", ".join(f"{what} {number:,}" for what, number in parts.items())
    return Formula(sum(parts.values()), f"by collectives.cost: {text} B")


def backend_formulas(batch_bytes: int, sizes: Mapping[str, int]) -> dict[str, Formula]:
    """Return what is handed to each of the backend's collectives."""
    reduced = {name: 4 * sizes[name] for name in ALL_REDUCES}
    text = " + ".join(f"{number:,}" for number in reduced.values())
    scattered, exchanged = 4 * sizes["reduce_scatter"], 4 * sizes["all_to_all"]
    return {
        "broadcast": Formula(batch_bytes, f"{batch_bytes:,} B of tokens and labels"),
        "all_reduce": Formula(sum(reduced.values()), f"{text} B of gradients"),
        "reduce_scatter": Formula(scattered, f"{scattered:,} B of gradients"),
        "all_to_all": Formula(exchanged, f"{exchanged:,} B of gradients"),
        "all_gather": Formula(
            scattered + exchanged, f"{scattered:,} + {exchanged:,} B of averages"
        ),
    }


def build(rank: Rank, comparison: Comparison) -> Sides:
    """Return the mini's collectives and the backend's."""
    lr, w = comparison.learning_rate, rank.world_size
    groups = {name: dist.new_group(list(range(w))) for name in GROUPS}
    ours = build_model(comparison.config).to(rank.device)
    mini = CollectivesSide(MINI, groups, rank, ours, lr)
    theirs = build_model(comparison.config).to(rank.device)
    upstream = CollectivesSide(BACKEND, groups, rank, theirs, lr)
    params = list(ours.parameters())
    rows = comparison.rows_per_rank * w
    batch = make_batch(comparison.config, step=0, batch_size=rows)
    batch_bytes = sum(tensor.nbytes for tensor in batch)
    numel = sum(p.numel() for p in params)
    sizes = dict(zip(PARTS, part_sizes(numel, w), strict=True))
    kept: dict[Category, Formula] = {
        "parameters": all_bytes(params, "parameters"),
        "gradients": all_bytes(params, "gradients"),
        "optimizer state": adamw_state(params),
    }
    payload: Mapping[SideName, Mapping[str, Formula]] = {
        "mini": mini_formulas(batch_bytes, sizes, rank.rank, w),
        "upstream": backend_formulas(batch_bytes, sizes),
    }
    formulas = Formulas(payload, {"mini": kept, "upstream": kept})
    names = {group.group_name: name for name, group in groups.items()}
    return Sides(mini, upstream, names, formulas)


def tolerance(world_size: int) -> Tolerance:
    """Return zero for two ranks, whose sums have one order."""
    if world_size == 2:
        return Tolerance(0.0, "two ranks: a + b = b + a")
    return Tolerance(1e-4, "the algorithms add in other orders, and AdamW divides")


COMPARISONS = (
    Comparison(
        mini="collectives",
        upstream="gloo",
        build=build,
        tolerance=tolerance,
    ),
)
