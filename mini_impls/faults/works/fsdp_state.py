"""What `fsdp_state` is set to do: a clipped step."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

from mini_impls import fsdp_state, model
from mini_impls.demos.fsdp_state import train_step
from mini_impls.faults.works.measures import CONFIG, STEPS, apart_between_ranks
from mini_impls.launch import Rank
from mini_impls.model import build_model, compute_loss


def train_clipped(rank: Rank) -> dict[str, float]:
    """Train on shards of rows, clipped by the norm of all gradients."""
    w = rank.world_size
    gpt, alone = build_model(CONFIG), build_model(CONFIG)
    shards = {
        name: fsdp_state.shard_rows(p, rank.group) for name, p in gpt.named_parameters()
    }
    optimizer = torch.optim.SGD([shard.param for shard in shards.values()], 0.1)
    one_process = torch.optim.SGD(alone.parameters(), 0.1)
    losses, ratio = [], 0.0
    for step in range(STEPS):
        batch = model.make_batch(CONFIG, step=step, batch_size=4 * w)
        loss, norm_here = train_step(
            gpt, shards, optimizer, batch, rank.group, max_norm=0.5
        )
        losses.append(loss)
        one_process.zero_grad()
        compute_loss(alone(batch[0]), batch[1]).backward()
        want = nn.utils.clip_grad_norm_(alone.parameters(), 0.5)
        one_process.step()
        ratio = ratio or norm_here / want.item()
    full = dict(alone.named_parameters())
    apart = max(
        (s.param - full[name][s.start : s.start + len(s.param)]).abs().max().item()
        for name, s in shards.items()
    )
    return {
        "first loss": losses[0],
        "last loss": losses[-1],
        "norm over one process's": ratio,
        "apart from one process": apart,
    }


def clip_some_replicated(rank: Rank) -> dict[str, float]:
    """Clip one gradient, of which matrices are cut by rows and vectors are whole."""
    gpt, alone = build_model(CONFIG), build_model(CONFIG)
    batch = model.make_batch(CONFIG, step=0, batch_size=8)
    for each in (gpt, alone):
        compute_loss(each(batch[0]), batch[1]).backward()
    want = nn.utils.clip_grad_norm_(alone.parameters(), 0.5)
    shards, replicated = [], []
    for param in gpt.parameters():
        assert param.grad is not None
        if param.dim() == 1:
            replicated.append(param)
            continue
        shard, grad = (
            fsdp_state.shard_rows(t, rank.group) for t in (param, param.grad)
        )
        shard.param.grad = grad.param.detach()
        shards.append(shard.param)
    norm = fsdp_state.clip_grad_norm_(shards, 0.5, rank.group, replicated=replicated)
    grads = [p.grad for p in replicated if p.grad is not None]
    return {
        "norm over one process's": norm.item() / want.item(),
        "apart between ranks": apart_between_ranks(grads, rank.group),
    }


def resume(rank: Rank) -> dict[str, float]:
    """Train, save, load into a new model, train on, beside one process."""
    w, half = rank.world_size, STEPS // 2
    batches = [model.make_batch(CONFIG, step=i, batch_size=4 * w) for i in range(STEPS)]
    alone = build_model(CONFIG)
    one_process = torch.optim.AdamW(alone.parameters(), 3e-3)
    model.train_one_process(alone, one_process, batches, chunks=w)
    folders = [tempfile.mkdtemp(prefix="resumed-") if rank.rank == 0 else ""]
    dist.broadcast_object_list(folders, group_src=0, group=rank.group)
    directory = Path(folders[0]) / "half"
    losses: list[float] = []
    for some in (batches[:half], batches[half:]):
        gpt = build_model(CONFIG)
        shards = {
            n: fsdp_state.shard_rows(p, rank.group) for n, p in gpt.named_parameters()
        }
        optimizer = torch.optim.AdamW([s.param for s in shards.values()], 3e-3)
        if directory.exists():
            fsdp_state.load_checkpoint(directory, shards, optimizer)
        losses = [
            train_step(gpt, shards, optimizer, batch, rank.group)[0] for batch in some
        ]
        if not directory.exists():
            fsdp_state.save_checkpoint(
                directory, shards, optimizer, rank.group, step=half
            )
    full = dict(alone.named_parameters())
    apart = max(
        (s.param - full[name][s.start : s.start + len(s.param)]).abs().max().item()
        for name, s in shards.items()
    )
    dist.barrier(rank.group)  # all have read it
    if rank.rank == 0:
        shutil.rmtree(folders[0])
    return {
        "first loss": losses[0],  # after the load
        "last loss": losses[-1],
        "apart from one process": apart,
    }


WORKS = {
    "fsdp_state, clipped": train_clipped,
    "fsdp_state, some replicated": clip_some_replicated,
    "fsdp_state, resumed": resume,
}
