"""The mini's side of a layout, and what both sides of it show."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from mini_impls.compare.sides import Comparison, Held, SetPhase, optimizer_state
from mini_impls.compare.steps import StepLog
from mini_impls.launch import Rank
from mini_impls.layout_stages import (
    LayoutConfig,
    LayoutGroups,
    LayoutStage,
    build_layout_model,
)
from mini_impls.layout_train import LayoutTrainer, Neighbours, OneForwardOneBackward
from mini_impls.model import Batch

ROWS = 2
"""Sequences of a microbatch."""
MICROBATCHES = 2


class LayoutSide:
    """A side whose ranks hold slices of a stage; only the last stages know a loss."""

    optimizer: torch.optim.Optimizer

    def __init__(self, stage: nn.Module, log: StepLog) -> None:
        self.stage, self.log = stage, log

    def parameters(self) -> dict[str, Tensor]:
        """Return the slices of this rank's stage."""
        return {name: p.detach() for name, p in self.stage.named_parameters()}

    def gradients(self) -> dict[str, Tensor]:
        """Return the slices of their gradients."""
        named = self.stage.named_parameters()
        return {name: p.grad for name, p in named if p.grad is not None}

    def held(self) -> Held:
        """Return the slices, and the buffers of gradients."""
        return {
            "parameters": list(self.parameters().values()),
            "gradients": self.buffers(),
            "optimizer state": optimizer_state(self.optimizer),
        }

    def buffers(self) -> list[Tensor]:
        """Return what gradients are views of."""
        raise NotImplementedError

    def watched(self) -> Iterable[Tensor]:
        """Return nothing: no message waits for a gradient of a weight."""
        return ()


# --- the mini ---


class LoggedNeighbours(Neighbours):
    """The mini's transfers, saying which phase each tensor is of."""

    log: StepLog

    def communicate(
        self,
        *,
        send_prev: Tensor | None = None,
        recv_prev: bool = False,
        send_next: Tensor | None = None,
        recv_next: bool = False,
    ) -> tuple[Tensor | None, Tensor | None]:
        """Say of what is sent whether it is an output or a gradient."""
        rank, last = self.pp.rank(), self.pp.size() - 1
        self.log.mark(
            send_next if rank < last else None, send_prev if rank > 0 else None
        )
        return super().communicate(
            send_prev=send_prev,
            recv_prev=recv_prev,
            send_next=send_next,
            recv_next=recv_next,
        )

    def get_buffer(self, peer: int) -> Tensor:
        """Say of what will come whether it is an output or a gradient."""
        buffer = super().get_buffer(peer)
        self.log.set_phase("forward" if peer < self.pp.rank() else "backward", buffer)
        return buffer


class LoggedSchedule(OneForwardOneBackward):
    """The mini's schedule, saying what it does when."""

    log: StepLog

    def forward_step(self, microbatches: Any, i: int, *rest: Any) -> Tensor | None:
        """Run forward."""
        with self.log.step("F", i, self.neighbours.pp.rank()):
            return super().forward_step(microbatches, i, *rest)

    def backward_step(self, *args: Any) -> Tensor | None:
        """Run backward."""
        with self.log.step("B", 0, self.neighbours.pp.rank()):
            return super().backward_step(*args)


class MiniSide(LayoutSide):
    """Ours."""

    def __init__(self, trainer: LayoutTrainer, log: StepLog) -> None:
        super().__init__(trainer.stage, log)
        self.trainer, self.optimizer = trainer, trainer.optimizer
        near = trainer.schedule.neighbours
        logged = LoggedNeighbours(near.pp, near.shape, near.like)
        schedule = LoggedSchedule(trainer.stage, logged)
        logged.log = schedule.log = log
        trainer.schedule = schedule
        trainer.optimizer.register_step_pre_hook(lambda *_: log.set_phase("optimizer"))

    def step(self, batch: Batch, set_phase: SetPhase) -> float | None:
        """All microbatches forward and backward, sums, update."""
        self.log.start(set_phase)
        set_phase("forward")
        return self.trainer.step(batch)

    def buffers(self) -> list[Tensor]:
        """Return the mini's own."""
        return [buffer.data for buffer in self.trainer.buffers]


def build_mini(
    rank: Rank, comparison: Comparison, groups: LayoutGroups, log: StepLog
) -> MiniSide:
    """Return the mini."""
    config = comparison.config
    assert isinstance(config, LayoutConfig)
    tokens = config.max_sequence_length // groups.layer.cp.size()
    trainer = LayoutTrainer(
        build_stage(rank, config, groups),
        groups,
        microbatches=MICROBATCHES,
        microbatch_shape=(ROWS, tokens, config.hidden_size),
        learning_rate=comparison.learning_rate,
    )
    return MiniSide(trainer, log)


def build_stage(rank: Rank, config: LayoutConfig, groups: LayoutGroups) -> LayoutStage:
    """Return this rank's stage of the model that both sides begin with."""
    return LayoutStage(build_layout_model(config).to(rank.device), groups)
