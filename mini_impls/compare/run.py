"""Launches a comparison and writes its record."""

import os
import platform
import shlex
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from msgspec.structs import replace

from mini_impls import launch
from mini_impls.compare import shims, upstream_files
from mini_impls.compare.clock import Clocked, fastest, watch_and_clock
from mini_impls.compare.limits import limits
from mini_impls.compare.sides import Comparison
from mini_impls.compare.tables import Known, make_tables, sides_of
from mini_impls.compare.unpinned import give_names
from mini_impls.compare.upstream_files import UpstreamFiles
from mini_impls.compare.verdicts import verdicts
from mini_impls.compare.watch import (
    MIN_STEPS,
    SIDES,
    WARM_UP_STEPS,
    WATCHED_STEPS,
    RankResult,
)
from mini_impls.gpus import check_devices, ranks_per_gpu
from mini_impls.limits import check_timeout
from mini_impls.machine import INSIST
from mini_impls.model import make_batch, train_one_process
from mini_impls.recorder import RankTrace
from mini_impls.supervise import ending_once
from readerkit.app.library import Library
from readerkit.content.vocabulary import SideName
from readerkit.evidence.clock import StepClock
from readerkit.evidence.line_ranges import lines_to_text
from readerkit.evidence.record import Lit, RankEvents, Record
from readerkit.model.git_names import BlobId, TreePath, parse_path

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
        tempfile.TemporaryDirectory(prefix="readerkit-compare-") as name,
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
        if launch.is_under_torchrun():
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
        if launch.is_under_torchrun():
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


def make_record(
    comparison: Comparison,
    results: Sequence[RankResult],
    noted: Mapping[str, UpstreamFiles],
    known: Known,
    *,
    backend: str,
    steps: int,
    load: str,
    clocks: tuple[StepClock, ...] = (),
    options: Sequence[str] = (),
) -> Record:
    """Return the record of what the ranks saw; `known` is what may differ."""
    world_size = len(results)
    lit = lit_lines(results, noted)
    sizes = comparison.sizes(world_size)
    tables = make_tables(results, backend, known, sizes)
    device = torch.device("cpu")
    if backend == "nccl":
        device = torch.device("cuda", torch.cuda.current_device())
    alone = losses_alone(comparison, results, steps, device)
    return Record(
        comparison=comparison.name,
        mini=comparison.mini,
        upstream=comparison.upstream,
        made=time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()),
        command=command(comparison, world_size, backend, steps, options),
        world_size=world_size,
        backend=backend,
        steps=steps,
        warm_up_steps=WARM_UP_STEPS,
        traced_step=WARM_UP_STEPS,
        watched_steps=WATCHED_STEPS,
        pins={name: upstream.commit for name, upstream in noted.items()},
        blobs=blobs_that_ran(lit, noted),
        program=upstream_files.mini_blobs(upstream_files.program_of(comparison.mini)),
        versions=versions(),
        environment={
            **environment(),
            **(gpus(local_ranks(world_size)) if backend == "nccl" else {}),
            **answered_to(),
            **({"load before": load} if load else {}),
            **not_measured(comparison),
        },
        work=describe_work(comparison, world_size),
        sizes=sizes,
        shims=shims.describe(shims.needed(comparison.shims, device.type)),
        losses=losses_by_side(results),
        verdicts=verdicts(comparison, results, tables, alone, known, sizes, backend),
        limits=limits(comparison, results),
        events=tuple(only_noted(rank, noted) for rank in tables.events),
        totals=tables.totals,
        wire=tables.wire,
        held=tables.held,
        peaks=tables.peaks,
        times=tables.times,
        lit=lit,
        pipeline=tables.pipeline,
        clocks=clocks,
    )


def only_noted(rank: RankEvents, noted: Mapping[str, UpstreamFiles]) -> RankEvents:
    """Return the events with stacks of lines that an anchor may speak of."""
    stacks = tuple(
        tuple(
            site
            for site in stack
            if site.upstream == "minis" or site.path in _locked(noted, site.upstream)
        )
        for stack in rank.stacks
    )
    return replace(rank, stacks=stacks)


def losses_alone(
    comparison: Comparison,
    results: Sequence[RankResult],
    steps: int,
    device: torch.device,
) -> list[float]:
    """Return the losses of one process; none where the sides train nothing either."""
    if not any(result.mini.losses or result.upstream.losses for result in results):
        return []
    return one_process_losses(comparison, len(results), steps, device)


