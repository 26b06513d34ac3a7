"""Launches a comparison and returns its record."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch.distributed as dist

from mini_impls import launch
from mini_impls.compare import upstream_files
from mini_impls.compare.clock import Clocked, fastest, watch_and_clock
from mini_impls.compare.environment import load_before, local_ranks
from mini_impls.compare.rank_worker import (
    MIN_STEPS,
)
from mini_impls.compare.record import make_record
from mini_impls.compare.sides import Comparison
from mini_impls.gpus import check_devices
from mini_impls.limits import check_timeout
from mini_impls.machine import INSIST
from mini_impls.recorder import RankTrace
from mini_impls.supervise import ending_once
from mini_impls.torchrun import is_under_torchrun
from readerkit.app.library import Library
from readerkit.evidence.record import Record
from readerkit.system.temporary import temporary_folder

UNPINNED = "--unpinned"
MOST_NAMED = 4
"""Worlds that a refusal proposes."""


def check(comparison: Comparison, world_size: int, steps: int) -> None:
    """Raise ValueError where the comparison does not fit, before anything starts."""
    if steps < MIN_STEPS:
        raise ValueError(f"{steps} steps are too few: a comparison needs {MIN_STEPS}")
    if world_size < 2:
        raise ValueError(f"a comparison needs at least 2 ranks, not {world_size}")
    try:
        comparison.check(world_size)
    except ValueError as error:
        fit = [str(n) for n in range(2, 2 * MOST_NAMED) if fits(comparison, n)]
        worlds = " or ".join(fit[:MOST_NAMED])
        named = f"; --world {worlds} fits it" if fit else ""
        raise ValueError(f"{error}{named}") from error


def fits(comparison: Comparison, world_size: int) -> bool:
    """Tell whether so many ranks can share the model of a comparison."""
    try:
        comparison.check(world_size)
    except ValueError:
        return False
    return True


def compare(
    library: Library,
    comparison: Comparison,
    *,
    world_size: int,
    backend: str,
    steps: int,
    timeout_s: float = 60.0,
    share_gpus: bool = False,
    unpinned: bool = False,
    is_clocked: bool = False,
    show_traces: Callable[[Sequence[RankTrace]], None] | None = None,
) -> Record | None:
    """Run both sides in one launch and return the record.

    Under torchrun this process is one of the ranks, and only the first has a record.
    Where it `is_clocked` the record has a step by the clock, which takes a few steps
    more; `show_traces` gets what all ranks recorded in them.
    With `share_gpus` there may be more ranks than GPUs; with `unpinned` torch is taken
    as it is installed, and the record names its commit.

    Raises:
        ValueError: a world that does not fit the comparison or this machine, or a
            timeout that no clock can wait for.
        ReaderkitError: upstream code that is not the pinned one.
        RankFailedError: a rank that raised, died or waited too long.
    """
    check(comparison, world_size, steps)
    check_timeout(timeout_s)
    load = load_before()
    with (
        temporary_folder("readerkit-compare-") as name,
        _clearing(name),
    ):
        files = {"pytorch": upstream_files.check_torch(library, unpinned=unpinned)}
        directory = None
        if "megatron" in comparison.upstreams:
            directory = Path(name, "megatron")
            directory.mkdir()
            files["megatron"] = upstream_files.write_megatron(library, directory)
        args = (
            comparison.mini,
            comparison.upstream,
            steps,
            directory,
            show_traces is not None,
            is_clocked,
            frozenset(
                (name, path)
                for name in comparison.upstreams
                for path in files[name].blobs
            ),
        )
        results: list[Clocked] | None
        if is_under_torchrun():
            check_devices(backend, local_ranks(world_size), share=share_gpus)
            results = launch.join(
                watch_and_gather, args, backend=backend, timeout_s=timeout_s
            )
        else:
            results = launch.run(
                watch_and_clock,
                args,
                world_size=world_size,
                backend=backend,
                timeout_s=timeout_s,
                share_gpus=share_gpus,
            )
    if results is None:
        return None
    seen = [result.seen for result in results]
    if show_traces is not None:
        show_traces([each.trace for each in seen if each.trace is not None])
    return make_record(
        comparison.at(world_size),
        seen,
        {name: files[name] for name in comparison.upstreams},
        library.book.differences(comparison.name),
        backend=backend,
        steps=steps,
        load=load,
        clocks=fastest(results),
        options=[
            *([INSIST] if share_gpus else []),
            *([UNPINNED] if unpinned else []),
        ],
    )


@contextmanager
def _clearing(folder: str) -> Iterator[None]:
    """Let whoever is told to end clear up; forked ranks keep temporary files in there.

    Under torchrun a rank is ended as torch would end it: it may wait in a collective.
    """
    before, tempfile.tempdir = tempfile.tempdir, folder
    try:
        if is_under_torchrun():
            yield
        else:
            with ending_once() as nothing_is_started:
                nothing_is_started()
                yield
    finally:
        tempfile.tempdir = before


def watch_and_gather(rank: launch.Rank, *args: Any) -> list[Clocked] | None:
    """Run this rank's part; return every rank's on the first, None on the others."""
    seen = watch_and_clock(rank, *args)
    gathered: list[Any] | None = [None] * rank.world_size if rank.rank == 0 else None
    dist.gather_object(seen, gathered, group_dst=0, group=rank.group)
    return gathered
