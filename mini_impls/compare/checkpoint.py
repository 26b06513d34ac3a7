"""Sharded checkpoints beside torch.distributed.checkpoint, and beside Megatron's.

Both sides train the same shards by the same code. After each step all state is saved
from one layout and loaded into the other, which was wiped before: rows become columns,
columns rows. What was lost or put in another place would show in the next step.
"""

import pickle
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard

from mini_impls import checkpoint
from mini_impls.checkpoint_files import WriteResult
from mini_impls.checkpoint_plan import (
    HeldTensor,
    SavePlan,
    create_local_plan,
    dedup_save_plans,
)
from mini_impls.compare import megatron, shims
from mini_impls.compare.sides import (
    SIDES,
    Comparison,
    Formula,
    Formulas,
    Held,
    SetPhase,
    Sides,
    Tolerance,
    optimizer_state,
)
from mini_impls.demos.checkpoint import LAYOUTS, ShardedTraining, cut
from mini_impls.launch import Rank
from mini_impls.model import Batch, GPTConfig, build_model
from readerkit.content.vocabulary import Category, SideName

EXTRA = {"step": 1}


class CheckpointSide(ABC):
    """What both sides do around a checkpoint of their own."""

    def __init__(self, rank: Rank, config: GPTConfig, directory: Path) -> None:
        self.rank, self.directory = rank, directory
        self.trainings = [ShardedTraining(rank, config, layout) for layout in LAYOUTS]

    def step(self, batch: Batch, set_phase: SetPhase) -> float:
        """Train; save, and load what the other layout holds."""
        here, there = self.trainings
        loss = here.step(batch, set_phase)
        set_phase("checkpoint")
        self.save(here)
        for held in there.state().values():
            held.data.fill_(torch.nan)
        self.load(there)
        dist.barrier(self.rank.group)  # all have read before the files go
        if self.rank.rank == 0:
            shutil.rmtree(self.directory)
        self.trainings = [there, here]
        return loss

    def parameters(self) -> dict[str, Tensor]:
        """Return the boxes that the next step trains."""
        return {n: p.detach() for n, p in self.trainings[0].params.items()}

    def gradients(self) -> dict[str, Tensor]:
        """Return the gradients of the step before, whose layout was the other."""
        params = self.trainings[1].params.items()
        return {name: p.grad for name, p in params if p.grad is not None}

    def held(self) -> Held:
        """Return what both layouts keep."""
        params = [p for each in self.trainings for p in each.params.values()]
        states = [optimizer_state(each.optimizer) for each in self.trainings]
        return {
            "parameters": [param.detach() for param in params],
            "gradients": [param.grad for param in params if param.grad is not None],
            "optimizer state": [tensor for state in states for tensor in state],
        }

    def watched(self) -> list[Tensor]:
        """Return nothing: backward computes the gradients of whole parameters."""
        return []

    @abstractmethod
    def save(self, training: ShardedTraining) -> None:
        """Write parameters and optimizer state."""

    @abstractmethod
    def load(self, training: ShardedTraining) -> None:
        """Read them into another layout."""


class MiniSide(CheckpointSide):
    """Ours."""

    def save(self, training: ShardedTraining) -> None:
        """Write this rank's part of the plan."""
        checkpoint.save(self.directory, training.state(), self.rank.group, extra=EXTRA)

    def load(self, training: ShardedTraining) -> None:
        """Read the boxes of this rank."""
        checkpoint.load(self.directory, training.state(), self.rank.group)


class TorchSide(CheckpointSide):
    """Torch's."""

    def __init__(self, rank: Rank, config: GPTConfig, directory: Path) -> None:
        super().__init__(rank, config, directory)
        self.mesh = DeviceMesh.from_group(rank.group, rank.device.type)

    def save(self, training: ShardedTraining) -> None:
        """Write what the plan of all leaves to this rank."""
        dcp.save(self.as_dtensors(training), checkpoint_id=self.directory)

    def load(self, training: ShardedTraining) -> None:
        """Read into the memory that the DTensors share with the shards."""
        dcp.load(self.as_dtensors(training), checkpoint_id=self.directory)

    def as_dtensors(self, training: ShardedTraining) -> dict[str, Any]:
        """Return the state as torch's checkpoints take it."""
        return {
            name: self.as_dtensor(held, placement_of(held, training.dim))
            for name, held in training.state().items()
        }

    def as_dtensor(self, held: HeldTensor, placement: Shard | Replicate) -> Tensor:
        """Return a tensor as a part of a whole that shares its memory.

        Beside a GPU's parameters AdamW counts steps on the host: of those a DTensor
        would be a copy, which nothing reads again.
        """
        if held.data.device.type != self.mesh.device_type:
            return held.data
        return DTensor.from_local(
            held.data,
            self.mesh,
            [placement],
            run_check=False,
            shape=torch.Size(held.size),
            stride=torch.empty(held.size, device="meta").stride(),
        )


