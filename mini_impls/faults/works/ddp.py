"""What `ddp` is set to do."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mini_impls import ddp, model
from mini_impls.faults.works.data_parallel import Trainee, train_data_parallel
from mini_impls.faults.works.measures import all_grads, bytes_of, norm, state_of
from mini_impls.launch import Rank

KB = 1 / 1024  # of a MiB


def build_ddp(rank: Rank, gpt: model.GPT) -> Trainee:
    """Return the bucketed wrapper around a model."""
    cap = 12 * KB
    wrapped = ddp.DistributedDataParallel(
        gpt, rank.group, bucket_cap_mb=cap, first_bucket_mb=cap
    )
    optimizer = torch.optim.AdamW(gpt.parameters(), 3e-3)

    return Trainee(
        wrapped,
        optimizer,
        all_grads(gpt),
        is_sharded=False,
        full=lambda: dict(gpt.named_parameters()),
        held=lambda: {
            "parameters": bytes_of(gpt.parameters()),
            "gradients": bytes_of(bucket.grad_data for bucket in wrapped.buckets),
            "optimizer state": bytes_of(state_of(optimizer)),
        },
    )


class Branch(nn.Module):
    """A part that only some ranks use."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.always, self.sometimes = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor, use: bool) -> Tensor:
        """Go through the second layer where `use` says so."""
        x = self.always(x)
        return self.sometimes(x) if use else x


def unused_on_rank_0(rank: Rank) -> dict[str, float]:
    """One backward in which rank 0 leaves a layer out, and nothing after it."""
    module = Branch()
    wrapped = ddp.DistributedDataParallel(
        module, rank.group, bucket_cap_mb=0, find_unused_parameters=True
    )
    wrapped(torch.ones(2, 4), rank.rank > 0).sum().backward()
    grads = [p.grad for p in module.parameters() if p.grad is not None]
    return {"gradients": float(len(grads)), "norm of gradients": norm(grads)}


WORKS = {
    "ddp": lambda rank: train_data_parallel(rank, build_ddp),
    "ddp, a layer unused on rank 0": unused_on_rank_0,
}
