"""What `layout` is set to do: two ranks, cut along one dimension or another."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
import torch.distributed as dist

from mini_impls.faults.works.measures import STEPS, apart_between_ranks, norm
from mini_impls.launch import Rank
from mini_impls.layout_stages import (
    LayoutConfig,
    LayoutStage,
    TwoLayouts,
    build_layout_model,
    make_groups,
)
from mini_impls.layout_train import LayoutTrainer
from mini_impls.model import GPT, make_batch, train_one_process

CONFIG = LayoutConfig(hidden_size=32, ffn_hidden_size=64, num_moe_experts=2)
MICROBATCHES, ROWS, RATE = 4, 2, 3e-3


def train_on(sizes: Mapping[str, int]) -> Callable[[Rank], dict[str, float]]:
    """Return a work that trains on such a layout, and alone."""

    def train(rank: Rank) -> dict[str, float]:
        groups = make_groups(TwoLayouts.parse(rank.world_size, sizes), rank.rank)
        tokens = CONFIG.max_sequence_length // groups.layer.cp.size()
        trainer = LayoutTrainer(
            LayoutStage(build_layout_model(CONFIG), groups),
            groups,
            microbatches=MICROBATCHES,
            microbatch_shape=(ROWS, tokens, CONFIG.hidden_size),
            learning_rate=RATE,
        )
        rows = MICROBATCHES * ROWS * groups.dp_size
        batches = [make_batch(CONFIG, step=i, batch_size=rows) for i in range(STEPS)]
        losses = trainer.train(batches[:1])
        alone = build_layout_model(CONFIG)
        optimizer = torch.optim.AdamW(alone.parameters(), RATE)
        chunks = MICROBATCHES * groups.dp_size
        train_one_process(alone, optimizer, batches[:1], chunks=chunks)
        ratio = of_experts(trainer.stage, alone)
        losses += trainer.train(batches[1:])
        train_one_process(alone, optimizer, batches[1:], chunks=chunks)
        found = {
            "gradient over one process's": ratio,
            "apart between ranks": apart_between_copies(trainer.stage, rank.group),
            "apart from one process": apart(trainer.stage, alone),
        }
        first, last = ends(losses, rank.group)
        return found | {"first loss": first, "last loss": last}

    return train


def ends(losses: list[float], group: dist.ProcessGroup) -> tuple[float, float]:
    """Return the first and the last loss; only the last stage has any."""
    of_all: list[list[float]] = [[]] * group.size()
    dist.all_gather_object(of_all, losses, group=group)
    known = next(each for each in of_all if each)
    return known[0], known[-1]


def of_experts(stage: LayoutStage, alone: GPT) -> float:
    """Return the size of the gradients of this rank's experts over one process's."""
    whole = dict(alone.named_parameters())
    pairs = [
        (param.grad, whole[name].grad)
        for name, param in stage.named_parameters()
        if ".experts." in name
    ]
    mine = norm(grad for grad, _ in pairs if grad is not None)
    return mine / norm(grad for _, grad in pairs if grad is not None)


def apart_between_copies(stage: LayoutStage, group: dist.ProcessGroup) -> float:
    """Return how far apart what both ranks have whole is; 0 for parts of two stages."""
    mine = {
        name: param
        for name, param in stage.named_parameters()
        if ".experts." not in name
    }
    names: list[dict[str, torch.Size]] = [{}] * group.size()
    dist.all_gather_object(names, {n: p.shape for n, p in mine.items()}, group=group)
    if any(each != names[0] for each in names):
        return 0.0
    of_tp = ("linear_qkv", "linear_fc1", "linear_proj.weight", "linear_fc2.weight")
    cut = stage_is_cut(stage)
    whole = [p for n, p in mine.items() if not (cut and any(x in n for x in of_tp))]
    return apart_between_ranks(whole, group)


def stage_is_cut(stage: LayoutStage) -> bool:
    """Tell whether layers are cut in slices."""
    layer = next(iter(stage.layers.values()))
    rows = layer.get_parameter("self_attention.linear_proj.weight").shape
    return rows[0] != rows[1]


def apart(stage: LayoutStage, alone: GPT) -> float:
    """Return how far what is whole here is from one process's; NaN is far."""
    whole = dict(alone.named_parameters())
    return max(
        (param - whole[name]).abs().nan_to_num(math.inf).max().item()
        for name, param in stage.named_parameters()
        if param.shape == whole[name].shape
    )


WORKS = {
    "layout, slices": train_on({"tp": 2, "ep": 2}),
    "layout, copies": train_on({"ep": 2}),
    "layout, sequences": train_on({"cp": 2, "ep": 2}),
    "layout, stages": train_on({"pp": 2}),
}
