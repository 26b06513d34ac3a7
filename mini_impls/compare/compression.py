"""Compressed gradients beside the communication hooks of torch's DDP."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.algorithms.ddp_comm_hooks import (
    default_hooks,
    powerSGD_hook,
    quantization_hooks,
)
from torch.nn.parallel import DistributedDataParallel

from mini_impls import compression
from mini_impls.compare import shims
from mini_impls.compare.sides import (
    Comparison,
    DataParallelSide,
    Formula,
    Formulas,
    Sides,
    Tolerance,
    trained,
)
from mini_impls.launch import Rank
from mini_impls.model import build_model

ONE_BUCKET_MB = 1024.0
"""More than the model has: torch's DDP too sends one bucket."""
RANK = 2
"""Columns of P and Q."""


def build(
    rank: Rank,
    comparison: Comparison,
    compress: compression.Compressor,
    register: Callable[[DistributedDataParallel], None],
) -> tuple[DataParallelSide, DataParallelSide]:
    """Return the mini with a compressor, and torch's DDP with a hook."""
    sides = []
    for is_mini in (True, False):
        gpt = build_model(comparison.config).to(rank.device)
        model: nn.Module
        if is_mini:
            model = compression.CompressedDataParallel(gpt, rank.group, compress)
        else:
            model = DistributedDataParallel(
                gpt,
                process_group=rank.group,
                bucket_cap_mb=ONE_BUCKET_MB,
                gradient_as_bucket_view=True,
            )
            register(model)
        optimizer = torch.optim.AdamW(gpt.parameters(), comparison.learning_rate)
        sides.append(DataParallelSide(rank, model, gpt, optimizer))
    return sides[0], sides[1]


# --- float16 ---


def build_fp16(rank: Rank, comparison: Comparison) -> Sides:
    """Return both sides, whose gradients travel in two bytes an element."""

    def register(model: DistributedDataParallel) -> None:
        model.register_comm_hook(rank.group, default_hooks.fp16_compress_hook)

    compress = compression.all_reduce_as(torch.float16)
    mini, upstream = build(rank, comparison, compress, register)
    params = list(mini.module.parameters())
    numel = sum(param.numel() for param in params)
    sent = {"all_reduce": Formula(2 * numel, f"2 B x {numel:,} gradients, each once")}
    formulas = Formulas.alike(sent, trained(params))
    return Sides(mini, upstream, {rank.group.group_name: "dp"}, formulas)


# --- eight bits ---


class _Gathered:
    """The work of an all-gather whose future holds what that of NCCL holds."""

    def __init__(self, parts: list[Tensor], work: Any) -> None:
        self.parts, self.work = parts, work

    def get_future(self) -> "torch.futures.Future[list[Tensor]]":
        """Wait; return a list of one tensor, with a row of each rank."""
        self.work.wait()
        future: torch.futures.Future[list[Tensor]] = torch.futures.Future()
        future.set_result([torch.stack(self.parts)])  # (W, S)
        return future


@contextmanager
def _gathers_in_one() -> Iterator[None]:
    call = dist.all_gather

    def gather(parts: list[Tensor], part: Tensor, **options: Any) -> Any:
        work = call(parts, part, **options)
        return work if work is None else _Gathered(parts, work)

    with patch.object(dist, "all_gather", gather):
        yield


# Beside the others, it would be a part of what every record is made from.
shims._SHIMS["gathers_in_one"] = (
    "an all-gather is waited for when its future is asked for, which holds a list of "
    "one tensor, a row of each rank, as NCCL's does: torch's quantizing hook takes the "
    "first of that list for all ranks' tensors, and gloo's list is those tensors",
    _gathers_in_one,
)


def build_quantization(rank: Rank, comparison: Comparison) -> Sides:
    """Return both sides, whose gradients travel in one byte an element."""

    def register(model: DistributedDataParallel) -> None:
        hook = quantization_hooks.quantization_pertensor_hook
        model.register_comm_hook(rank.group, hook)

    mini, upstream = build(rank, comparison, compression.all_gather_uint8, register)
    params = list(mini.module.parameters())
    numel = sum(param.numel() for param in params)
    world = rank.world_size
    sent = Formula(
        world * (numel + 2 * 4),
        f"{world} ranks x (1 B x {numel:,} gradients + 4 B x scale and zero)",
    )
    formulas = Formulas.alike({"all_gather": sent}, trained(params))
    return Sides(mini, upstream, {rank.group.group_name: "dp"}, formulas)


