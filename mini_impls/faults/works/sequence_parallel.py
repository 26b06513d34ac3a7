"""What `sequence_parallel` is set to do: one batch, weights and tokens cut."""

from __future__ import annotations

import torch
from torch import Tensor

from mini_impls import model, sequence_parallel_model
from mini_impls.faults.works.measures import (
    STEPS,
    apart_between_ranks,
    mean_over_ranks,
    share_that_agrees,
)
from mini_impls.launch import Rank
from mini_impls.model import GPTConfig, build_model


def train_sequence_parallel(rank: Rank) -> dict[str, float]:
    """Train a model whose tokens are cut too, with dropout."""
    config = GPTConfig(
        hidden_size=32, ffn_hidden_size=64, num_query_groups=4, hidden_dropout=0.2
    )
    gpt = build_model(config)
    tracker = sequence_parallel_model.model_parallel_manual_seed(
        11, rank.rank, torch.default_generator
    )
    partial = sequence_parallel_model.sequence_parallel(gpt, rank.group, tracker)
    masks: list[Tensor] = []
    gpt.layers[0].get_submodule("hidden_dropout").register_forward_hook(
        lambda module, args, out: masks.append((out == 0).to(torch.uint8))
    )
    optimizer = torch.optim.AdamW(gpt.parameters(), 3e-3)
    batches = [model.make_batch(config, step=i, batch_size=4) for i in range(STEPS)]
    losses = sequence_parallel_model.train(gpt, optimizer, batches, partial, rank.group)
    return {
        "first loss": mean_over_ranks(losses[0], rank.group),
        "last loss": mean_over_ranks(losses[-1], rank.group),
        "apart between ranks": apart_between_ranks(partial, rank.group),
        "share of dropout that agrees between ranks": share_that_agrees(
            masks[0], rank.group
        ),
    }


WORKS = {
    "sequence_parallel": train_sequence_parallel,
}
