"""The pipeline mini beside torch's and Megatron's schedules.

Both sides run the same stages of the same model; what differs is who orders the steps
and moves the tensors.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from mini_impls import pipeline, schedules
from mini_impls.compare import pipeline_megatron, pipeline_torch
from mini_impls.compare.sides import (
    Comparison,
    Formula,
    Formulas,
    Held,
    Schedule,
    SetPhase,
    Sides,
    Tolerance,
    optimizer_state,
    trained,
)
from mini_impls.compare.steps import StepLog
from mini_impls.demos.formulas import get_pipeline_traffic
from mini_impls.launch import Rank
from mini_impls.model import Batch, GPTConfig, build_model, shard_batch
from mini_impls.pipeline_stages import PipelineStage, split_model
from mini_impls.schedules import Step
from mini_impls.timeline import Transfer, add_send_recv
from readerkit.evidence.record import Limit

Shape = tuple[int, int, int]
"""Of what a stage hands on: sequences, tokens, width."""

CHUNKS = 2
"""Model chunks a rank of the interleaved schedule."""
COUNTED_WORLDS = (2, 4)
"""Numbers of ranks for which the mirror bounds what differs with chunks.

How many messages the two sides post in another order depends there on the parity of the
ranks and on how the rounds of chunks fall; the bounds are counts, and not a formula.
"""
COUNTED = (
    Limit(
        "counted",
        "how often waits and order may differ",
        "there is no formula: the bounds are what was counted on 2 and on 4 ranks",
    ),
)
LAYERS = 4
ROWS = 2
"""Sequences of a microbatch."""


class PipelineSide(ABC):
    """A side whose ranks hold stages; only the last knows the loss."""

    def __init__(
        self,
        rank: Rank,
        stages: Mapping[int, nn.Module],
        log: StepLog,
        learning_rate: float,
    ) -> None:
        self.rank, self.stages, self.log = rank, stages, log
        self.params = [p for stage in stages.values() for p in stage.parameters()]
        self.optimizer = torch.optim.AdamW(self.params, learning_rate)

    def step(self, batch: Batch, set_phase: SetPhase) -> float | None:
        """All microbatches forward and backward, then the update."""
        self.optimizer.zero_grad()
        self.log.start(set_phase)
        losses = self.run(batch)
        set_phase("optimizer")
        self.optimizer.step()
        return sum(losses) / len(losses) if losses else None

    @abstractmethod
    def run(self, batch: Batch) -> list[float]:
        """Run the schedule; return the microbatches' losses where the last stage is."""

    def parameters(self) -> dict[str, Tensor]:
        """Return the parameters of this rank's stages."""
        stages = self.stages.values()
        return {n: p.detach() for s in stages for n, p in s.named_parameters()}

    def gradients(self) -> dict[str, Tensor]:
        """Return their gradients."""
        named = [pair for s in self.stages.values() for pair in s.named_parameters()]
        return {name: p.grad for name, p in named if p.grad is not None}

    def held(self) -> Held:
        """Return what belongs to this rank's stages."""
        return {
            "parameters": list(self.parameters().values()),
            "gradients": list(self.gradients().values()),
            "optimizer state": optimizer_state(self.optimizer),
        }

    def watched(self) -> Iterable[Tensor]:
        """Return nothing: no message waits for a gradient of a weight."""
        return ()


# --- the mini ---


class LoggedExecutor(pipeline.PipelineExecutor):
    """The mini's executor, saying what it does when."""

    log: StepLog

    def forward_step(self, step: Step, batches: Any, losses: list[Tensor]) -> None:
        """Run forward."""
        with self.log.step("F", step.microbatch_id, step.stage):
            super().forward_step(step, batches, losses)

    def backward_step(self, step: Step) -> None:
        """Run backward."""
        with self.log.step("B", step.microbatch_id, step.stage):
            super().backward_step(step)

    def get_tensor(self, transfer: Transfer) -> Tensor:
        """Return a tensor and say whose it is."""
        tensor = super().get_tensor(transfer)
        forward = transfer.made_by.kind == "F"
        self.log.set_phase("forward" if forward else "backward", tensor)
        return tensor


class MiniSide(PipelineSide):
    """Ours."""

    def __init__(self, schedule: Schedule, shape: Shape, *args: Any) -> None:
        super().__init__(*args)
        orders = schedules.get_orders(
            schedule.name, self.rank.world_size, schedule.microbatches, schedule.chunks
        )
        self.plan = add_send_recv(orders)[self.rank.rank]
        self.microbatches = schedule.microbatches
        stages: Any = self.stages
        self.executor = LoggedExecutor(
            stages, shape, self.rank.group, overlap=schedule.chunks > 1
        )
        self.executor.log = self.log

    def run(self, batch: Batch) -> list[float]:
        """Carry out the plan."""
        return self.executor.run(self.plan, cut(batch, self.microbatches))


def cut(batch: Batch, microbatches: int) -> list[Batch]:
    """Return the microbatches of a batch."""
    return [
        shard_batch(batch, rank=i, world_size=microbatches) for i in range(microbatches)
    ]


# --- both ---


