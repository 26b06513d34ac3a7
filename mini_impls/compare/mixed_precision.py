"""Mixed precision beside torch's autocast and GradScaler, and Megatron's optimizer."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from mini_impls import mixed_precision
from mini_impls.compare import mixed_precision_megatron
from mini_impls.compare.mixed_precision_sizes import (
    GROWTH,
    HALF,
    INTERVAL,
    OF_ONE_PROCESS,
    SCALE,
    kept,
)
from mini_impls.compare.sides import (
    SIDES,
    Comparison,
    DataParallelSide,
    Formula,
    Formulas,
    Held,
    SetPhase,
    Sides,
    Tolerance,
    all_bytes,
    optimizer_state,
    trained,
)
from mini_impls.launch import Rank
from mini_impls.mixed_precision_scaler import DynamicGradScaler
from mini_impls.model import GPT, Batch, build_model, compute_loss
from readerkit.content.vocabulary import Category, SideName

ONE_BUCKET_MB = 1024.0
"""More than the model has: torch's DDP too sends one bucket."""


class TorchMiniSide(DataParallelSide):
    """Ours, whose main weights are held against parameters in float32."""

    def __init__(self, rank: Rank, gpt: GPT, learning_rate: float) -> None:
        model = mixed_precision.Float16Module(gpt, HALF)
        self.mixed = mixed_precision.Float16Optimizer(
            torch.optim.AdamW(gpt.parameters(), learning_rate),
            mixed_precision.MainGrads(gpt.parameters(), rank.group),
            DynamicGradScaler(
                SCALE,
                growth_factor=GROWTH,
                backoff_factor=1 / GROWTH,
                growth_interval=INTERVAL,
                hysteresis=1,
            ),
        )
        super().__init__(rank, model, gpt, self.mixed.optimizer)

    def step(self, batch: Batch, set_phase: SetPhase) -> float:
        """Forward, backward of the scaled loss, and an update unless it overflowed."""
        tokens, labels = self.of_this_rank(batch)
        self.mixed.zero_grad()
        set_phase("forward")
        loss = compute_loss(self.model(tokens), labels)
        set_phase("backward")
        self.mixed.scale_loss(loss).backward()
        self.mixed.main_grads.finish_grad_sync()
        set_phase("optimizer")
        self.mixed.step()
        return loss.item()

    def parameters(self) -> dict[str, Tensor]:
        """Return the main weights."""
        named = self.module.named_parameters()
        return {name: self.mixed.main_params[param] for name, param in named}

    def gradients(self) -> dict[str, Tensor]:
        """Return the gradients in float32."""
        main_grad = self.mixed.main_grads.main_grad
        return {
            name: main_grad[param] for name, param in self.module.named_parameters()
        }

    def held(self) -> Held:
        """Return them; main weights count as state of the optimizer."""
        mains = list(self.parameters().values())
        return {
            "parameters": [param.detach() for param in self.module.parameters()],
            "gradients": [self.mixed.main_grads.grad_data],
            "optimizer state": [*mains, *optimizer_state(self.optimizer)],
        }


class TorchScaledSide(DataParallelSide):
    """torch's: parameters in float32, which autocast rounds for each operation."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        device = self.rank.device.type
        self.scaler = torch.amp.GradScaler(
            device, SCALE, GROWTH, 1 / GROWTH, growth_interval=INTERVAL
        )

    def step(self, batch: Batch, set_phase: SetPhase) -> float:
        """Forward, backward of the scaled loss, and an update unless it overflowed."""
        tokens, labels = self.of_this_rank(batch)
        self.zero_grad()
        set_phase("forward")
        with torch.autocast(self.rank.device.type, HALF):
            logits = self.model(tokens)
        loss = compute_loss(logits, labels)
        set_phase("backward")
        self.scaler.scale(loss).backward()
        set_phase("optimizer")
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()


def build_torch(rank: Rank, comparison: Comparison) -> Sides:
    """Return the mini, and torch's DDP, autocast and GradScaler."""
    sides = [build_model(comparison.config).to(rank.device) for _ in range(2)]
    sides[1].to(HALF).float()  # as the mini's main weights begin
    mini = TorchMiniSide(rank, sides[0], comparison.learning_rate)
    ddp = DistributedDataParallel(
        sides[1],
        process_group=rank.group,
        bucket_cap_mb=ONE_BUCKET_MB,
        gradient_as_bucket_view=True,
    )
    optimizer = torch.optim.AdamW(sides[1].parameters(), comparison.learning_rate)
    upstream = TorchScaledSide(rank, ddp, sides[1], optimizer)
    params = list(sides[1].parameters())
    sent = {"all_reduce": all_bytes(params, "gradients, each once")}
    held: Mapping[SideName, Mapping[Category, Formula]]
    held = {"mini": kept(list(sides[0].parameters())), "upstream": trained(params)}
    expected = Formulas(dict.fromkeys(SIDES, sent), held)
    return Sides(mini, upstream, {rank.group.group_name: "dp"}, expected)


COMPARISONS = (
    *mixed_precision_megatron.COMPARISONS,
    Comparison(
        mini="mixed_precision",
        # Of two copies of a model in 16 bits only the gradients are sent, in 32.
        covers=frozenset({"mixed precision"}),
        upstream="torch",
        build=build_torch,
        tolerance=Tolerance(
            5e-2,
            "autocast keeps norms and the sums of residuals in float32, which the mini "
            "has in float16",
        ),
        one_process_tolerance=OF_ONE_PROCESS,
    ),
)
