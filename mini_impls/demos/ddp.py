"""Data parallelism in buckets, beside one process."""

import argparse
from collections.abc import Callable

import torch
import torch.distributed as dist

from mini_impls import launch
from mini_impls.ddp import DistributedDataParallel
from mini_impls.demos.expected import data_parallel
from mini_impls.demos.training import train_alone, train_beside
from mini_impls.model import build_model


def note_sending(model: DistributedDataParallel) -> list[int]:
    """Return a list kept up to date: how many gradients were ready at each bucket."""
    ready = [0] * len(model.buckets)
    for i, bucket in enumerate(model.buckets):

        def start(
            group: dist.ProcessGroup,
            i: int = i,
            send: Callable[[dist.ProcessGroup], None] = bucket.start_grad_sync,
        ) -> None:
            ready[i] = model.num_params_ready
            send(group)

        bucket.start_grad_sync = start  # type: ignore[method-assign]
    return ready


def demo(rank: launch.Rank, args: argparse.Namespace) -> None:
    """Train beside the one-process run and show the buckets and what was sent."""
    reference = train_alone(rank, args.steps)
    config = reference.model.config
    rank.recorder.expect(data_parallel(config, rank, stage=0))
    model = DistributedDataParallel(
        build_model(config, seed=rank.rank).to(rank.device),  # rank 0's will be kept
        rank.group,
        bucket_cap_mb=args.bucket_cap_mb,
        first_bucket_mb=args.bucket_cap_mb / 4,
    )
    ready = note_sending(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    sent = train_beside(reference, rank, model, optimizer)
    count = sum(len(bucket.params) for bucket in model.buckets)
    for i, bucket in enumerate(model.buckets):
        rank.say(
            f"bucket {i}: {len(bucket.params)} gradients, {bucket.grad_data.nbytes:,} "
            f"bytes, sent when {ready[i]} of {count} gradients were ready"
        )
    grad_bytes = sum(bucket.grad_data.nbytes for bucket in model.buckets)
    rank.say_each(
        f"holds {sum(p.nbytes for p in model.parameters()):,} bytes of parameters and "
        f"{grad_bytes:,} of gradients; one step sent {sent.told()}"
    )
    apart = reference.difference(model.module.named_parameters())
    rank.say(f"largest difference of a parameter from the one process: {apart:.1e}")


def check(args: argparse.Namespace) -> None:
    """Refuse a bucket that holds nothing."""
    if not 0 < args.bucket_cap_mb < float("inf"):
        raise ValueError(f"--bucket-cap-mb {args.bucket_cap_mb:g} is no size above 0")


def main(argv: list[str] | None = None) -> int:
    """Run the demo on this command line's ranks; return the exit status."""
    options = {"bucket-cap-mb": (0.1, "bucket size in MiB (default 0.1; upstream 25)")}
    return launch.main(
        demo,
        description="Data parallelism in buckets.",
        check=check,
        options=options,
        argv=argv,
    )
