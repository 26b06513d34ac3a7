"""A layout: who is in which group, and a small GPT on it beside one process."""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from mini_impls import launch
from mini_impls.demos.expected import peak_bytes, replicated
from mini_impls.demos.layout_traffic import get_traffic_of_groups
from mini_impls.demos.training import counted, counted_alone
from mini_impls.launch import Rank
from mini_impls.layout import RankLayout
from mini_impls.layout_stages import (
    LayoutConfig,
    LayoutGroups,
    LayoutStage,
    TwoLayouts,
    build_layout_model,
    check_sizes,
    make_groups,
)
from mini_impls.layout_train import LayoutTrainer
from mini_impls.model import Batch, make_batch, train_one_process
from mini_impls.recorder import Expected
from mini_impls.traffic import CollectiveCounter
from readerkit.estimate.bubble import bubble_fraction

ROWS = 2
"""Sequences of a microbatch."""
MICROBATCHES = 2
CONFIGS = {
    "every layer dense": LayoutConfig(),
    "4 experts in each layer": LayoutConfig(num_moe_experts=4, ffn_hidden_size=128),
}


def sizes_of(args: argparse.Namespace) -> dict[str, int]:
    """Return what was asked for; tp and ep 2, then pp 2, where nothing was."""
    asked = {name: getattr(args, name) for name in ("tp", "cp", "pp", "ep")}
    if not any(asked.values()):
        even = args.world % 2 == 0
        asked = {"tp": 1 + even, "pp": 2 - bool(args.world % 4), "ep": 1 + even}
    return {name: size or 1 for name, size in asked.items()}


def describe(layout: RankLayout, kinds: Sequence[str]) -> str:
    """Return the groups of each kind, ranks side by side."""
    rows = []
    for kind in kinds:
        groups = "  ".join(" ".join(map(str, g)) for g in layout.groups(kind))
        rows.append(f"  {kind:5} {groups}")
    return "\n".join(rows)


def own_slice(whole: torch.Tensor, mine: torch.Tensor, groups: LayoutGroups) -> float:
    """Return how far a rank's part is from that of one process's tensor."""
    tp = groups.layer.tp
    for dim, (of_whole, here) in enumerate(zip(whole.shape, mine.shape, strict=True)):
        if of_whole != here:
            whole = whole.chunk(tp.size(), dim)[tp.rank()]
            break
    return (whole - mine).abs().max().item()


def demo(rank: Rank, args: argparse.Namespace) -> None:
    """Show the groups, then train a dense model and one with experts."""
    layouts = TwoLayouts.parse(rank.world_size, sizes_of(args))
    rank.say("groups of dense layers, every rank once in each kind:")
    rank.say(describe(layouts.dense, ("tp", "cp", "dp", "pp")))
    rank.say("groups of experts, over the same ranks:")
    rank.say(describe(layouts.experts, ("ep", "dp")))
    groups = make_groups(layouts, rank.rank)
    rank.recorder.parts = len(CONFIGS)
    alone = []  # what one process keeps is taken off later peaks: so long it lives
    for name, config in CONFIGS.items():
        rank.recorder.begin(name)
        rank.say(f"--- {name}")
        alone.append(train(rank, config, groups, args.steps))


def train(
    rank: Rank, config: LayoutConfig, groups: LayoutGroups, steps: int
) -> torch.optim.Optimizer:
    """Train on all ranks, and in one process; say what was sent and what came of it.

    Returns what updated the model of the one process, and holds it.
    """
    rows = ROWS * MICROBATCHES * groups.dp_size
    batches = [make_batch(config, step=i, batch_size=rows) for i in range(steps)]
    batches = [(t.to(rank.device), y.to(rank.device)) for t, y in batches]
    stage = LayoutStage(build_layout_model(config).to(rank.device), groups)
    tokens = config.max_sequence_length // groups.layer.cp.size()
    trainer = LayoutTrainer(
        stage,
        groups,
        microbatches=MICROBATCHES,
        microbatch_shape=(ROWS, tokens, config.hidden_size),
        learning_rate=1e-3,
    )
    of_groups = get_traffic_of_groups(
        config, stage, groups, microbatches=MICROBATCHES, rows=ROWS
    )
    rank.recorder.expect(expected(rank, config, groups, of_groups))
    due = sum((Counter(traffic) for traffic, _ in of_groups), Counter())
    with CollectiveCounter() as sent:
        trainer.step(batches[0])
    parts = [
        f"{sent.counts()[op]} {op} {payload_bytes:,} (formula {due.get(op, 0):,})"
        for op, payload_bytes in sent.payload_bytes().items()
    ]
    rank.say_each(f"one step: {', '.join(parts) or 'nothing sent'}")
    losses = trainer.train(counted(rank, batches[1:]))
    return beside_one_process(rank, config, groups, trainer, batches, losses)


