"""Runs the work of a fault on real ranks, with and without it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch.distributed.elastic.multiprocessing import SignalException

from mini_impls import launch
from mini_impls.failures import RankFailedError
from mini_impls.faults.fault import Mutant, install, is_imported
from mini_impls.faults.symptoms import Outcome
from mini_impls.faults.works import get_work
from mini_impls.launch import Rank
from readerkit.system.temporary import temporary_folder


def run_work(rank: Rank, work: str, mutant: Path | None, timeout_s: float) -> Any:
    """Do the work in this rank, on the faulty copy of a mini if one is given."""
    if mutant is not None:
        install(mutant)
    do = get_work(work)  # not before: it imports the mini
    # A group of its own: ranks that are slow to start are no hang.
    group = dist.new_group(timeout=timedelta(seconds=timeout_s))
    return do(replace(rank, group=group))


def observe(
    work: str, mutant: Mutant | None, *, world_size: int, timeout_s: float
) -> Outcome:
    """Return how a run ended: by what it measured, or by its first failure.

    A call within the work that waits longer than `timeout_s` is a failure. Told to end,
    it ends its ranks and this process.
    """
    with temporary_folder("mini-impls-fault-") as name:
        path = None if mutant is None else mutant.write(Path(name))
        try:
            ranks = launch.run(
                run_work,
                (work, path, timeout_s),
                world_size=world_size,
                # A notebook may have the right one, which forked ranks would keep.
                anew=path is not None and is_imported(path),
            )
        except RankFailedError as error:
            return Outcome(failure=error)
        except SignalException as error:
            raise SystemExit(128 + error.sigval) from None
    return Outcome(ranks=ranks)
