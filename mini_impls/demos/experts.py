"""Experts: how even each routing keeps the load, what it drops, what tokens cost."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional as F

from mini_impls import launch
from mini_impls.demos.expected import FLOAT32, over_steps, replicated
from mini_impls.demos.formulas import get_expert_traffic
from mini_impls.demos.peaks import experts_bytes
from mini_impls.demos.training import alone, counted, counted_alone
from mini_impls.expert_dispatch import AllToAllDispatcher
from mini_impls.expert_routing import ExpertsConfig, TopKRouter, update_expert_biases
from mini_impls.experts import (
    ExpertGroups,
    build_moe_model,
    expert_parallel,
    finish_gradients,
    make_groups,
    routers,
    split_params,
)
from mini_impls.model import (
    GPT,
    Batch,
    compute_loss,
    make_batch,
    shard_batch,
    train_one_process,
)
from mini_impls.recorder import Expected
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


Dispatcher = Literal["alltoall", "allgather"]


class Routes:
    """Keeps where each token went, of one router after another."""

    def __init__(self, watched: list[TopKRouter]) -> None:
        self.chosen: list[Tensor] = []
        """Of each call (N, E)."""
        self.margins: list[Tensor] = []
        """Of each call (N): how far the last choice is above the first refused."""
        for router in watched:
            router.register_forward_hook(self.note)

    def note(self, router: Any, inputs: Any, routing: tuple[Tensor, Tensor]) -> None:
        """Keep what one layer routed."""
        self.chosen.append(routing[1])
        k = router.config.moe_router_topk
        with torch.no_grad():
            scores = F.linear(inputs[0], router.weight)  # (N, E)
            if router.config.moe_router_bias_update_rate:
                scores = scores.sigmoid() + router.expert_bias
            best = scores.topk(min(k + 1, scores.size(1)), dim=1).values
        self.margins.append(best[:, k - 1] - best[:, -1])

    def of_step(self, step: int, layers: int, part: int = 0, parts: int = 1) -> Tensor:
        """Return the choices (layers, N, E) of a part of a step's rows."""
        first = (step * parts + part) * layers
        return torch.stack(self.chosen[first : first + layers])

    def margin(self, step: int, layers: int, part: int, parts: int) -> Tensor:
        """Return the margins (layers, N) of the same."""
        first = (step * parts + part) * layers
        return torch.stack(self.margins[first : first + layers])


@dataclass(frozen=True, slots=True)
class Trained:
    """What came of training with one routing."""

    name: str
    config: ExpertsConfig
    batches: list[Batch]
    losses: list[float]
    routes: Routes
    sent: dict[str, int]
    """In the layers of the last step, payload bytes of each operation."""
    due: dict[str, int]


