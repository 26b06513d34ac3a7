"""Megatron's side of a layout: its groups, layers, 1F1B and gradient buffers."""

from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from mini_impls.compare.layout_mini import MICROBATCHES, ROWS, LayoutSide, build_stage
from mini_impls.compare.pipeline_megatron import MegatronSchedule, SendOptions
from mini_impls.compare.sides import Comparison, Schedule, SetPhase
from mini_impls.compare.steps import StepLog
from mini_impls.compare.tensor_parallel import MegatronLayers
from mini_impls.launch import Rank
from mini_impls.layout_gpt import ColumnParallelLinear, RowParallelLinear
from mini_impls.layout_stages import LayoutConfig, LayoutGroups, local_batch
from mini_impls.model import Batch, shard_batch


class MegatronSide(LayoutSide):
    """Megatron's 1F1B around its layers, under its DDP."""

    def __init__(
        self,
        stage: nn.Module,
        log: StepLog,
        schedule: MegatronSchedule,
        ddp: Any,
        groups: LayoutGroups,
        learning_rate: float,
    ) -> None:
        super().__init__(stage, log)
        self.schedule, self.ddp, self.groups = schedule, ddp, groups
        self.optimizer = torch.optim.AdamW(stage.parameters(), learning_rate)

    def step(self, batch: Batch, set_phase: SetPhase) -> float | None:
        """Take a step; which rows are this rank's is not what is compared."""
        self.log.start(set_phase)
        set_phase("forward")
        self.ddp.zero_grad_buffer()
        self.optimizer.zero_grad()
        mine = local_batch(batch, self.groups)
        count = self.schedule.microbatches
        losses = self.schedule.run(
            [shard_batch(mine, rank=i, world_size=count) for i in range(count)]
        )
        set_phase("backward")
        self.ddp.finish_grad_sync()
        for param in self.stage.parameters():
            param.grad = param.main_grad  # type: ignore[attr-defined]
        set_phase("optimizer")
        self.optimizer.step()
        return sum(losses) / count if losses else None

    def buffers(self) -> list[Tensor]:
        """Return those of Megatron's DDP."""
        return [buffer.grad_data for buffer in self.ddp.buffers]


def replace_layers(stage: nn.Module, layers: MegatronLayers, tp: int) -> None:
    """Put Megatron's layers where the mini's are."""
    for module in list(stage.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, ColumnParallelLinear):
                setattr(module, name, layers.column(child, tp))
            elif isinstance(child, RowParallelLinear):
                setattr(module, name, layers.row(child, tp))


def build_upstream(
    rank: Rank, comparison: Comparison, groups: LayoutGroups, log: StepLog
) -> MegatronSide:
    """Return Megatron's layers in our stage, its schedule and its buffers around it."""
    distributed: Any = import_module("megatron.core.distributed")
    config, pp = comparison.config, groups.pp
    assert isinstance(config, LayoutConfig)
    stage = build_stage(rank, config, groups)
    tp = groups.layer.tp.size()
    replace_layers(stage, MegatronLayers(config, tp), tp)
    as_stage = Rank(pp.rank(), pp.size(), rank.device, pp)
    schedule = MegatronSchedule(
        Schedule("1f1b", MICROBATCHES, 1),
        SendOptions(),
        config,
        ROWS,
        {pp.rank(): stage},
        as_stage,
        log,
    )
    inner: Any = schedule.stages[0]
    model = distributed.DistributedDataParallel(
        schedule.config,
        distributed.DistributedDataParallelConfig(overlap_grad_reduce=False),
        inner,
    )
    model.stage, model.vp_stage = inner.stage, inner.vp_stage
    schedule.stages = [model]
    return MegatronSide(stage, log, schedule, model, groups, comparison.learning_rate)
