"""The record of a comparison: what the ranks saw, which lines ran, what agrees."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from msgspec.structs import replace

from mini_impls.compare import shims, upstream_files
from mini_impls.compare.environment import (
    answered_to,
    command,
    describe_work,
    environment,
    gpus,
    local_ranks,
    not_measured,
    versions,
)
from mini_impls.compare.limits import limits
from mini_impls.compare.rank_worker import (
    SIDES,
    WARM_UP_STEPS,
    WATCHED_STEPS,
    RankResult,
)
from mini_impls.compare.sides import Comparison
from mini_impls.compare.tables import Known, make_tables, sides_of
from mini_impls.compare.upstream_files import UpstreamFiles
from mini_impls.compare.verdicts import verdicts
from mini_impls.model import make_batch, train_one_process
from readerkit.content.vocabulary import SideName
from readerkit.evidence.clock import StepClock
from readerkit.evidence.line_ranges import lines_to_text
from readerkit.evidence.record import Lit, RankEvents, Record
from readerkit.model.git_names import BlobId, TreePath, parse_path


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