def expected(
    rank: Rank,
    config: LayoutConfig,
    groups: LayoutGroups,
    payloads: Sequence[tuple[Mapping[str, int], int]],
) -> Expected:
    """Return what a rank is due in a step; a backward takes twice a forward."""
    experts = config.num_moe_experts
    sizes = {"experts": experts, "experts_per_token": 1}
    peak = None
    if not experts:
        peak = peak_bytes(
            config,
            rows=ROWS,
            rank=groups.pp.rank(),
            tp=groups.layer.tp.size(),
            cp=groups.layer.cp.size(),
            pp=groups.pp.size(),
            dp=groups.dp_size,
            microbatches=MICROBATCHES,
        )
    due = replicated(
        config,
        rows=ROWS * MICROBATCHES * groups.dp_size,
        payloads=payloads,
        shared_by=rank.world_size,
        peak=peak,
        **(sizes | {"expert_ffn": config.ffn_hidden_size} if experts else {}),
    )
    stages = groups.pp.size()
    if stages == 1:
        return due
    bubble = bubble_fraction(
        schedule="1f1b",
        stages=stages,
        microbatches=MICROBATCHES,
        forward=1,
        backward=2,
    )
    return replace(due, idle=float(bubble))


def beside_one_process(
    rank: Rank,
    config: LayoutConfig,
    groups: LayoutGroups,
    trainer: LayoutTrainer,
    batches: Sequence[Batch],
    losses: Sequence[float],
) -> torch.optim.Optimizer:
    """Train alone what a layout trained; say how far this rank's part is off."""
    with rank.recorder.alone():
        alone = build_layout_model(config).to(rank.device)
        optimizer = torch.optim.AdamW(alone.parameters(), lr=1e-3)
        told = counted_alone(rank, batches)
        chunks = MICROBATCHES * groups.dp_size
        alone_losses = train_one_process(alone, optimizer, told, chunks=chunks)[1:]
    whole = dict(alone.named_parameters())
    gradient = parameter = 0.0
    for name, param in trainer.stage.named_parameters():
        its, grad = whole[name], whole[name].grad
        assert grad is not None and param.grad is not None
        gradient = max(gradient, own_slice(grad, param.grad, groups))
        parameter = max(parameter, own_slice(its.detach(), param.detach(), groups))
    text = (
        f"largest difference from one process: gradient {gradient:.1e}, "
        f"parameter {parameter:.1e}"
    )
    if losses:  # the last stage has them
        text += f"; loss {ends(losses)}, one process {ends(alone_losses)}"
    rank.say_each(text)
    return optimizer


def ends(losses: Sequence[float]) -> str:
    """Return the first and the last loss."""
    return f"{losses[0]:.4f} -> {losses[-1]:.4f}"


def check(args: argparse.Namespace) -> None:
    """Raise ValueError where the ranks cannot be cut so, or the models."""
    if args.steps < 2:
        raise ValueError(f"--steps {args.steps}: at least 2, the first one is counted")
    for name in ("tp", "cp", "pp", "ep"):
        if (size := getattr(args, name)) < 0:
            raise ValueError(f"--{name} {size} is below 0")
    layouts = TwoLayouts.parse(args.world, sizes_of(args))
    for config in CONFIGS.values():
        check_sizes(config, layouts)


def main(argv: list[str] | None = None) -> int:
    """Run the demo on this command line's ranks; return the exit status."""
    said = "ranks (0: chosen by --world)"
    options = {
        "tp": (0, f"tensor parallel {said}"),
        "cp": (0, f"context parallel {said}"),
        "pp": (0, f"pipeline stages {said}"),
        "ep": (0, f"expert parallel {said}"),
    }
    return launch.main(
        demo,
        description="a small GPT on tp x cp x dp x pp, experts on ep",
        check=check,
        options=options,
        argv=argv,
    )