@contextmanager
def _saves_at_once() -> Iterator[None]:
    """Let Megatron's writer of checkpoints do without psutil and without a manager."""
    writer: Any = import_module(
        "megatron.core.dist_checkpointing.strategies.filesystem_async"
    )
    with (
        patch.object(writer, "_process_memory", lambda: 0),
        patch.object(writer, "_results_queue", SimpleQueue()),
    ):
        yield


# Beside the others, it would be a part of what every record is made from.
shims._SHIMS["saves_at_once"] = (
    "Megatron's writer takes 0 for the memory of its process, which it logs and asks "
    "psutil for; and it hands over what was written by a queue of this process, where "
    "a save in the background needs one that others can read",
    _saves_at_once,
)


class MegatronSide(CheckpointSide):
    """Megatron's, under the file format of torch's."""

    def __init__(self, rank: Rank, config: GPTConfig, directory: Path) -> None:
        super().__init__(rank, config, directory)
        self.sharded: Any = import_module("megatron.core.dist_checkpointing")

    def save(self, training: ShardedTraining) -> None:
        """Write what this rank alone holds, and of replicas the first rank's."""
        if self.rank.rank == 0:
            self.directory.mkdir()
        self.sharded.save({**self.as_sharded(training), **EXTRA}, str(self.directory))

    def load(self, training: ShardedTraining) -> None:
        """Read into the memory of the shards."""
        self.sharded.load(self.as_sharded(training), str(self.directory))

    def as_sharded(self, training: ShardedTraining) -> dict[str, Any]:
        """Return the state as Megatron's checkpoints take it: whole fractions."""
        return {
            name: self.as_sharded_tensor(name, held, training.dim)
            for name, held in training.state().items()
        }

    def as_sharded_tensor(self, name: str, held: HeldTensor, dim: int) -> Any:
        """Return a tensor with the number of its part, or of its replica."""
        make = self.sharded.ShardedTensor.from_rank_offsets
        rank, world_size = self.rank.rank, self.rank.world_size
        if len(held.size) < 2:
            return make(name, held.data, replica_id=rank)
        axis = dim % len(held.size)
        return make(name, held.data, (axis, rank, world_size))


def placement_of(held: HeldTensor, dim: int) -> Shard | Replicate:
    """Return how the mesh holds a tensor: vectors and counts are on every rank."""
    return Shard(dim % len(held.size)) if len(held.size) > 1 else Replicate()


def build(rank: Rank, comparison: Comparison, upstream: type[CheckpointSide]) -> Sides:
    """Return both sides, each with a folder that is there within a step only."""
    groups: dict[str, str] = {rank.group.group_name: "dp"}
    if upstream is MegatronSide:
        groups |= dict.fromkeys(megatron.start(rank), "dp")
    names = [f"{tempfile.gettempdir()}/readerkit-checkpoint-{uuid4().hex}"]
    dist.broadcast_object_list(names, group_src=0, group=rank.group)
    config = comparison.config
    mini = MiniSide(rank, config, Path(f"{names[0]}-mini"))
    theirs = upstream(rank, config, Path(f"{names[0]}-upstream"))

    def due(step: int) -> Formulas:
        return formulas(rank, config, list(LAYOUTS)[step % len(LAYOUTS)])

    return Sides(mini, theirs, groups, due(0), of_traced_step=due)


# --- what is sent and kept ---


