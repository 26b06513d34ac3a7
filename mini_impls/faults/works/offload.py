"""What `offload` is set to do: rows, an optimizer and activations on the host."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mini_impls import model, offload, offload_activations, offload_states
from mini_impls.demos.offload import unit_names
from mini_impls.faults.works.data_parallel import Trainee, train_data_parallel
from mini_impls.faults.works.measures import (
    CONFIG,
    STEPS,
    all_grads,
    apart_between_ranks,
    bytes_of,
    norm,
    state_of,
)
from mini_impls.launch import Rank
from mini_impls.model import build_model, compute_loss, make_batch

SLOW = 2e6
"""Bytes a second of a link on which what nobody waits for is not there yet."""


def build_states(rank: Rank, gpt: model.GPT) -> Trainee:
    """Return a model whose rows are on the host."""
    offloaded = offload_states.OffloadedModel(
        gpt, rank.group, offload.HostLink(rank.device), modules=unit_names(gpt)
    )
    optimizer = torch.optim.AdamW(gpt.parameters(), 3e-3)

    def held() -> dict[str, int]:
        whole = [padded for unit in offloaded.units for padded in unit.gathered]
        return {
            "shards": bytes_of(gpt.parameters()),
            "gathered parameters": bytes_of(whole),
            "optimizer state": bytes_of(state_of(optimizer)),
        }

    def full() -> dict[str, Tensor]:
        names = {id(p): name for name, p in gpt.named_parameters()}
        found = dict[str, Tensor]()
        for unit in offloaded.units:
            unit.unshard()
            pairs = zip(unit.shards, unit.wholes, strict=True)
            found |= {names[id(s)]: w.detach().clone() for s, w in pairs}
            unit.reshard()
        return found

    return Trainee(
        gpt, optimizer, all_grads(gpt), is_sharded=True, full=full, held=held
    )


def update_on_the_host(rank: Rank) -> dict[str, float]:
    """Train in two microbatches over a slow link, beside one process."""
    gpt, alone = build_model(CONFIG), build_model(CONFIG)
    link = offload.HostLink(rank.device, bytes_per_s=SLOW)
    optimizer = offload.OverlappedHostOptimizer(
        gpt.parameters(), torch.optim.AdamW, link, lr=3e-3
    )
    batches = [make_batch(CONFIG, step=step, batch_size=8) for step in range(STEPS)]
    losses = model.train_one_process(gpt, optimizer, batches, chunks=2)  # type: ignore[arg-type]
    apart_now = [p.detach().clone() for p in gpt.parameters()]
    link.close()
    theirs = torch.optim.AdamW(alone.parameters(), 3e-3)
    model.train_one_process(alone, theirs, batches, chunks=2)
    pairs = zip(apart_now, alone.parameters(), strict=True)
    return {
        "first loss": losses[0],
        "last loss": losses[-1],
        "apart from one process": max(
            (a - b.detach()).abs().max().item() for a, b in pairs
        ),
        "apart between ranks": apart_between_ranks(apart_now, rank.group),
    }


class LinkThatIsDone(offload.HostLink):
    """A link on which each copy is made before anything else goes on."""

    def start(self, *args: Any, **options: Any) -> offload.Copy:
        """Copy, and wait."""
        copy = super().start(*args, **options)
        copy.wait()
        return copy


def keep_activations_away(rank: Rank) -> dict[str, float]:
    """Take the gradients of one step, beside a model that keeps all it needs."""
    tokens, labels = make_batch(CONFIG, step=0, batch_size=8)
    losses, gradients = [], []
    for is_offloaded in (False, True):
        gpt = build_model(CONFIG)
        if is_offloaded:
            link = LinkThatIsDone(rank.device)
            activations = offload_activations.ActivationOffload(link, gpt.parameters())
            offload_activations.offload_layers(gpt.layers, activations, but_last=False)
        loss = compute_loss(gpt(tokens), labels)
        loss.backward()
        losses.append(loss.item())
        gradients.append([p.grad for p in gpt.parameters() if p.grad is not None])
    alone, ours = gradients
    apart = norm(a - b for a, b in zip(alone, ours, strict=True))
    return {
        "first loss": losses[1],
        "distance of the gradient from one process's": apart / norm(alone),
    }


WORKS = {
    "offload": lambda rank: train_data_parallel(rank, build_states),
    "offload, optimizer": update_on_the_host,
    "offload, activations": keep_activations_away,
}
