"""What `recompute` is set to do: one step whose layers are run again, with dropout."""

from __future__ import annotations

from dataclasses import replace

import torch

from mini_impls.faults.works.measures import CONFIG, norm
from mini_impls.launch import Rank
from mini_impls.model import build_model, compute_loss, make_batch
from mini_impls.recompute import RandomStreams
from mini_impls.recompute_model import Recompute, RecomputedGPT

DROPPED = 0.2


def run_layers_again(rank: Rank, plan: Recompute) -> dict[str, float]:
    """Take the gradients of one step, beside a process that keeps everything.

    Every rank does the same work with whole weights: what differs is who keeps what.
    """
    config = replace(CONFIG, hidden_dropout=DROPPED)
    tokens, labels = make_batch(config, step=0, batch_size=4)
    losses, gradients = [], []
    for each in (Recompute(), plan):
        streams = RandomStreams(rank.device)
        streams.manual_seed(5, tp_rank=0)
        gpt = RecomputedGPT(
            build_model(config), each, streams, rank.group, attention_dropout=DROPPED
        )
        loss = compute_loss(gpt(tokens), labels)
        loss.backward()
        params = list(gpt.parameters())
        losses.append(loss.item())
        gradients.append(
            [torch.zeros_like(p) if p.grad is None else p.grad for p in params]
        )
    alone, ours = gradients
    apart = norm(a - b for a, b in zip(alone, ours, strict=True))
    return {
        "first loss": losses[1],
        "distance of the gradient from one process's": apart / norm(alone),
    }


SHARDED = Recompute("full", distribute_saved_activations=True)
WORKS = {
    "recompute": lambda rank: run_layers_again(rank, SHARDED),
}
