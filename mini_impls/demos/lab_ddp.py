"""Lab 01: data parallelism on two processes, timed at several sizes.

Three measurements: that the ranks equal one process, what an all-reduce costs by size,
and what a step costs on one rank and on more, with the all-reduce by itself.
"""

import argparse
import statistics
from typing import Any

import torch
import torch.distributed as dist

from mini_impls import ddp, model
from mini_impls.demos import lab
from mini_impls.launch import Rank
from mini_impls.model import GPTConfig
from mini_impls.weights import get_digests

STEPS = 10
BATCH_PER_RANK = 8
HIDDEN_SIZES = (64, 128, 256, 512)
MESSAGE_BYTES = tuple(4**k for k in range(4, 13))  # 256 bytes to 16 MiB


def train(rank: Rank) -> dict[str, Any]:
    """Return losses and digests of this rank after a few steps beside one process."""
    reference = model.reference_run(
        GPTConfig(),
        steps=STEPS,
        batch_size=BATCH_PER_RANK * rank.world_size,
        chunks=rank.world_size,
    )
    gpt = model.build_model(GPTConfig(), seed=rank.rank).to(rank.device)
    wrapped = ddp.DistributedDataParallel(gpt, rank.group, bucket_cap_mb=0.1)
    optimizer = torch.optim.AdamW(wrapped.parameters(), lr=3e-3)
    losses = []
    for batch in reference.batches:
        tokens, labels = _mine(rank, batch)
        optimizer.zero_grad()
        loss = model.compute_loss(wrapped(tokens), labels)
        loss.backward()
        optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean, group=rank.group)
        losses.append(mean.item() / rank.world_size)
    digests = get_digests(dict(gpt.named_parameters()))
    return {
        "losses": losses,
        "one_process": reference.losses,
        "parameter_difference": reference.difference(gpt.named_parameters()),
        "digest": "".join(digests[name][:8] for name in sorted(digests)),
    }


def time_all_reduces(rank: Rank, rounds: int) -> list[dict[str, Any]]:
    """Return the time of an all-reduce of each size: median, and the quickest."""
    rows = []
    for done, message_bytes in enumerate(MESSAGE_BYTES):
        rank.show(f"world {rank.world_size}, all-reduces", done, len(MESSAGE_BYTES))
        tensor = torch.zeros(message_bytes // 4, device=rank.device)

        def work(tensor: torch.Tensor = tensor) -> None:
            dist.all_reduce(tensor, group=rank.group)

        work()
        times = [lab.seconds(rank, work) for _ in range(rounds)]
        rows.append(
            {"bytes": message_bytes, "median_s": statistics.median(times)}
            | {"min_s": min(times)}
        )
    return rows


def time_steps(rank: Rank, rounds: int) -> list[dict[str, Any]]:
    """Return, for each width, the time of a step and of its all-reduces alone."""
    rows, where = [], f"world {rank.world_size}"
    for hidden_size in HIDDEN_SIZES:
        config = GPTConfig(
            hidden_size=hidden_size,
            num_attention_heads=hidden_size // 16,
            ffn_hidden_size=4 * hidden_size,
        )
        batch_size = BATCH_PER_RANK * rank.world_size
        batch = model.make_batch(config, step=0, batch_size=batch_size)
        tokens, labels = _mine(rank, batch)
        gpt = model.build_model(config).to(rank.device)
        optimizer = torch.optim.AdamW(gpt.parameters(), lr=1e-3)

        def compute(gpt: Any = gpt, tokens: Any = tokens, labels: Any = labels) -> None:
            gpt.zero_grad()
            model.compute_loss(gpt(tokens), labels).backward()

        def reduce(gpt: Any = gpt) -> None:
            ddp.all_reduce_gradients(gpt, rank.group)

        def step(optimizer: Any = optimizer) -> None:
            optimizer.step()

        parts: dict[str, list[float]] = {"compute": [], "all_reduce": [], "update": []}
        for done in range(rounds + 1):
            rank.show(f"{where}, width {hidden_size}, round", done, rounds + 1)
            parts["compute"].append(lab.seconds(rank, compute))
            parts["all_reduce"].append(lab.seconds(rank, reduce))
            parts["update"].append(lab.seconds(rank, step))
        # The first round makes buffers and optimizer state.
        medians = {f"{k}_s": statistics.median(v[1:]) for k, v in parts.items()}
        numel = sum(p.numel() for p in gpt.parameters())
        rows.append(
            {"hidden_size": hidden_size, "gradient_bytes": 4 * numel}
            | {"world_size": rank.world_size, "sequences": batch_size}
            | medians
        )
    return rows


def _mine(rank: Rank, batch: model.Batch) -> model.Batch:
    tokens, labels = model.shard_batch(
        batch, rank=rank.rank, world_size=rank.world_size
    )
    return tokens.to(rank.device), labels.to(rank.device)


def on_rank(rank: Rank, rounds: int) -> dict[str, Any]:
    """Return everything that one rank of one launch measures."""
    return {
        "training": train(rank),
        "all_reduce": time_all_reduces(rank, rounds),
        "steps": time_steps(rank, rounds),
    }


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Return the numbers of this lab."""
    steps = []
    for world_size in (1, args.world):
        ranks = lab.run(args, world_size, on_rank)
        steps += ranks[0]["steps"]
    training = [rank["training"] for rank in ranks]
    return {
        "training": {
            "losses": training[0]["losses"],
            "one_process": training[0]["one_process"],
            "parameter_difference": max(t["parameter_difference"] for t in training),
            "digests": [t["digest"] for t in training],
        },
        "all_reduce": ranks[0]["all_reduce"],
        "steps": steps,
    }


DESCRIPTION = (
    "Data parallelism on one rank and on --world ranks, timed at several sizes."
)


def main(argv: list[str] | None = None) -> int:
    """Measure and write the result; return the exit status."""
    return lab.main("01", DESCRIPTION, ddp, measure, argv)


if __name__ == "__main__":
    raise SystemExit(main())
