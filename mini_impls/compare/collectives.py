"""The collectives mini beside gloo's own: one training step of plain data parallelism.

Both average the gradients after backward, one flat tensor; the mini's ring is made of
sends and receives, the other is one call into the backend.
"""

from collections.abc import Callable, Mapping

import torch
import torch.distributed as dist
from torch import Tensor, nn

from mini_impls import collectives
from mini_impls.compare.sides import (
    Comparison,
    DataParallelSide,
    Formula,
    Formulas,
    Sides,
    Tolerance,
    adamw_state,
    all_bytes,
)
from mini_impls.launch import Rank
from mini_impls.model import build_model
from readerkit.records import Category, SideName

AllReduce = Callable[[Tensor, dist.ProcessGroup], None]


class ReducingSide(DataParallelSide):
    """A side that averages all gradients at once, by an all-reduce of its own."""

    def __init__(
        self,
        all_reduce: AllReduce,
        rank: Rank,
        module: nn.Module,
        learning_rate: float,
    ) -> None:
        optimizer = torch.optim.AdamW(module.parameters(), learning_rate)
        super().__init__(rank, module, module, optimizer)
        self.all_reduce = all_reduce

    def finish_gradients(self) -> None:
        """Average in place."""
        grads = [p.grad for p in self.module.parameters() if p.grad is not None]
        flat = torch.cat([grad.flatten() for grad in grads])
        flat /= self.rank.world_size
        self.all_reduce(flat, self.rank.group)
        pieces = flat.split([grad.numel() for grad in grads])
        for grad, piece in zip(grads, pieces, strict=True):
            grad.copy_(piece.view_as(grad))


def backend_all_reduce(tensor: Tensor, group: dist.ProcessGroup) -> None:
    """All-reduce as the backend does it."""
    dist.all_reduce(tensor, group=group)


def build(rank: Rank, comparison: Comparison) -> Sides:
    """Return the mini's ring and the backend's all-reduce."""
    lr = comparison.learning_rate
    ours = build_model(comparison.config).to(rank.device)
    mini = ReducingSide(collectives.ring_all_reduce, rank, ours, lr)
    theirs = build_model(comparison.config).to(rank.device)
    upstream = ReducingSide(backend_all_reduce, rank, theirs, lr)
    params = list(ours.parameters())
    numel, w = sum(p.numel() for p in params), rank.world_size
    rounds, sent = collectives.cost("ring_all_reduce", numel, rank.rank, w)
    _, received = collectives.cost("ring_all_reduce", numel, (rank.rank - 1) % w, w)
    text = "elements in {} rounds x 4 B, by collectives.cost"
    kept: dict[Category, Formula] = {
        "parameters": all_bytes(params, "parameters"),
        "gradients": all_bytes(params, "gradients"),
        "optimizer state": adamw_state(params),
    }
    ring = {
        "send": Formula(4 * sent, f"{sent:,} {text.format(rounds)}"),
        "recv": Formula(4 * received, f"{received:,} {text.format(rounds)}"),
    }
    payload: Mapping[SideName, Mapping[str, Formula]] = {
        "mini": ring,
        "upstream": {"all_reduce": all_bytes(params, "gradients")},
    }
    formulas = Formulas(payload, {"mini": kept, "upstream": kept})
    return Sides(mini, upstream, {rank.group.group_name: "dp"}, formulas)


def tolerance(world_size: int) -> Tolerance:
    """Return zero for two ranks, whose sums have one order."""
    if world_size == 2:
        return Tolerance(0.0, "two ranks: a + b = b + a")
    return Tolerance(1e-4, "the two rings start each chunk at another rank")


COMPARISONS = (
    Comparison(
        mini="collectives",
        upstream="gloo",
        build=build,
        tolerance=tolerance,
    ),
)
