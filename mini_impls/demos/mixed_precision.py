"""Mixed precision: what each dtype loses, and what brings it back."""

import argparse
import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
import torch.distributed as dist
from torch import nn

from mini_impls import launch
from mini_impls.demos.expected import data_parallel
from mini_impls.demos.training import counted, train_alone
from mini_impls.mixed_precision import (
    Float16Module,
    Float16Optimizer,
    MainGrads,
    train_step,
)
from mini_impls.mixed_precision_fp8 import (
    BlockScaling,
    CurrentScaling,
    DelayedScaling,
    Scaling,
    emulate_fp8,
    reduce_and_update,
)
from mini_impls.mixed_precision_scaler import DynamicGradScaler
from mini_impls.model import (
    GPT,
    Batch,
    GPTConfig,
    Reference,
    build_model,
    shard_batch,
)

SMALL_LR = 3e-4
"""An update of less than half a step of bfloat16 below 1.0, which is 2e-3."""

HALF = "mixed-18"
"""Weights of two bytes; gradients, main weights and both moments of four."""


class Unchecked(Float16Optimizer):
    """Takes the scale out, and updates whatever came of it."""

    def prepare_grads(self) -> bool:
        """Say that nothing overflowed."""
        super().prepare_grads()
        return False


class Forgetful(Float16Optimizer):
    """Forgets what rounding took: an update begins at the model's own weights."""

    def prepare_grads(self) -> bool:
        """Drop the main weights first."""
        for param, main in self.main_params.items():
            main.copy_(param)
        return super().prepare_grads()


def build(
    rank: launch.Rank,
    dtype: torch.dtype,
    scale: float | None = None,
    *,
    lr: float = 3e-3,
    kind: type[Float16Optimizer] = Float16Optimizer,
) -> tuple[nn.Module, Float16Optimizer]:
    """Return the default model in `dtype`, and what updates its main weights."""
    model = Float16Module(build_model(GPTConfig()).to(rank.device), dtype)
    scaler = None if scale is None else DynamicGradScaler(scale, growth_interval=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr)
    main_grads = MainGrads(model.parameters(), rank.group)
    return model, kind(optimizer, main_grads, scaler)


def of_this_rank(rank: launch.Rank, batch: Batch) -> Batch:
    """Return this rank's rows of a batch, on its device."""
    tokens, labels = shard_batch(batch, rank=rank.rank, world_size=rank.world_size)
    return tokens.to(rank.device), labels.to(rank.device)


def train(
    rank: launch.Rank,
    reference: Reference,
    model: nn.Module,
    optimizer: Float16Optimizer,
    finish_step: Callable[[], None] = lambda: None,
) -> None:
    """Train; say each loss beside that of one process, and each step not made."""
    for step, batch in enumerate(counted(rank, reference.batches)):
        scaler = optimizer.grad_scaler
        scale = 1.0 if scaler is None else float(scaler.scale)
        loss, was_made, _ = train_step(model, optimizer, [of_this_rank(rank, batch)])
        finish_step()
        mean = torch.tensor(loss, device=rank.device)
        dist.all_reduce(mean, group=rank.group)
        mean /= rank.world_size
        skipped = f"; overflow at 2^{math.log2(scale):.0f}, no update"
        alone = reference.losses[step]
        rank.say(
            f"step {step}: loss {mean:.4f}, one process {alone:.4f}"
            + ("" if was_made else skipped)
        )
    # Parameters hold their hooks, and these the parameters, where no collector looks.
    optimizer.main_grads.main_grad.clear()


# --- what small updates come to ---


def count_moved(gpt: GPT) -> str:
    """Return how many weights of the norms, which begin at 1.0, are elsewhere."""
    norms = [m.weight for m in gpt.modules() if isinstance(m, nn.LayerNorm)]
    moved = sum(int((weight != 1.0).sum()) for weight in norms)
    return f"{moved} of {sum(weight.numel() for weight in norms)}"


def show_small_updates(rank: launch.Rank, batches: Sequence[Batch]) -> None:
    """Train in bfloat16 with and without main weights; say which weights move."""
    for text, kind in (("with", Float16Optimizer), ("without", Forgetful)):
        model, optimizer = build(rank, torch.bfloat16, lr=SMALL_LR, kind=kind)
        for batch in counted(rank, batches):
            train_step(model, optimizer, [of_this_rank(rank, batch)])
        gpt = model.get_submodule("module")
        assert isinstance(gpt, GPT)
        rank.say(f"{text} main weights: {count_moved(gpt)} weights of norms have moved")