# --- PowerSGD ---


class DrawnInTorchsOrder(compression.PowerSGD):
    """Both sides start from the same random Q.

    The hook draws for all matrices of one shape, then for those of the next.
    """

    def draw_qs(self, matrices: list[Tensor]) -> list[Tensor]:
        """Return each matrix's own Q of what was drawn in that order."""
        shapes = [matrix.shape for matrix in matrices]
        order = sorted(range(len(shapes)), key=lambda i: shapes.index(shapes[i]))
        drawn = super().draw_qs([matrices[i] for i in order])
        of = dict(zip(order, drawn, strict=True))
        return [of[i] for i in range(len(shapes))]


def low_rank_formulas(gpt: nn.Module, power: compression.PowerSGD) -> Formulas:
    """Return what is sent: the small gradients whole, and P and Q of the others."""
    params = list(gpt.parameters())
    matrices = [param.view(param.size(0), -1) for param in params]
    thin = [m for m in matrices if power.is_worth_it(m)]
    whole = sum(m.numel() for m in matrices if not power.is_worth_it(m))
    sides = sum(m.size(0) + m.size(1) for m in thin)
    sent = Formula(
        4 * (whole + RANK * sides),
        f"4 B x ({whole:,} elements sent whole + rank {RANK} x {sides:,} rows and "
        f"columns of {len(thin)} matrices)",
    )
    return Formulas.alike({"all_reduce": sent}, trained(params))


def build_powersgd(rank: Rank, comparison: Comparison) -> Sides:
    """Return both sides, whose matrices travel as P and Q."""
    states = [
        powerSGD_hook.PowerSGDState(
            rank.group, matrix_approximation_rank=RANK, start_powerSGD_iter=2
        )
        for _ in range(2)
    ]
    # What the hook draws first is the seed of every Q; of two states it is the same.
    power = DrawnInTorchsOrder(RANK, seed=int(states[1].rng.randint(1_000_000_000)))

    def register(model: DistributedDataParallel) -> None:
        model.register_comm_hook(states[0], powerSGD_hook.powerSGD_hook)

    mini, upstream = build(rank, comparison, power, register)
    formulas = low_rank_formulas(mini.module, power)
    return Sides(mini, upstream, {rank.group.group_name: "dp"}, formulas)


# --- all ---

TOLERANCE = Tolerance(
    1e-3,
    "gloo's ring starts each chunk of a tensor at another rank, and the two buckets "
    "hold their gradients in two orders: sums of more than two ranks round apart",
)
OF_ROUNDED_SUMS = Tolerance(
    1e-2,
    "each partial sum is rounded to float16, so another order of more than two ranks "
    "changes last bits, and AdamW divides small sums by their size",
)
IN_RANK_ORDER = Tolerance(
    0.0, "both gather, and add all ranks' numbers in the order of the ranks"
)
OF_TWO_RANKS = Tolerance(0.0, "two ranks: a + b = b + a, each rounded in one way")
COMPARISONS = (
    Comparison(
        mini="compression",
        upstream="torch_fp16",
        build=build_fp16,
        tolerance=OF_ROUNDED_SUMS,
        of_two_ranks=OF_TWO_RANKS,
        one_process_tolerance=Tolerance(
            1e-2, "one process rounds no gradient to 2 bytes"
        ),
    ),
    Comparison(
        mini="compression",
        upstream="torch_quantization",
        build=build_quantization,
        tolerance=IN_RANK_ORDER,
        one_process_tolerance=Tolerance(
            5e-2, "one process rounds no gradient to 1 byte"
        ),
        shims=("gathers_in_one",),
    ),
    Comparison(
        mini="compression",
        upstream="torch_powersgd",
        build=build_powersgd,
        tolerance=TOLERANCE,
        of_two_ranks=OF_TWO_RANKS,
        one_process_tolerance=Tolerance(
            0.5,
            "one process trains on whole gradients, this on two columns of each",
        ),
        reseeds_gpu="upstream seeds every generator before it draws, and puts back "
        "the CPU's alone",
    ),
)
