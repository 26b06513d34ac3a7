"""The stages of ZeRO: what each holds and sends, beside one process."""

import argparse
from dataclasses import replace

import torch
import torch.distributed as dist

from mini_impls import launch
from mini_impls.demos.expected import data_parallel
from mini_impls.demos.training import counted, train_alone
from mini_impls.model import (
    GPTConfig,
    Reference,
    build_model,
    compute_loss,
    shard_batch,
)
from mini_impls.traffic import CollectiveCounter
from mini_impls.zero import ZeroStage1, ZeroStage2
from mini_impls.zero_stage3 import ZeroStage3


def bytes_held(optimizer: ZeroStage1) -> dict[str, int]:
    """Return this rank's bytes of parameters, gradients and optimizer state."""
    grads = [param.grad for param in optimizer.params if param.grad is not None]
    if isinstance(optimizer, ZeroStage2):
        grads += optimizer.main_grad.values()
        if optimizer._in_flight is not None:
            grads.append(optimizer._in_flight[1])
    state = [t for s in optimizer.optim.state.values() for t in s.values()]
    return {
        "parameters": sum(p.untyped_storage().nbytes() for p in optimizer.params),
        "gradients": sum(grad.nbytes for grad in grads),
        "optimizer state": sum(t.nbytes for t in state if isinstance(t, torch.Tensor)),
    }


def demo(rank: launch.Rank, args: argparse.Namespace) -> None:
    """Train with every stage; show what is held, what was sent and that all agree."""
    reference = train_alone(rank, args.steps, rows=4)
    config = reference.model.config
    stages = ("1 with all_reduce", "1 with reduce", "2", "3")
    rank.recorder.parts = len(stages)
    for name in stages:
        rank.recorder.begin(f"stage {name}")
        due = data_parallel(config, rank, stage=int(name[0]), rows=4)
        if name == "1 with all_reduce" and due.sent_bytes is not None:
            # Weights follow sums that all ranks have, where others keep their slices.
            due = replace(due, sent_bytes=due.sent_bytes * 3 / 2)
        rank.recorder.expect(due)
        train(rank, reference, name)


def train(rank: launch.Rank, reference: Reference, name: str) -> None:
    """Train with one stage; say its losses, what it sent, and what a rank holds."""
    model = build_model(reference.model.config).to(rank.device)
    names = {param: name for name, param in model.named_parameters()}
    adamw, params = torch.optim.AdamW, list(model.parameters())
    optimizer: ZeroStage1
    match name:
        case "2":
            optimizer = ZeroStage2(params, adamw, rank.group, lr=3e-3)
        case "3":
            optimizer = ZeroStage3(model, params, adamw, rank.group, lr=3e-3)
        case "1 with reduce":
            optimizer = ZeroStage1(
                params, adamw, rank.group, gradients="reduce", lr=3e-3
            )
        case _:
            optimizer = ZeroStage1(params, adamw, rank.group, lr=3e-3)
    losses = []
    for batch in counted(rank, reference.batches, f"stage {name}, step"):
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=rank.world_size)
        with CollectiveCounter() as sent:
            optimizer.zero_grad()
            logits = model(tokens.to(rank.device))
            loss = compute_loss(logits, labels.to(rank.device))
            loss.backward()
            optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean, group=rank.group)
        losses.append(mean.item() / rank.world_size)
    rank.say(
        f"stage {name}: loss {losses[0]:.4f} -> {losses[-1]:.4f}, "
        f"one process {reference.losses[0]:.4f} -> {reference.losses[-1]:.4f}; "
        f"one step sent {sent.told()}"
    )
    held = (f"{n:,} bytes of {what}" for what, n in bytes_held(optimizer).items())
    rank.say_each("holds " + ", ".join(held))
    full = optimizer.full_parameters()
    apart = reference.difference((names[p], full[p]) for p in full)
    rank.say(f"largest difference of a parameter from the one process: {apart:.1e}")


def check(args: argparse.Namespace) -> None:
    """Refuse a world in which some rank would own nothing."""
    count = len(list(build_model(GPTConfig()).parameters()))
    if args.world > count:
        raise ValueError(f"{count} parameters cannot have {args.world} owners")


def main(argv: list[str] | None = None) -> int:
    """Run the demo on this command line's ranks; return the exit status."""
    return launch.main(demo, description="ZeRO, stages 1 to 3.", check=check, argv=argv)
