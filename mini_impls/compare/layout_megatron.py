"""Megatron's side of a layout: its groups, layers, experts, 1F1B and gradient buffers.

With context parallelism its split of a batch and its sums over dp and cp. Attention to
parts of a sequence it leaves to Transformer Engine: there both sides have the mini's.
"""

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
from mini_impls.layout_gpt import (
    ColumnParallelLinear,
    ParallelRoutedMLP,
    RowParallelLinear,
)
from mini_impls.layout_stages import LayoutConfig, LayoutGroups
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
        self.finalize: Any = import_module(
            "megatron.core.distributed.finalize_model_grads"
        )
        self.utils: Any = import_module("megatron.core.utils")

    def step(self, batch: Batch, set_phase: SetPhase) -> float | None:
        """Take a step; which rows are this rank's is not what is compared."""
        self.log.start(set_phase)
        set_phase("forward")
        self.ddp.zero_grad_buffer()
        self.optimizer.zero_grad()
        mine = self.of_this_rank(batch)
        count = self.schedule.microbatches
        losses = self.schedule.run(
            [shard_batch(mine, rank=i, world_size=count) for i in range(count)]
        )
        set_phase("backward")
        self.ddp.finish_grad_sync()
        self.finish_routers()
        # It multiplies a loss by the ranks of cp: its trainer's is a part of the mean
        # over them, and ours a mean of its own.
        self.ddp.scale_gradients(1 / self.groups.layer.cp.size())
        for param in self.stage.parameters():
            param.grad = param.main_grad  # type: ignore[attr-defined]
        set_phase("optimizer")
        self.optimizer.step()
        return sum(losses) / count if losses else None

    def of_this_rank(self, batch: Batch) -> Batch:
        """Return this rank's rows of a batch, and its part of each sequence."""
        groups = self.groups
        rows = shard_batch(
            batch, rank=groups.place["dp"], world_size=groups.dp_size
        )  # (B/dp, T) each
        both = dict(zip(("tokens", "labels"), rows, strict=True))
        mine = self.utils.get_batch_on_this_cp_rank(both)
        return mine["tokens"], mine["labels"]  # (B/dp, T/cp) each

    def finish_routers(self) -> None:
        """Add up the gradients of routers that have seen a part of the tokens each."""
        for module in self.stage.modules():
            if isinstance(module, MegatronExperts):
                self.finalize._allreduce_non_tensor_model_parallel_grads(
                    [self.ddp], module.layer.config
                )
                return  # those of all layers together

    def buffers(self) -> list[Tensor]:
        """Return those of Megatron's DDP."""
        both = [*self.ddp.buffers, *self.ddp.expert_parallel_buffers]
        return [buffer.grad_data for buffer in both]


# --- layers ---


class MegatronExperts(nn.Module):
    """Megatron's MoE layer in the place of the mini's, its weights by the same names.

    It wants tokens that tensor-parallel ranks have shared out among them.
    """

    layer: Any

    def __init__(self, layer: Any, mini: ParallelRoutedMLP) -> None:
        super().__init__()
        self.__dict__["layer"] = layer  # no child: its names are others
        self.mappings: Any = import_module("megatron.core.tensor_parallel.mappings")
        self.router = layer.router
        experts = zip(mini.experts, layer.experts.local_experts, strict=True)
        self.experts = nn.ModuleDict(dict(experts))
        for expert in layer.experts.local_experts:
            # Or it is summed with another expert's: the note `moe-bias-of-the-others`.
            expert.linear_fc2.bias.sequence_parallel = False
        named = dict(mini.named_parameters())
        with torch.no_grad():
            for name, param in self.named_parameters():
                param.copy_(named[name])

    def forward(self, hidden: Tensor) -> Tensor:
        """(B, T/cp, D) -> (B, T/cp, D), the same on every rank of tp."""
        tokens = hidden.flatten(0, 1).unsqueeze(1)  # (N, 1, D)
        mine = self.mappings.scatter_to_sequence_parallel_region(tokens)  # (N/tp, 1, D)
        output: Tensor = self.mappings.gather_from_sequence_parallel_region(
            self.layer(mine)[0], tensor_parallel_output_grad=False
        )
        return output.view_as(hidden)


def make_experts(
    config: LayoutConfig, mini: ParallelRoutedMLP, groups: LayoutGroups
) -> MegatronExperts:
    """Return Megatron's layer with the weights of the mini's."""
    layers: Any = import_module("megatron.core.tensor_parallel.layers")
    transformer: Any = import_module("megatron.core.transformer")
    moe: Any = import_module("megatron.core.transformer.moe.moe_layer")
    of_experts: Any = import_module("megatron.core.transformer.moe.experts")
    mlp: Any = import_module("megatron.core.transformer.mlp")
    spec: Any = import_module("megatron.core.transformer.spec_utils")
    tp, ep = groups.layer.tp.size(), groups.layer.ep.size()
    settings = transformer.TransformerConfig(
        num_layers=config.num_layers,
        hidden_size=config.hidden_size,
        ffn_hidden_size=config.ffn_hidden_size,
        num_attention_heads=config.num_attention_heads,
        num_moe_experts=config.num_moe_experts,
        moe_router_topk=1,
        moe_router_pre_softmax=True,
        moe_router_load_balancing_type="none",
        moe_token_dispatcher_type="allgather",
        tensor_model_parallel_size=tp,
        sequence_parallel=tp > 1,
        expert_model_parallel_size=ep,
        expert_tensor_parallel_size=1,
        use_cpu_initialization=True,
        perform_initialization=False,
        gradient_accumulation_fusion=False,
    )
    linear = mlp.MLPSubmodules(
        linear_fc1=layers.ColumnParallelLinear, linear_fc2=layers.RowParallelLinear
    )
    sequential = spec.ModuleSpec(of_experts.SequentialMLP, submodules=linear)
    layer = moe.MoELayer(settings, moe.MoESubmodules(experts=sequential))
    layer.router.bias = None  # it has one wherever experts have; the mini's has none
    return MegatronExperts(layer, mini)


def replace_layers(
    stage: nn.Module, config: LayoutConfig, groups: LayoutGroups
) -> None:
    """Put Megatron's layers where the mini's are."""
    tp = groups.layer.tp.size()
    layers = MegatronLayers(config, tp)
    for module in list(stage.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, ColumnParallelLinear):
                setattr(module, name, layers.column(child, tp))
            elif isinstance(child, RowParallelLinear):
                setattr(module, name, layers.row(child, tp))
            elif isinstance(child, ParallelRoutedMLP):
                setattr(module, name, make_experts(config, child, groups))


def build_upstream(
    rank: Rank, comparison: Comparison, groups: LayoutGroups, log: StepLog
) -> MegatronSide:
    """Return Megatron's layers in our stage, its schedule and its buffers around it."""
    distributed: Any = import_module("megatron.core.distributed")
    config, pp = comparison.config, groups.pp
    assert isinstance(config, LayoutConfig)
    stage = build_stage(rank, config, groups)
    replace_layers(stage, config, groups)
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
    # Of both it makes the shape of a message alone: the first is divided by cp.
    cp = groups.layer.cp.size()
    schedule.rows, schedule.length = ROWS * cp, schedule.length // cp
    inner: Any = schedule.stages[0]
    model = distributed.DistributedDataParallel(
        schedule.config,
        distributed.DistributedDataParallelConfig(overlap_grad_reduce=False),
        inner,
    )
    model.stage, model.vp_stage = inner.stage, inner.vp_stage
    schedule.stages = [model]
    return MegatronSide(stage, log, schedule, model, groups, comparison.learning_rate)
