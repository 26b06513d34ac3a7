"""What `zero` is set to do."""

from __future__ import annotations

import torch
from torch import Tensor

from mini_impls import model, zero
from mini_impls.demos.zero import bytes_held
from mini_impls.faults.works.data_parallel import Trainee, train_data_parallel
from mini_impls.faults.works.measures import all_grads
from mini_impls.launch import Rank


def build_zero(rank: Rank, gpt: model.GPT) -> Trainee:
    """Return stage 1."""
    names = {param: name for name, param in gpt.named_parameters()}
    optimizer = zero.ZeroStage1(
        gpt.parameters(), torch.optim.AdamW, rank.group, lr=3e-3
    )

    def full() -> dict[str, Tensor]:
        return {names[p]: t for p, t in optimizer.full_parameters().items()}

    return Trainee(
        gpt,
        optimizer,
        all_grads(gpt),
        is_sharded=False,
        full=full,
        held=lambda: bytes_held(optimizer),
    )


WORKS = {
    "zero": lambda rank: train_data_parallel(rank, build_zero),
}
