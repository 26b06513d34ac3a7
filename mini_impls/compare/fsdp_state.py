"""Clipping, saving and loading of a sharded model, beside torch's.

Both sides train with their own FSDP. After each backward the gradients are clipped,
after each update all state is saved, wiped and loaded back: whatever was lost or put
in another place would show in the next step.
"""

import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

from mini_impls import fsdp_state
from mini_impls.compare import fsdp
from mini_impls.compare.sides import (
    Comparison,
    Formula,
    Formulas,
    SetPhase,
    Sides,
    Tolerance,
    optimizer_state,
)
from mini_impls.launch import Rank
from mini_impls.model import Batch, compute_loss, shard_batch
from readerkit.content.vocabulary import SideName

MAX_NORM = 0.1
"""Below the norm of any step, so that each is clipped."""


class StateSide(ABC):
    """What both sides do around a sharded model of their own."""

    inner: fsdp.ShardedSide
    directory: Path

    def __init__(self, inner: fsdp.ShardedSide, directory: Path) -> None:
        self.inner, self.directory = inner, directory
        self.parameters, self.gradients = inner.parameters, inner.gradients
        self.held, self.watched = inner.held, inner.watched

    def step(self, batch: Batch, set_phase: SetPhase) -> float:
        """Forward, backward, clip, update; then save, wipe and load."""
        rank, optimizer = self.inner.rank, self.inner.optimizer
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=rank.world_size)
        optimizer.zero_grad()
        set_phase("forward")
        loss = compute_loss(self.inner.model(tokens), labels)
        set_phase("backward")
        loss.backward()
        set_phase("optimizer")
        self.clip()
        optimizer.step()
        set_phase("checkpoint")
        self.save()
        self.wipe()
        self.load()
        dist.barrier(rank.group)  # all have read before the files go
        if rank.rank == 0:
            shutil.rmtree(self.directory)
        return loss.item()

    def wipe(self) -> None:
        """Leave nothing of the state behind that a load could do without."""
        params = self.inner.module.parameters()
        for tensor in (*params, *optimizer_state(self.inner.optimizer)):
            fsdp.local(tensor).fill_(torch.nan)

    @abstractmethod
    def clip(self) -> None:
        """Scale the gradients down to the greatest norm allowed."""

    @abstractmethod
    def save(self) -> None:
        """Write parameters and optimizer state."""

    @abstractmethod
    def load(self) -> None:
        """Read them back."""


class MiniSide(StateSide):
    """Ours."""

    def __init__(self, inner: fsdp.MiniSide, directory: Path) -> None:
        super().__init__(inner, directory)
        self.group = inner.rank.group
        self.shards = {
            fsdp_param.owners[0].fqn: to_shard(fsdp_param, inner.rank)
            for fsdp_param in inner.fsdp_params()
        }

    def clip(self) -> None:
        """Clip by the mini's norm."""
        params = [shard.param for shard in self.shards.values()]
        fsdp_state.clip_grad_norm_(params, MAX_NORM, self.group)

    def save(self) -> None:
        """Write each rank's rows."""
        optimizer = self.inner.optimizer
        fsdp_state.save_checkpoint(
            self.directory, self.shards, optimizer, self.group, step=0
        )

    def load(self) -> None:
        """Read each rank's rows."""
        fsdp_state.load_checkpoint(self.directory, self.shards, self.inner.optimizer)


class TorchSide(StateSide):
    """Torch's."""

    def clip(self) -> None:
        """Clip by torch's norm of DTensors."""
        nn.utils.clip_grad_norm_(self.inner.module.parameters(), MAX_NORM)

    def save(self) -> None:
        """Write what each rank plans to write."""
        dcp.save(self.state(), checkpoint_id=self.directory)

    def load(self) -> None:
        """Read into tensors of the wanted shape, and hand them over."""
        state = self.state()
        dcp.load(state, checkpoint_id=self.directory)
        set_state_dict(
            self.inner.module,
            self.inner.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optim"],
        )

    def state(self) -> dict[str, Any]:
        """Return the state as torch's checkpoints take it."""
        model, optim = get_state_dict(self.inner.module, self.inner.optimizer)
        return {"model": model, "optim": optim}


def to_shard(fsdp_param: Any, rank: Rank) -> fsdp_state.Shard:
    """Return the rows of a parameter of the FSDP mini, as the state mini takes them."""
    rows = fsdp_param.orig_size[0]
    each = fsdp_param.padded_sharded_size[0]
    return fsdp_state.Shard(fsdp_param.sharded_param, min(rank.rank * each, rows), rows)


def build(rank: Rank, comparison: Comparison) -> Sides:
    """Return both sides around the sides of the FSDP comparison."""
    sharded = fsdp.build(rank, comparison)
    assert isinstance(sharded.mini, fsdp.MiniSide)
    assert isinstance(sharded.upstream, fsdp.TorchSide)
    # A name of the first rank's choice; the folder is there within a step only.
    names = [f"{tempfile.gettempdir()}/readerkit-state-{uuid4().hex}"]
    dist.broadcast_object_list(names, group_src=0, group=rank.group)
    mini = MiniSide(sharded.mini, Path(f"{names[0]}-mini"))
    upstream = TorchSide(sharded.upstream, Path(f"{names[0]}-upstream"))
    expected = formulas(sharded.formulas, len(mini.shards), rank)
    return Sides(mini, upstream, sharded.groups, expected)


def formulas(inner: Formulas, tensors: int, rank: Rank) -> Formulas:
    """Return what FSDP sends, the norm, and what saving agrees on."""
    w = rank.world_size
    sent = inner.payload["mini"]
    starts = Formula(
        sent["all_gather"].bytes + 8 * w * tensors,
        f"{sent['all_gather'].text} + 8 B x {w} ranks x {tensors} first rows",
    )
    norm = Formula(4, "one norm of 4 B")
    norms = Formula(4 * tensors, f"{tensors} norms of 4 B")
    theirs = {**inner.payload["upstream"], "all_reduce": norms}
    del theirs["all_gather"]
    text = "with pickled plans and their sizes, which depend on names and paths"
    planned = ("all_gather", "gather", "scatter", "broadcast")
    payload: Mapping[SideName, Mapping[str, Formula]] = {
        "mini": {**sent, "all_gather": starts, "all_reduce": norm},
        "upstream": theirs,
    }
    return Formulas(payload, inner.held, dict.fromkeys(planned, text))


COMPARISONS = (
    Comparison(
        mini="fsdp_state",
        upstream="fully_shard",
        build=build,
        tolerance=Tolerance(1e-5, "the squares of a norm are added in another order"),
        max_norm=MAX_NORM,
        writes_files=True,
    ),
)