def one_process_losses(
    comparison: Comparison, world_size: int, steps: int, device: torch.device
) -> list[float]:
    """Return the losses of the same work in this process alone, on a device."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in the ranks: one order of sums
    try:
        rows = comparison.rows_per_rank
        chunks = comparison.microbatches
        if comparison.data_parallel:
            rows, chunks = rows * world_size, world_size
        alone = comparison.alone(comparison.config, chunks, device)
        model = alone.model
        optimizer = torch.optim.AdamW(model.parameters(), comparison.learning_rate)
        optimizer.register_step_pre_hook(lambda *args: alone.before_update())
        if comparison.max_norm is not None:
            clip = partial(_clip, comparison.max_norm)
            optimizer.register_step_pre_hook(clip)
        made = (
            make_batch(comparison.config, step=step, batch_size=rows)
            for step in range(steps)
        )
        batches = [(tokens.to(device), labels.to(device)) for tokens, labels in made]
        return train_one_process(model, optimizer, batches, chunks=chunks)
    finally:
        torch.set_num_threads(threads)


def _clip(max_norm: float, optimizer: torch.optim.Optimizer, *rest: Any) -> None:
    params = [param for group in optimizer.param_groups for param in group["params"]]
    torch.nn.utils.clip_grad_norm_(params, max_norm)


def losses_by_side(
    results: Sequence[RankResult],
) -> dict[SideName, tuple[tuple[float, ...], ...]]:
    """Return the losses of every rank."""
    return {
        side: tuple(dict(sides_of(result))[side].losses for result in results)
        for side in SIDES
    }


# --- which code ran ---


def lit_lines(
    results: Sequence[RankResult], noted: Mapping[str, UpstreamFiles]
) -> tuple[Lit, ...]:
    """Return the lines that ran on any rank, in files that are locked or are minis."""
    setup: dict[tuple[str, str], set[int]] = defaultdict(set)
    steps: dict[tuple[str, str], dict[int, set[int]]] = {}
    """By file and line: the steps in which it ran."""
    for result in results:
        for _, side in sides_of(result):
            for place, lines in side.setup_lines.items():
                setup[place] |= lines
            for step, ran in enumerate(side.step_lines):
                for place, lines in ran.items():
                    of_file = steps.setdefault(place, defaultdict(set))
                    for line in lines:
                        of_file[line].add(step)
    return tuple(
        Lit(
            upstream,
            parse_path(path),
            lines_to_text(setup.get((upstream, path), ())),
            lines_by_steps(steps.get((upstream, path), {})),
        )
        for upstream, path in sorted({*setup, *steps})
        if upstream == "minis" or path in _locked(noted, upstream)
    )


def lines_by_steps(steps_of: Mapping[int, set[int]]) -> dict[str, str]:
    """Return lines by the steps in which they ran, both as text."""
    lines: dict[str, list[int]] = defaultdict(list)
    for line, steps in steps_of.items():
        lines[lines_to_text(steps)].append(line)
    return {steps: lines_to_text(lines[steps]) for steps in sorted(lines)}


def _locked(
    noted: Mapping[str, UpstreamFiles], upstream: str
) -> Mapping[TreePath, BlobId]:
    return noted[upstream].blobs if upstream in noted else {}


def blobs_that_ran(
    lit: Sequence[Lit], noted: Mapping[str, UpstreamFiles]
) -> dict[str, dict[TreePath, BlobId]]:
    """Return the id of every file with a line that ran."""
    blobs: dict[str, dict[TreePath, BlobId]] = {
        name: {
            row.path: upstream.blobs[row.path] for row in lit if row.upstream == name
        }
        for name, upstream in noted.items()
    }
    paths = [row.path for row in lit if row.upstream == "minis"]
    return {**blobs, "minis": upstream_files.mini_blobs(paths)}


# --- where, with what ---


def command(
    comparison: Comparison,
    world_size: int,
    backend: str,
    steps: int,
    options: Sequence[str],
) -> str:
    """Return what makes such a record again."""
    return shlex.join(
        [
            "readerkit",
            "compare",
            comparison.mini,
            *("--upstream", comparison.upstream, "--world", str(world_size)),
            *("--backend", backend, "--steps", str(steps)),
            *options,
        ]
    )


def versions() -> dict[str, str]:
    """Return what ran it."""
    return {"python": platform.python_version(), "torch": str(torch.__version__)}


def load_before() -> str:
    """Return how busy the machine was: processes that wanted a core, of late."""
    if not hasattr(os, "getloadavg"):
        return ""
    return f"{os.getloadavg()[0]:.2f} processes in the last minute"


def environment() -> dict[str, str]:
    """Return where it ran."""
    found = {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": str(len(os.sched_getaffinity(0))),
        "threads per rank": "1",
    }
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        rows = cpuinfo.read_text().splitlines()
        model = next((row for row in rows if row.startswith("model name")), "")
        found["cpu"] = model.partition(":")[2].strip()
    return {key: value for key, value in found.items() if value}


def local_ranks(world_size: int) -> int:
    """Return how many of the ranks are on this machine."""
    if launch.is_under_torchrun():
        return int(os.environ["LOCAL_WORLD_SIZE"])
    return world_size


def gpus(local_ranks: int) -> dict[str, str]:
    """Return on which GPUs this machine's ranks were, and what sent between them."""
    found = {
        "gpu": torch.cuda.get_device_name(),
        "cuda": str(torch.version.cuda),
        "nccl": ".".join(map(str, torch.cuda.nccl.version())),
    }
    if (sharing := ranks_per_gpu(local_ranks)) > 1:
        found["ranks on one gpu"] = (
            f"{sharing}: NCCL sends between them through sockets, and their kernels "
            "take turns"
        )
    return found


def answered_to() -> dict[str, str]:
    """Return which calls of torch have other names than the pinned torch gives them."""
    given = [f"{ours} is its {old}" for ours, old in give_names().items()]
    return {"torch's names": ", ".join(given)} if given else {}


def not_measured(comparison: Comparison) -> dict[str, str]:
    """Return what a record lacks, and why."""
    if comparison.writes_files:
        why = "a step writes files, which the kernel counts with what is sent"
    elif comparison.uneven:
        why = "what a rank sends to each of the others follows from the data"
    else:
        return {}
    return {"bytes on the wire": f"not measured: {why}"}


def describe_work(comparison: Comparison, world_size: int) -> dict[str, int | float]:
    """Return what was trained: sizes, batch, seeds."""
    shared = 1 if not comparison.data_parallel else world_size
    work: dict[str, int | float] = {
        key: value
        for key, value in asdict(comparison.config).items()
        if isinstance(value, int | float)
    }
    return {
        **{key: int(v) if isinstance(v, bool) else v for key, v in work.items()},
        "batch_size": comparison.rows_per_rank * shared,
        "microbatches": comparison.microbatches,
        "learning_rate": comparison.learning_rate,
        "model_seed": 0,
        "data_seed": 0,
    }
