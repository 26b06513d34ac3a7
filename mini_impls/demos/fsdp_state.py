"""Sharded training saved half-way and resumed, beside one process."""

import argparse
import contextlib
import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.func import functional_call

from mini_impls import launch
from mini_impls.demos.expected import data_parallel, replicated
from mini_impls.demos.formulas import get_gathered_once_traffic
from mini_impls.demos.full_disk import try_disk
from mini_impls.demos.training import counted, train_alone
from mini_impls.fsdp_state import (
    Shard,
    clip_grad_norm_,
    load_checkpoint,
    save_checkpoint,
    shard_rows,
)
from mini_impls.model import (
    build_model,
    compute_loss,
    shard_batch,
)

ROWS = 8
"""Sequences of each rank."""


def train_step(
    model: nn.Module,
    shards: Mapping[str, Shard],
    optimizer: torch.optim.Optimizer,
    batch: tuple[Tensor, Tensor],
    group: dist.ProcessGroup,
    *,
    max_norm: float = math.inf,
) -> tuple[float, float]:
    """Gather all, run, reduce all; return the mean loss and the norm of gradients."""
    world_size = group.size()
    whole = {}
    for name, shard in shards.items():
        chunk = -(-shard.rows // world_size)  # all ranks must send equally much
        padded = shard.param.new_zeros(
            chunk, *shard.param.shape[1:], requires_grad=False
        )
        padded[: len(shard.param)] = shard.param.detach()
        full = padded.new_empty(world_size * len(padded), *padded.shape[1:])
        dist.all_gather_single(full, padded, group=group)
        whole[name] = full[: shard.rows].clone().requires_grad_()
    tokens, labels = shard_batch(batch, rank=group.rank(), world_size=world_size)
    loss = compute_loss(functional_call(model, whole, (tokens,)), labels)
    loss.backward()
    for name, shard in shards.items():
        grad = whole[name].grad
        assert grad is not None
        chunk = -(-shard.rows // world_size)
        padded = grad.new_zeros(world_size * chunk, *grad.shape[1:])
        padded[: len(grad)] = grad / world_size
        mine = padded.new_empty(chunk, *grad.shape[1:])
        dist.reduce_scatter_single(mine, padded, group=group)
        shard.param.grad = mine[: len(shard.param)]
    norm = clip_grad_norm_([s.param for s in shards.values()], max_norm, group)
    optimizer.step()
    mean = loss.detach() / world_size
    dist.all_reduce(mean, group=group)
    return mean.item(), norm.item()


def demo(rank: launch.Rank, args: argparse.Namespace) -> None:
    """Train, save half-way, resume from the file, and end where one process ends."""
    temporary = tempfile.mkdtemp(prefix="fsdp-state-") if rank.rank == 0 else ""
    paths = [temporary]
    dist.broadcast_object_list(paths, group_src=0, group=rank.group)
    try:
        train(rank, args, Path(paths[0]) / "step")
    finally:
        if temporary:
            shutil.rmtree(temporary)


def train(rank: launch.Rank, args: argparse.Namespace, directory: Path) -> None:
    """Train in two halves, with nothing but `directory` between them."""
    reference = train_alone(rank, args.steps, rows=ROWS)
    config, group = reference.model.config, rank.group
    model = build_model(config).to(rank.device)
    sharded = data_parallel(config, rank, stage=3)
    payloads = [(get_gathered_once_traffic(model, group.size()), group.size())]
    due = replicated(config, rows=ROWS, payloads=payloads)
    held, peak = sharded.held_bytes, sharded.peak_bytes
    rank.recorder.expect(replace(due, held_bytes=held, peak_bytes=peak))
    half = args.steps // 2
    for start, stop, seed in ((0, half, 0), (half, args.steps, 1)):
        fresh = build_model(config, seed=seed).to(rank.device)
        shards = {n: shard_rows(p, group) for n, p in fresh.named_parameters()}
        optimizer = torch.optim.AdamW([s.param for s in shards.values()], lr=3e-3)
        if start:
            loaded = load_checkpoint(directory, shards, optimizer)
            rank.say(f"resumed at step {loaded}")
        told = counted(rank, reference.batches[start:stop])
        for step, batch in enumerate(told, start):
            on_device = (batch[0].to(rank.device), batch[1].to(rank.device))
            loss, norm = train_step(model, shards, optimizer, on_device, group)
            rank.say(
                f"step {step}: loss {loss:.4f}, one process "
                f"{reference.losses[step]:.4f}, norm of all gradients {norm:.4f}"
            )
        if not start:
            with blaming_a_full_disk(directory, optimizer):
                save_checkpoint(directory, shards, optimizer, group, step=stop)
            file = directory / f"rank-{rank.rank:05}.safetensors"
            rank.say_each(f"wrote {file.stat().st_size} bytes to {file}")
    alone = dict(reference.model.named_parameters())
    apart = 0.0
    for name, shard in shards.items():
        want = alone[name].detach()[shard.start : shard.start + len(shard.param)]
        if len(shard.param):
            apart = max(apart, (shard.param.detach().cpu() - want).abs().max().item())
    rank.say_each(f"largest difference of a shard from the one process: {apart:.1e}")


@contextlib.contextmanager
def blaming_a_full_disk(
    directory: Path, optimizer: torch.optim.Optimizer
) -> Iterator[None]:
    """Raise OSError where a file is not written and the disk has no room for it.

    What was half written is gone by then: a rank needs room to tell of its end.
    """
    try:
        yield
    except SafetensorError as error:
        held = [p for each in optimizer.param_groups for p in each["params"]]
        held += [t for state in optimizer.state.values() for t in state.values()]
        number = try_disk(directory, sum(t.numel() * t.element_size() for t in held))
        if not number:
            raise
        for file in directory.parent.glob("*.part/*"):  # the folder is the others', too
            file.unlink(missing_ok=True)
        raise OSError(number, os.strerror(number), str(directory)) from error


def check(args: argparse.Namespace) -> None:
    """Raise ValueError where there is no step before the file or none after it."""
    if args.steps < 2:
        raise ValueError(f"--steps {args.steps}: at least 2, saved half-way")


def main(argv: list[str] | None = None) -> int:
    """Run the demo on this command line's ranks; return the exit status."""
    says = "FSDP2's state: sharded, clipped, saved, loaded."
    return launch.main(demo, description=says, check=check, argv=argv)
