"""Runs the work of a fault on real ranks, with and without it."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist

from mini_impls import launch
from mini_impls.faults.fault import Mutant, install
from mini_impls.faults.symptoms import Outcome
from mini_impls.launch import Rank

WORLDS = (2, 4)
"""What the models of `work.py` can be cut for."""


def check(world_size: int) -> None:
    """Raise ValueError where the work does not fit, before any process starts."""
    if world_size not in WORLDS:
        raise ValueError(f"faults are shown on 2 or 4 ranks, not on {world_size}")


def run_work(rank: Rank, work: str, mutant: Path | None, timeout_s: float) -> Any:
    """Do the work in this rank, on the faulty copy of a mini if one is given."""
    if mutant is not None:
        install(mutant)
    # Not before: it imports the minis.
    works: dict[str, Callable[[Rank], dict[str, float]]]
    works = importlib.import_module("mini_impls.faults.work").WORKS
    # A group of its own: ranks that are slow to start are no hang.
    group = dist.new_group(timeout=timedelta(seconds=timeout_s))
    return works[work](replace(rank, group=group))


def observe(
    work: str, mutant: Mutant | None, *, world_size: int, timeout_s: float
) -> Outcome:
    """Return how a run ended: by what it measured, or by its first failure.

    A call within the work that waits longer than `timeout_s` is a failure.
    """
    with tempfile.TemporaryDirectory(prefix="mini-impls-fault-") as name:
        path = None if mutant is None else mutant.write(Path(name))
        try:
            ranks = launch.run(
                run_work,
                (work, path, timeout_s),
                world_size=world_size,
            )
        except launch.RankFailedError as error:
            return Outcome(failure=str(error))
    return Outcome(ranks=ranks)
