"""Lab 04: fully sharded training on 1 to N ranks, wrapped in three ways."""

import argparse
import statistics
from typing import Any

import torch

from mini_impls import fsdp, fsdp_options, model
from mini_impls.demos import lab
from mini_impls.launch import Rank
from mini_impls.model import GPTConfig
from mini_impls.traffic import CollectiveCounter

CONFIG = GPTConfig(
    num_layers=4, hidden_size=256, num_attention_heads=8, ffn_hidden_size=1024
)
BATCH_PER_RANK = 8


def get_policies(config: GPTConfig) -> dict[str, list[str]]:
    """Return which modules become a group of their own, by name of the policy."""
    layers = [f"layers.{i}" for i in range(config.num_layers)]
    halves = [
        f"{layer}.{half}" for layer in layers for half in ("self_attention", "mlp")
    ]
    return {
        "whole model": [""],
        "each block": ["", *layers],
        "each half block": ["", *halves],
    }


def on_rank(rank: Rank, rounds: int) -> list[dict[str, Any]]:
    """Train a few steps under each policy; time them, and count what one sends."""
    rows = []
    for policy, modules in get_policies(CONFIG).items():
        gpt = model.build_model(CONFIG).to(rank.device)
        state = fsdp_options.fully_shard(gpt, rank.group, modules=modules)
        optimizer = torch.optim.AdamW(gpt.parameters(), lr=1e-3)
        batch_size = BATCH_PER_RANK * rank.world_size
        batch = model.make_batch(CONFIG, step=0, batch_size=batch_size)
        tokens, labels = model.shard_batch(
            batch, rank=rank.rank, world_size=rank.world_size
        )
        tokens, labels = tokens.to(rank.device), labels.to(rank.device)

        def step(
            gpt: Any = gpt, optimizer: Any = optimizer, mine: Any = (tokens, labels)
        ) -> None:
            optimizer.zero_grad()
            model.compute_loss(gpt(mine[0]), mine[1]).backward()
            optimizer.step()

        with CollectiveCounter() as sent:
            step()
        times = []
        for done in range(rounds):
            rank.show(f"world {rank.world_size}, {policy}, round", done, rounds)
            times.append(lab.seconds(rank, step))
        gathered = [
            sum(p.padded_sharded_size.numel() for p in group.fsdp_params)
            for group in state.param_groups.values()
        ]
        rows.append(
            {
                "policy": policy,
                "world_size": rank.world_size,
                "groups": len(state.param_groups),
                "tokens": tokens.numel() * rank.world_size,
                "step_s": statistics.median(times),
                "quickest_step_s": min(times),
                "shard_bytes": sum(p.nbytes for p in gpt.parameters()),
                "largest_group_bytes": 4 * rank.world_size * max(gathered),
                "collectives": sent.counts(),
                "payload_bytes": sent.payload_bytes(),
            }
        )
    return rows


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Return the numbers of this lab."""
    rows = []
    for world_size in range(1, args.world + 1):
        ranks = lab.run(args, world_size, on_rank)
        rows += ranks[0]
    return {"steps": rows}


DESCRIPTION = "Fully sharded training on 1 to --world ranks, wrapped in three ways."


def main(argv: list[str] | None = None) -> int:
    """Measure and write the result; return the exit status."""
    return lab.main("04", DESCRIPTION, fsdp, measure, argv)


if __name__ == "__main__":
    raise SystemExit(main())