# --- an overflow on one rank of those that share a model ---


def show_overflow_of_one(rank: launch.Rank) -> None:
    """Give each rank parameters of its own, and the last an overflow."""
    for name, group in (("together", rank.group), ("each by itself", None)):
        layer = Float16Module(nn.Linear(4, 4, bias=False).to(rank.device), torch.half)
        optimizer = Float16Optimizer(
            torch.optim.SGD(layer.parameters(), 0.1),
            MainGrads(layer.parameters()),
            DynamicGradScaler(2.0**10, hysteresis=1),
            group,
        )
        large = 1e4 if rank.rank == rank.world_size - 1 else 1.0
        x = torch.full((1, 4), large, device=rank.device)
        optimizer.scale_loss(layer(x).sum()).backward()
        was_made, _ = optimizer.step()
        rank.say_each(f"checked {name}: {'update' if was_made else 'no update'}")


# --- all of it ---


def fp8_ways() -> dict[str, Callable[[], tuple[Scaling, ...]]]:
    """Return what makes the scalings of a layer, by the name it is shown under."""
    return {
        "FP8 emulated, scales of the tensors": lambda: (CurrentScaling(),) * 3,
        "FP8 emulated, scales of the last steps": lambda: (
            DelayedScaling(),
            DelayedScaling(),
            DelayedScaling(),
        ),
        "FP8 emulated, scales of blocks of 32": lambda: (BlockScaling(1, 32),) * 3,
    }


def train_in_fp8(
    rank: launch.Rank, reference: Reference, make: Callable[[], tuple[Scaling, ...]]
) -> None:
    """Train with the products of a layer in an emulated FP8, by these scalings."""
    gpt = build_model(GPTConfig()).to(rank.device)
    scalings = emulate_fp8(gpt.layers, make)
    delayed = [s for s in scalings if isinstance(s, DelayedScaling)]
    adamw = torch.optim.AdamW(gpt.parameters(), 3e-3)
    optimizer = Float16Optimizer(adamw, MainGrads(gpt.parameters(), rank.group))

    def finish_step() -> None:
        if delayed:
            reduce_and_update(delayed, rank.group)

    train(rank, reference, gpt, optimizer, finish_step)


def demo(rank: launch.Rank, args: argparse.Namespace) -> None:
    """Train the same model in each way, beside one process in float32."""
    reference = train_alone(rank, args.steps)
    config = reference.model.config
    half = torch.float16
    ways = {
        "bfloat16, main weights": partial(build, rank, torch.bfloat16),
        "float16, a scale that follows": partial(build, rank, half, args.scale),
        "float16, nothing checked": partial(
            build, rank, half, args.scale, kind=Unchecked
        ),
    }
    rank.recorder.parts = len(ways) + len(fp8_ways()) + 1
    for name, begin in ways.items():
        rank.recorder.begin(name)
        rank.recorder.expect(data_parallel(config, rank, stage=0, convention=HALF))
        rank.say(f"--- {name}")
        train(rank, reference, *begin())
    for name, make in fp8_ways().items():
        rank.recorder.begin(name)
        rank.recorder.expect(data_parallel(config, rank, stage=0))
        rank.say(f"--- {name}")
        train_in_fp8(rank, reference, make)
    name = f"bfloat16, updates of {SMALL_LR:g}"
    rank.recorder.begin(name)
    rank.recorder.expect(data_parallel(config, rank, stage=0, convention=HALF))
    rank.say(f"--- {name}")
    show_small_updates(rank, reference.batches)
    rank.say("--- float16, an overflow on the last rank alone")
    show_overflow_of_one(rank)


def check(args: argparse.Namespace) -> None:
    """Refuse a scale below what a scaler goes down to, or beyond float32."""
    if not 1 <= args.scale <= torch.finfo(torch.float32).max:
        raise ValueError(f"--scale {args.scale} is not between 1 and 3e38")


def main(argv: list[str] | None = None) -> int:
    """Run the demo on this command line's ranks; return the exit status."""
    options = {"scale": (2.0**20, "where float16's scale begins (default 2^20)")}
    return launch.main(
        demo, description="Mixed precision.", check=check, options=options, argv=argv
    )