def formulas(rank: Rank, config: GPTConfig, layout: str) -> Formulas:
    """Return what a step sends that saves from this layout, and what both layouts keep.

    What the mini's ranks tell each other are pickles of their plans, padded to the
    longest of all ranks; so long as they are here, they are there.
    """
    w, params = rank.world_size, list(build_model(config).parameters())
    cut_bytes = sum(p.nbytes for p in params if p.dim() > 1)
    whole_bytes = sum(p.nbytes for p in params)
    reduced = Formula(
        cut_bytes + whole_bytes + 4,
        f"{cut_bytes:,} B made whole + {whole_bytes:,} B of gradients + a loss of 4 B",
    )
    plans = [
        create_local_plan(
            ShardedTraining(replace(rank, rank=r), config, layout).state()
        )
        for r in range(w)
    ]
    kept = dedup_save_plans(plans)
    local = max(pickled(plan) for plan in plans)
    part = max(pickled(plan) for plan in kept)
    written = max(pickled(results_of(r, plan)) for r, plan in enumerate(kept))
    each = w if rank.rank == 0 else 1  # rank 0 has what all send, and sends to all
    objects = {
        "all_gather": Formula(
            w * (8 + 8 + 8 + pickled(EXTRA)),
            f"{w} x (3 lengths of 8 B + an extra of {pickled(EXTRA)} B)",
        ),
        "gather": Formula(
            each * (local + written),
            f"{each} x (plan {local:,} B + files {written:,} B)",
        ),
        "scatter": Formula(
            each * (part + 8), f"{each} x (plan {part:,} B + length 8 B)"
        ),
        "broadcast": Formula(
            8 + 8 + pickled(None), f"2 lengths of 8 B + None in {pickled(None)} B"
        ),
    }
    payload: Mapping[SideName, Mapping[str, Formula]] = {
        "mini": {"all_reduce": reduced, **objects},
        "upstream": {"all_reduce": reduced},
    }
    text = "pickled plans, which name the classes of upstream's planner"
    held = kept_of(rank, config)
    return Formulas(payload, dict.fromkeys(SIDES, held), dict.fromkeys(objects, text))


def pickled(value: object) -> int:
    """Return how many bytes the collectives of objects send for it."""
    return len(pickle.dumps(value))


def results_of(rank: int, plan: SavePlan) -> list[WriteResult]:
    """Return what a rank tells of its file, but for the digests."""
    file, start, results = f"rank-{rank:05}.bin", 0, []
    for item in plan:
        results.append(WriteResult(item, file, start, f"{start:064}"))
        start += item.bytes()
    return results


def kept_of(rank: Rank, config: GPTConfig) -> dict[Category, Formula]:
    """Return what a rank keeps of both layouts, and the gradients of one."""
    boxes = {
        layout: [
            cut(param.shape, dim, rank.rank, rank.world_size).numel()
            for param in build_model(config).parameters()
        ]
        for layout, dim in LAYOUTS.items()
    }
    numel, count = sum(map(sum, boxes.values())), sum(map(len, boxes.values()))
    text = f"elements of {' and '.join(boxes)}"
    return {
        "parameters": Formula(4 * numel, f"4 B x {numel:,} {text}"),
        "gradients": Formula(4 * numel, f"4 B x {numel:,} {text}"),
        "optimizer state": Formula(
            8 * numel + 4 * count,
            f"2 moments x 4 B x {numel:,} {text} + a 4 B step count x {count}",
        ),
    }


def check_even(world_size: int) -> None:
    """Raise ValueError where Megatron's parts would not all be of one size."""
    for name, param in build_model(GPTConfig()).named_parameters():
        if param.dim() > 1 and any(size % world_size for size in param.shape):
            raise ValueError(
                f"{name}: {tuple(param.shape)} is not divisible by {world_size} ranks"
            )


NO_BIT = Tolerance(0.0, "both train by the same code; a copy changes no bit")
COMPARISONS = (
    Comparison(
        mini="checkpoint",
        upstream="torch",
        build=partial(build, upstream=TorchSide),
        tolerance=NO_BIT,
        writes_files=True,
    ),
    Comparison(
        mini="checkpoint",
        upstream="megatron",
        build=partial(build, upstream=MegatronSide),
        tolerance=NO_BIT,
        upstreams=("megatron",),
        shims=("current_device", "synchronize", "cuda_is_cpu", "saves_at_once"),
        writes_files=True,
        check=check_even,
    ),
)
