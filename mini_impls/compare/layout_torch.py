"""Torch's side of a layout: a device mesh, DTensor, fully_shard and its pipelining."""

from typing import Any

import torch
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

from mini_impls.compare.pipeline_torch import build_schedule
from mini_impls.compare.sides import Held, Schedule, SetPhase, optimizer_state
from mini_impls.compare.steps import StepLog
from mini_impls.launch import Rank
from mini_impls.layout_stages import LayoutConfig, LayoutGroups, local_batch
from mini_impls.model import Batch, build_model
from mini_impls.pipeline_stages import PipelineStage


class TorchSide:
    """Whole layers cut by torch: along tp by DTensor, along dp by FSDP2."""

    def __init__(
        self,
        rank: Rank,
        config: LayoutConfig,
        groups: LayoutGroups,
        microbatches: int,
        log: StepLog,
        learning_rate: float,
    ) -> None:
        self.groups, self.log = groups, log
        pp, tp, dp = groups.pp.size(), groups.layer.tp.size(), groups.dp_size
        self.mesh = init_device_mesh(
            rank.device.type, (pp, dp, tp), mesh_dim_names=("pp", "dp", "tp")
        )
        place = groups.pp.rank()
        gpt = build_model(config).to(rank.device)
        self.stage: Any = PipelineStage(gpt, place, pp)
        plan: dict[str, Any] = {}
        for name in self.stage.layers:
            layer = f"layers.{name}"
            plan[f"{layer}.self_attention.linear_qkv"] = ColwiseParallel()
            plan[f"{layer}.self_attention.linear_proj"] = RowwiseParallel()
            plan[f"{layer}.mlp.linear_fc1"] = ColwiseParallel()
            plan[f"{layer}.mlp.linear_fc2"] = RowwiseParallel()
        parallelize_module(self.stage, self.mesh["tp"], plan)
        for module in (*self.stage.layers.values(), self.stage):
            # Gathered once a step, and not once a microbatch.
            fully_shard(module, mesh=self.mesh["dp"], reshard_after_forward=False)
        self.optimizer = torch.optim.AdamW(self.stage.parameters(), learning_rate)
        as_stage = Rank(place, pp, rank.device, self.mesh.get_group("pp"))
        self.schedule = build_schedule(
            Schedule("1f1b", microbatches, 1), {place: self.stage}, as_stage, log
        )

    def step(self, batch: Batch, set_phase: SetPhase) -> float | None:
        """Forward and backward of all microbatches, update."""
        self.log.start(set_phase)
        set_phase("forward")
        self.optimizer.zero_grad()
        mine = local_batch(batch, self.groups)
        first, last = self.stage.pre_process, self.stage.post_process
        losses = self.schedule.run(mine, first=first, last=last)
        set_phase("optimizer")
        self.optimizer.step()
        return sum(losses) / len(losses) if losses else None

    def parameters(self) -> dict[str, Tensor]:
        """Return this rank's slices of the layers, gathered along dp."""
        return {n: self.slice_of(p) for n, p in self.stage.named_parameters()}

    def gradients(self) -> dict[str, Tensor]:
        """Return their gradients in the same way."""
        named = self.stage.named_parameters()
        return {n: self.slice_of(p.grad) for n, p in named if p.grad is not None}

    def slice_of(self, tensor: Tensor) -> Tensor:
        """Return what a rank of tp has, of a tensor that dp has shards of."""
        assert isinstance(tensor, DTensor)
        dims = tensor.device_mesh.mesh_dim_names or ()
        placements = [
            Replicate() if name == "dp" else placement
            for name, placement in zip(dims, tensor.placements, strict=True)
        ]
        gathered = tensor.redistribute(placements=placements).to_local()
        assert isinstance(gathered, Tensor)
        return gathered.detach()

    def held(self) -> Held:
        """Return the shards."""
        params = list(self.stage.parameters())
        grads = [param.grad for param in params if param.grad is not None]
        return {
            "parameters": [local(param) for param in params],
            "gradients": [local(grad) for grad in grads],
            "optimizer state": [local(t) for t in optimizer_state(self.optimizer)],
        }

    def watched(self) -> tuple[Tensor, ...]:
        """Return nothing: backward computes the gradients of gathered parameters."""
        return ()


def local(tensor: Tensor) -> Tensor:
    """Return what this rank holds."""
    tensor = tensor.detach()
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor
