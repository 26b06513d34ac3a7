"""Experts: how even each routing keeps the load, what it drops, what tokens cost."""

import argparse
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor

from mini_impls import launch
from mini_impls.demos.formulas import get_expert_traffic
from mini_impls.demos.training import counted
from mini_impls.expert_routing import ExpertsConfig, TopKRouter, update_expert_biases
from mini_impls.experts import (
    ExpertGroups,
    build_moe_model,
    expert_parallel,
    finish_gradients,
    make_groups,
    routers,
)
from mini_impls.model import compute_loss, make_batch, shard_batch, train_one_process
from mini_impls.traffic import CollectiveCounter

ROWS = 8
"""Sequences of each rank."""
WAYS: dict[str, dict[str, Any]] = {
    "left alone": {},
    "a loss that rides along": {"moe_aux_loss_coeff": 0.05},
    "a bias that follows the load": {
        "moe_router_score_function": "sigmoid",
        "moe_router_bias_update_rate": 0.01,
    },
    "dropped above the even share": {"moe_expert_capacity_factor": 1.0},
    "experts choose": {"experts_choose": True},
}
"""What is set besides, by the name it is shown under."""


class Load:
    """Counts the tokens of each expert, of one router after another."""

    def __init__(self, watched: list[TopKRouter]) -> None:
        self.counts: list[Tensor] = []
        for router in watched:
            router.register_forward_hook(self.note)

    def note(self, router: Any, inputs: Any, routing: tuple[Tensor, Tensor]) -> None:
        """Keep what one layer routed."""
        self.counts.append(routing[1].sum(0))

    def of_all(self, group: dist.ProcessGroup) -> Tensor:
        """Return the counts (layers, E) of all ranks since the last time."""
        total, self.counts = torch.stack(self.counts), []
        dist.all_reduce(total, group=group)
        return total


def demo(rank: launch.Rank, args: argparse.Namespace) -> None:
    """Train once with each routing, then once more by the other dispatcher."""
    etp = int(args.etp)
    groups = make_groups(rank.group, ep=rank.world_size // etp, etp=etp)
    for way, settings in WAYS.items():
        config = ExpertsConfig(num_moe_experts=2 * rank.world_size, **settings)
        rank.say(f"--- {way}; all-to-all")
        train(rank, args.steps, groups, config, "alltoall")
    rank.say("--- left alone; all-gather")
    config = ExpertsConfig(num_moe_experts=2 * rank.world_size)
    train(rank, args.steps, groups, config, "allgather")


def train(
    rank: launch.Rank,
    steps: int,
    groups: ExpertGroups,
    config: ExpertsConfig,
    dispatcher: Literal["alltoall", "allgather"],
) -> None:
    """Train on all ranks, and in one process; say what came of it."""
    w = rank.world_size
    batches = [make_batch(config, step=i, batch_size=ROWS * w) for i in range(steps)]
    gpt = build_moe_model(config).to(rank.device)
    expert_parallel(gpt, groups, dispatcher)
    load = Load(routers(gpt))
    optimizer = torch.optim.AdamW(gpt.parameters(), 3e-3)
    losses = []
    for batch in counted(rank, batches):
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=w)
        optimizer.zero_grad()
        with CollectiveCounter() as sent:
            loss = compute_loss(gpt(tokens.to(rank.device)), labels.to(rank.device))
            loss.backward()
        finish_gradients(gpt, groups)
        optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean, group=rank.group)
        losses.append(mean.item() / w)
        counts = load.of_all(rank.group).float()  # (layers, E)
    alone = train_alone(config, batches, w)
    rank.say(f"loss {ends(losses)}, one process {ends(alone)}")
    apart = max(abs(a - b) for a, b in zip(losses, alone, strict=True))
    rank.say(f"largest difference from one process: loss {apart:.1e}")
    copies = w * tokens.numel() * config.moe_router_topk
    fullest = (counts.amax(1) / counts.mean(1)).max()
    rank.say(
        f"the last step: the fullest expert has {fullest:.2f} of an even share, "
        f"{1 - counts.sum(1).min() / copies:.0%} of the copies were dropped"
    )
    formula = get_expert_traffic(config, tokens.numel(), groups, dispatcher)
    for op, payload_bytes in sent.payload_bytes().items():
        due = f" (formula {formula[op]:,})" if op in formula else ""
        rank.say(f"sent in its layers: {op} {payload_bytes:,}{due}")


def train_alone(config: ExpertsConfig, batches: list[Any], chunks: int) -> list[float]:
    """Return the losses of one process that holds all experts."""
    gpt = build_moe_model(config, microbatches=chunks)
    optimizer = torch.optim.AdamW(gpt.parameters(), 3e-3)
    optimizer.register_step_pre_hook(
        lambda *_: update_expert_biases(routers(gpt), None)
    )
    return train_one_process(gpt, optimizer, batches, chunks=chunks)


def ends(losses: list[float]) -> str:
    """Return the first and the last loss."""
    return f"{losses[0]:.4f} -> {losses[-1]:.4f}"


def check(args: argparse.Namespace) -> None:
    """Raise ValueError where ranks cannot be cut so."""
    etp = int(args.etp)
    if etp < 1 or args.world % etp or ExpertsConfig().moe_ffn_hidden_size % etp:
        raise ValueError(f"--etp {etp} does not divide {args.world} ranks and experts")


def main(argv: list[str] | None = None) -> int:
    """Run the demo on this command line's ranks; return the exit status."""
    options = {"etp": (1, "ranks that share each expert (default 1)")}
    return launch.main(
        demo, description="Experts.", check=check, options=options, argv=argv
    )
