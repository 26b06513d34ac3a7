"""The collectives mini beside gloo's own: a training step that calls every one of them.

Rank 0 hands out the batch by a broadcast. After backward the gradients are one flat
tensor, cut into parts that are averaged in a way of their own each: all-reduced by
three algorithms, reduce-scattered and gathered, exchanged all-to-all and gathered. The
mini does so with sends and receives, the other side with one call into the backend.
Each has a process group of its own, so that the events of a step say what they are of.
"""

from collections.abc import Mapping

import torch
import torch.distributed as dist
from torch import Tensor, nn

from mini_impls.collectives_log import cost
from mini_impls.compare.sides import (
    Comparison,
    DataParallelSide,
    Formula,
    Formulas,
    SetPhase,
    Sides,
    Tolerance,
    trained,
)
from mini_impls.demos.collectives import ALGORITHMS, Collective
from mini_impls.launch import Rank
from mini_impls.model import Batch, build_model, make_batch
from readerkit.content.vocabulary import SideName

WAYS: Mapping[str, str] = {
    "broadcast": "tree_broadcast",
    "ring": "ring_all_reduce",
    "halving_doubling": "halving_doubling_all_reduce",
    "naive": "naive_all_reduce",
    "reduce_scatter": "ring_reduce_scatter",
    "all_to_all": "pairwise_all_to_all",
    "all_gather": "ring_all_gather",
}
"""Name of each group, and of the algorithm that the mini runs in it."""

ALL_REDUCES = ("ring", "halving_doubling", "naive")
PARTS = (*ALL_REDUCES, "reduce_scatter", "all_to_all")
"""How the parts of the gradients are averaged, in order."""


class CollectivesSide(DataParallelSide):
    """A side that trains data-parallel, by collectives of its own."""

    def __init__(
        self,
        calls: Mapping[str, Collective],
        groups: Mapping[str, dist.ProcessGroup],
        rank: Rank,
        module: nn.Module,
        learning_rate: float,
    ) -> None:
        optimizer = torch.optim.AdamW(module.parameters(), learning_rate)
        super().__init__(rank, module, module, optimizer)
        self.calls, self.groups = calls, groups

    def call(self, way: str, tensor: Tensor) -> Tensor:
        """Run a collective in its own group; the tensor may be overwritten."""
        return self.calls[way](tensor, self.groups[way])

    def step(self, batch: Batch, set_phase: SetPhase) -> float:
        """Get the batch from rank 0, then train on this rank's rows."""
        set_phase("forward")
        both = torch.stack(batch)
        if self.rank.rank != 0:
            both.fill_(-1)  # nothing of it is known here
        tokens, labels = self.call("broadcast", both)
        return super().step((tokens, labels), set_phase)

    def finish_gradients(self) -> None:
        """Average in place, each part in its own way."""
        grads = [p.grad for p in self.module.parameters() if p.grad is not None]
        flat = torch.cat([grad.flatten() for grad in grads])
        flat /= self.rank.world_size
        sizes = part_sizes(flat.numel(), self.rank.world_size)
        parts = dict(zip(PARTS, flat.split(sizes), strict=True))
        for way in ALL_REDUCES:
            self.call(way, parts[way])
        chunk = self.call("reduce_scatter", parts["reduce_scatter"].clone())
        self.gather(parts["reduce_scatter"], chunk)
        received = self.call("all_to_all", parts["all_to_all"])
        chunk = received.view(self.rank.world_size, -1).sum(0)
        self.gather(parts["all_to_all"], chunk)
        pieces = flat.split([grad.numel() for grad in grads])
        for grad, piece in zip(grads, pieces, strict=True):
            grad.copy_(piece.view_as(grad))

    def gather(self, part: Tensor, chunk: Tensor) -> None:
        """Fill a part with the chunks that the ranks have reduced."""
        part.chunk(self.rank.world_size)[self.rank.rank].copy_(chunk)
        self.call("all_gather", part)


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

    def elements(way: str, numel: int, of_rank: int) -> int:
        return cost(WAYS[way], numel, of_rank, world_size)[1]

    even = {
        **{way: (way, sizes[way]) for way in PARTS if way != "ring"},
        "all_gather": ("all_gather", sizes["reduce_scatter"]),
        "all_gather again": ("all_gather", sizes["all_to_all"]),
    }
    same = {what: 4 * elements(*how, rank) for what, how in even.items()}
    right = (rank + 1) % world_size  # chunks move to the left
    sent = {
        "broadcast": elements("broadcast", batch_bytes, rank),
        "ring": 4 * elements("ring", sizes["ring"], rank),
        **same,
    }
    received = {
        "broadcast": batch_bytes if rank != 0 else 0,
        "ring": 4 * elements("ring", sizes["ring"], right),
        **same,
    }
    return {"send": summed(sent), "recv": summed(received)}


def summed(parts: Mapping[str, int]) -> Formula:
    """Return a sum that names its parts."""
    text = ", ".join(f"{what} {number:,}" for what, number in parts.items())
    return Formula(sum(parts.values()), f"B by collectives_log.cost: {text}")


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
    groups = {way: dist.new_group(list(range(w))) for way in WAYS}
    calls = {way: ALGORITHMS[name] for way, name in WAYS.items()}
    ours = build_model(comparison.config).to(rank.device)
    own = {way: mini for way, (mini, _) in calls.items()}
    mini = CollectivesSide(own, groups, rank, ours, lr)
    theirs = build_model(comparison.config).to(rank.device)
    backends = {way: backend for way, (_, backend) in calls.items()}
    upstream = CollectivesSide(backends, groups, rank, theirs, lr)
    params = list(ours.parameters())
    rows = comparison.rows_per_rank * w
    batch = make_batch(comparison.config, step=0, batch_size=rows)
    batch_bytes = sum(tensor.nbytes for tensor in batch)
    numel = sum(p.numel() for p in params)
    sizes = dict(zip(PARTS, part_sizes(numel, w), strict=True))
    kept = trained(params)
    payload: Mapping[SideName, Mapping[str, Formula]] = {
        "mini": mini_formulas(batch_bytes, sizes, rank.rank, w),
        "upstream": backend_formulas(batch_bytes, sizes),
    }
    formulas = Formulas(payload, {"mini": kept, "upstream": kept})
    names = {group.group_name: name for name, group in groups.items()}
    return Sides(mini, upstream, names, formulas)


COMPARISONS = (
    Comparison(
        mini="collectives",
        upstream="gloo",
        build=build,
        tolerance=Tolerance(
            1e-4, "the algorithms add in other orders, and AdamW divides"
        ),
        of_two_ranks=Tolerance(0.0, "two ranks: a + b = b + a"),
    ),
)