class TorchSide(PipelineSide):
    """A schedule of torch.distributed.pipelining."""

    def __init__(self, schedule: Schedule, *args: Any) -> None:
        super().__init__(*args)
        self.schedule = pipeline_torch.build_schedule(
            schedule, self.stages, self.rank, self.log
        )

    def run(self, batch: Batch) -> list[float]:
        """Run the schedule."""
        first, last = 0 in self.stages, self.schedule.num_stages - 1 in self.stages
        return self.schedule.run(batch, first=first, last=last)


class MegatronSide(PipelineSide):
    """A schedule of Megatron."""

    def __init__(
        self,
        schedule: Schedule,
        options: pipeline_megatron.SendOptions,
        sizes: GPTConfig,
        rows: int,
        *args: Any,
    ) -> None:
        super().__init__(*args)
        self.schedule = pipeline_megatron.MegatronSchedule(
            schedule, options, sizes, rows, self.stages, self.rank, self.log
        )

    def run(self, batch: Batch) -> list[float]:
        """Run the schedule."""
        return self.schedule.run(cut(batch, self.schedule.microbatches))


def build(name: str, rank: Rank, comparison: Comparison) -> Sides:
    """Return the mini and one upstream's schedule of the same kind."""
    chunks, config = comparison.chunks, comparison.config
    schedule = Schedule(name, comparison.microbatches, chunks)
    rows = comparison.rows_per_rank // comparison.microbatches
    shape = (rows, config.max_sequence_length, config.hidden_size)
    groups: dict[str, str] = {rank.group.group_name: "pp"}
    if comparison.upstream.startswith("megatron"):
        groups |= pipeline_megatron.start(rank, chunks)

    def stages() -> dict[int, PipelineStage]:
        gpt = build_model(config).to(rank.device)
        return split_model(gpt, rank.rank, rank.world_size, chunks)

    logs = [StepLog("mini", rank.rank), StepLog("upstream", rank.rank)]
    lr = comparison.learning_rate
    mini = MiniSide(schedule, shape, rank, stages(), logs[0], lr)
    rest = (rank, stages(), logs[1], lr)
    upstream: PipelineSide
    if comparison.upstream.startswith("megatron"):
        options = pipeline_megatron.OPTIONS[comparison.upstream]
        upstream = MegatronSide(schedule, options, config, rows, *rest)
    else:
        upstream = TorchSide(schedule, *rest)
    return Sides(
        mini,
        upstream,
        groups,
        formulas(mini, shape, schedule),
        schedule,
        lambda: tuple(logs[0].bars + logs[1].bars),
    )


def formulas(side: PipelineSide, shape: Shape, schedule: Schedule) -> Formulas:
    """Return one activation and one gradient a boundary and microbatch."""
    traffic = get_pipeline_traffic(
        shape, schedule.microbatches, side.rank, schedule.chunks
    )
    text = f"{schedule.microbatches} microbatches x neighbours of each stage x {shape}"
    sent = {op: Formula(n, text) for op, n in traffic.items()}
    kept = trained(side.params, "parameters of this rank's stages")
    return Formulas.alike(sent, kept)


def resize(comparison: Comparison, world_size: int) -> Comparison:
    """Return the comparison with a layer a stage or more, and enough microbatches."""
    stages = world_size * comparison.chunks
    microbatches = microbatches_for(world_size)
    return replace(
        comparison,
        config=GPTConfig(num_layers=-(-LAYERS // stages) * stages),
        microbatches=microbatches,
        rows_per_rank=ROWS * microbatches,
    )


def check(schedule: str, chunks: int, world_size: int) -> None:
    """Raise ValueError where schedule and ranks do not fit."""
    if chunks > 1 and world_size not in COUNTED_WORLDS:
        counted = " or ".join(map(str, COUNTED_WORLDS))
        raise ValueError(
            f"{schedule} comparisons run on {counted} ranks, not {world_size}: how "
            "often the order of messages may differ is known for these alone"
        )
    schedules.get_orders(schedule, world_size, microbatches_for(world_size), chunks)


def microbatches_for(world_size: int) -> int:
    """Return the least power of two that is 4 or more and not below `world_size`.

    The mini and Megatron divide the loss by it before the backward, torch the gradients
    after: the same numbers only where dividing rounds nothing.
    """
    return max(4, 1 << (world_size - 1).bit_length())


def comparison(upstream: str, schedule: str, chunks: int = 1) -> Comparison:
    """Return the comparison with one schedule of an upstream."""
    megatron = upstream.startswith("megatron")
    return Comparison(
        mini="pipeline",
        upstream=upstream,
        build=partial(build, schedule),
        tolerance=Tolerance(
            0.0, "the same steps on the same tensors, whoever orders them"
        ),
        data_parallel=False,
        chunks=chunks,
        upstreams=("megatron",) if megatron else ("pytorch",),
        shims=("current_device", "synchronize", "cuda_is_cpu") if megatron else (),
        limits=COUNTED if chunks > 1 else (),
        check=partial(check, schedule, chunks),
        resize=resize,
    )


COMPARISONS = (
    comparison("torch_1f1b", "1f1b"),
    comparison("torch_gpipe", "gpipe"),
    comparison("torch_interleaved", "interleaved", CHUNKS),
    comparison("megatron_1f1b", "1f1b"),
    comparison("megatron_interleaved", "interleaved", CHUNKS),
    comparison("megatron_interleaved_batched", "interleaved", CHUNKS),
    comparison("megatron_interleaved_freed", "interleaved", CHUNKS),
)