def demo(rank: launch.Rank, args: argparse.Namespace) -> None:
    """Train once with each routing, then once more by the other dispatcher."""
    etp = int(args.etp)
    groups = make_groups(rank.group, ep=rank.world_size // etp, etp=etp)
    plain = ExpertsConfig(num_moe_experts=2 * rank.world_size)
    ways: list[tuple[str, Dispatcher, ExpertsConfig]] = [
        (f"{way}; all-to-all", "alltoall", replace(plain, **settings))
        for way, settings in WAYS.items()
    ]
    ways.append(("left alone; all-gather", "allgather", plain))
    rank.recorder.parts = len(ways)
    # One process comes behind all of them: no trace is as long as what it does.
    for trained in [train(rank, args.steps, groups, *way) for way in ways]:
        say(rank, trained)


def train(
    rank: launch.Rank,
    steps: int,
    groups: ExpertGroups,
    name: str,
    dispatcher: Dispatcher,
    config: ExpertsConfig,
) -> Trained:
    """Train on all ranks."""
    rank.recorder.begin(name)
    w = rank.world_size
    batches = [make_batch(config, step=i, batch_size=ROWS * w) for i in range(steps)]
    gpt = build_moe_model(config).to(rank.device)
    expert_parallel(gpt, groups, dispatcher)
    routes = Routes(routers(gpt))
    optimizer = torch.optim.AdamW(gpt.parameters(), 3e-3)
    losses: list[float] = []
    due: list[dict[str, int]] = []
    num_tokens = ROWS * config.max_sequence_length
    for batch in counted(rank, batches, f"{name}, step"):
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
        of_step = config, num_tokens, groups, dispatcher, carried(gpt)
        handed = {"send": sent_away(gpt, config)}
        due.append(get_expert_traffic(*of_step) | handed)
        rank.recorder.expect(expected(config, groups, gpt, due))
    payload = sent.payload_bytes()
    return Trained(name, config, batches, losses, routes, payload, due[-1])


def say(rank: launch.Rank, trained: Trained) -> None:
    """Train in one process; say what came of both."""
    config, losses = trained.config, trained.losses
    rank.say(f"--- {trained.name}")
    alone, of_one = train_alone(rank, config, trained.batches)
    rank.say(f"loss {ends(losses)}, one process {ends(alone)}")
    apart = [abs(a - b) for a, b in zip(losses, alone, strict=True)]
    rank.say(f"largest difference from one process: loss {max(apart):.1e}")
    say_who_went_elsewhere(rank, config, trained.routes, of_one, apart)
    last = trained.routes.of_step(len(losses) - 1, config.num_layers)
    say_load(rank, config, last)
    for op, payload_bytes in trained.sent.items():
        due = trained.due.get(op, 0)
        rank.say(f"sent in its layers: {op} {payload_bytes:,} (formula {due:,})")


def carried(gpt: GPT) -> tuple[int, int]:
    """Return what the last forward's all-to-alls carried, and gathers of slices.

    Copies of tokens, and rows filled up to the most that a rank has, of all layers.
    """
    ways = [m.dispatcher for m in gpt.modules() if hasattr(m, "dispatcher")]
    routed = [way for way in ways if isinstance(way, AllToAllDispatcher)]
    # A call counts the larger of what it sends and receives.
    both = [max(sum(way.input_splits), sum(way.output_splits)) for way in routed]
    rows = [len(way.etp_splits) * max(way.etp_splits) for way in routed]
    return sum(both), sum(rows)


def sent_away(gpt: GPT, config: ExpertsConfig) -> int:
    """Return the bytes that a step's all-to-alls took to other ranks, of all layers.

    What a rank sends forward it receives backward, and the other way round: tokens in
    both, with them weights on the way to the experts, their gradients on the way back.
    """
    away = 0
    for module in gpt.modules():
        way = getattr(module, "dispatcher", None)
        if isinstance(way, AllToAllDispatcher):
            own = way.ep_group.rank()
            for splits in (way.input_splits, way.output_splits):
                away += sum(splits) - splits[own]
    return away * FLOAT32 * (2 * config.hidden_size + 1)


def expected(
    config: ExpertsConfig,
    groups: ExpertGroups,
    gpt: GPT,
    due: Sequence[Mapping[str, int]],
) -> Expected:
    """Return what a rank is due in a step, the mean of those that are shown so far."""
    shown = over_steps(due)
    ranks = {"send": groups.ep.size(), "all_gather": groups.etp_ep.size()}
    ranks["reduce_scatter"] = groups.etp_ep.size()
    in_layers = [({op: shown.get(op, 0)}, size) for op, size in ranks.items()]
    dense, experts = (sum(p.nbytes for p in params) for params in split_params(gpt))
    counts = config.num_layers * config.num_moe_experts
    biases = FLOAT32 * counts if config.moe_router_bias_update_rate else 0
    behind = [
        ({"all_reduce": dense + biases + FLOAT32}, groups.all.size()),  # and the loss
        ({"all_reduce": experts}, groups.edp.size()),
    ]
    return replicated(
        config,
        rows=ROWS,
        payloads=[*in_layers, *behind],
        peak=experts_bytes(
            config,
            rows=ROWS,
            ep=groups.ep.size(),
            etp=groups.etp.size(),
            gathers="all_to_all" not in shown,
        ),
        experts=config.num_moe_experts,
        experts_per_token=config.moe_router_topk,
        expert_ffn=config.moe_ffn_hidden_size,
    )


def say_who_went_elsewhere(
    rank: launch.Rank,
    config: ExpertsConfig,
    routes: Routes,
    of_one: Routes,
    apart: Sequence[float],
) -> None:
    """Say in which step tokens first went to other experts than in one process.

    Ranks round other sums, and where two scores are as near to each other as that, the
    other expert is chosen: another function, not a rounding of the same.
    """
    layers = config.num_layers
    place = layers, rank.rank, rank.world_size
    elsewhere = torch.zeros(len(apart), device=rank.device)  # choices of each step
    above = torch.full_like(elsewhere, torch.inf)
    for step in range(len(apart)):
        alone = of_one.of_step(step, *place)
        moved = (routes.of_step(step, layers).cpu() != alone).any(2)  # (layers, N)
        if moved.any():
            elsewhere[step] = moved.sum()
            above[step] = of_one.margin(step, *place)[moved].min()
    dist.all_reduce(elsewhere, group=rank.group)
    dist.all_reduce(above, op=dist.ReduceOp.MIN, group=rank.group)
    if not elsewhere.any():
        rank.say("each token went to the experts that it has in one process")
        return
    step = int(elsewhere.nonzero()[0])
    text = (
        f"step {step} is the first in which tokens go to other experts than in one "
        f"process, {elsewhere[step]:.0f} of its choices"
    )
    if not config.experts_choose and config.moe_expert_capacity_factor is None:
        text += f": there the nearest is {above[step]:.1e} above the expert refused"
    if step:
        text += f"; until then losses are {max(apart[:step]):.1e} apart"
    rank.say(text)


def say_load(rank: launch.Rank, config: ExpertsConfig, chosen: Tensor) -> None:
    """Say how even the load of a step was, of choices (layers, N, E) on each rank."""
    unseen = (~chosen.any(2)).sum(1)  # (layers), tokens that no expert takes
    counts = torch.cat([chosen.sum(1), unseen.unsqueeze(1)], dim=1)  # (layers, E + 1)
    dist.all_reduce(counts, group=rank.group)
    counts, unseen = counts[:, :-1].float(), counts[:, -1]
    tokens = rank.world_size * chosen.size(1)
    copies = tokens * config.moe_router_topk
    fullest = (counts.amax(1) / counts.mean(1)).max()
    text = f"the last step: the fullest expert has {fullest:.2f} of an even share, "
    if config.experts_choose:  # their capacity is rounded up: copies may be more
        rank.say(
            f"{text}experts took {counts.sum(1).max():,.0f} copies in a layer, "
            f"{config.moe_router_topk} a token are {copies:,}; at most "
            f"{unseen.max()} of {tokens} tokens had none"
        )
        return
    rank.say(f"{text}{1 - counts.sum(1).min() / copies:.0%} of the copies were dropped")


def train_alone(
    rank: launch.Rank, config: ExpertsConfig, batches: list[Batch]
) -> tuple[list[float], Routes]:
    """Return the losses and the routes of one process that holds all experts."""
    with alone(rank):
        gpt = build_moe_model(config, microbatches=rank.world_size)
        routes = Routes(routers(gpt))
        optimizer = torch.optim.AdamW(gpt.parameters(), 3e-3)
        optimizer.register_step_pre_hook(
            lambda *_: update_expert_biases(routers(gpt), None)
        )
        told = counted_alone(rank, batches)
        losses = train_one_process(gpt, optimizer, told, chunks=rank.world_size)
    return losses, routes


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
