"""What `sequence_parallel` is set to do: one batch, weights and tokens cut."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from mini_impls import model, sequence_parallel_model
from mini_impls.faults.works.measures import (
    CONFIG,
    STEPS,
    apart_between_ranks,
    mean_over_ranks,
    norm,
    share_that_agrees,
)
from mini_impls.launch import Rank
from mini_impls.model import GPTConfig, build_model, compute_loss


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


def train_without_dropout(rank: Rank) -> dict[str, float]:
    """Train, beside the gradients that one process has in the first step.

    Those of norms and row biases are compared: they are whole on every rank.
    """
    config = replace(CONFIG, num_query_groups=4)
    gpt, alone = build_model(config), build_model(config)
    names = {param: name for name, param in gpt.named_parameters()}
    tracker = sequence_parallel_model.model_parallel_manual_seed(
        11, rank.rank, torch.default_generator
    )
    partial = sequence_parallel_model.sequence_parallel(gpt, rank.group, tracker)
    optimizer = torch.optim.AdamW(gpt.parameters(), 3e-3)
    batches = [model.make_batch(config, step=i, batch_size=4) for i in range(STEPS)]

    def train(some: list[model.Batch]) -> list[float]:
        return sequence_parallel_model.train(gpt, optimizer, some, partial, rank.group)

    compute_loss(alone(batches[0][0]), batches[0][1]).backward()
    of_alone = dict(alone.named_parameters())
    losses = train(batches[:1])
    want = [g for p in partial if (g := of_alone[names[p]].grad) is not None]
    got = [p.grad for p in partial if p.grad is not None]
    apart = norm(a - b for a, b in zip(got, want, strict=True))
    losses += train(batches[1:])
    return {
        "first loss": mean_over_ranks(losses[0], rank.group),
        "last loss": mean_over_ranks(losses[-1], rank.group),
        "apart between ranks": apart_between_ranks(partial, rank.group),
        "gradient over one process's": norm(got) / norm(want),
        "distance of the gradient from one process's": apart / norm(want),
    }


WORKS = {
    "sequence_parallel": train_sequence_parallel,
    "sequence_parallel, no dropout": train_without_dropout,
}
