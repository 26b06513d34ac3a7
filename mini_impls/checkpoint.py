"""Sharded checkpoints: each rank writes its part, any layout reads it.

First the plain way, a file a rank, which the same layout alone can read. Then boxes of
tensors under a plan of all ranks, each box in one file. A checkpoint has its name once
all else is on disk: whatever has it is whole.

Follows:
- pytorch/pytorch: torch/distributed/checkpoint/state_dict_saver.py
- pytorch/pytorch: torch/distributed/checkpoint/utils.py (`_DistWrapper`)

Leaves out:
- a plan of reads that ranks agree on: each reads what it needs, then all hear of it
- a checkpoint written over another one: torch's writer warns, this one refuses
- writing while training goes on: `checkpoint_async.py`
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch.distributed as dist
from safetensors.torch import load_file, save_file

from mini_impls.checkpoint_files import publish, read_state, write_data
from mini_impls.checkpoint_plan import (
    HeldTensor,
    SavePlan,
    check_global_plan,
    create_local_plan,
    dedup_save_plans,
)

T = TypeVar("T")
R = TypeVar("R")

# --- 1. plain: a file a rank, for this layout alone ---


def save_plain(path: Path, state: Mapping[str, HeldTensor]) -> None:
    """Write all that this rank holds, replicas too, and not where it was cut."""
    save_file({n: held.data.contiguous() for n, held in state.items()}, path)


def load_plain(path: Path, state: Mapping[str, HeldTensor]) -> None:
    """Fill what this rank holds from the file of the rank that held the same."""
    for name, tensor in load_file(path).items():
        if tensor.shape != state[name].data.shape:
            here = tuple(state[name].data.shape)
            raise ValueError(f"{name}: {tuple(tensor.shape)} in {path}, {here} here")
        state[name].data.copy_(tensor)


# --- 2. rank 0 decides, and what one rank raises all of them raise ---


@dataclass(frozen=True, slots=True)
class StepFailure:
    """What went wrong on the way to a checkpoint, and on which rank."""

    text: str


def attempt(rank: int, fn: Callable[[], T]) -> T | StepFailure:
    """Return what `fn` returns, or what it raised: the others wait for an answer."""
    try:
        return fn()
    except Exception as error:
        return StepFailure(f"rank {rank}: {type(error).__name__}: {error}")


def unwrap(step: str, answers: list[T | StepFailure]) -> list[T]:
    """Return the answers.

    Raises:
        RuntimeError: some are failures; it names the step, each rank and its error.
    """
    failed = [answer.text for answer in answers if isinstance(answer, StepFailure)]
    if failed:
        raise RuntimeError(f"checkpoint, {step}: {'; '.join(dict.fromkeys(failed))}")
    return [answer for answer in answers if not isinstance(answer, StepFailure)]


def gather_to_first(answer: Any, group: dist.ProcessGroup) -> list[Any]:
    """Return every rank's answer on rank 0, nothing on the others."""
    everyone = [None] * group.size() if group.rank() == 0 else None
    dist.gather_object(answer, everyone, group=group, group_dst=0)
    return everyone or []


def reduce_scatter(
    step: str,
    map_fun: Callable[[], T],
    reduce_fun: Callable[[list[T]], list[R]],
    group: dist.ProcessGroup,
) -> R:
    """Return this rank's part of what rank 0 makes of every rank's `map_fun()`."""
    local = gather_to_first(attempt(group.rank(), map_fun), group)
    parts: list[Any] = []
    if group.rank() == 0:
        made = attempt(0, lambda: reduce_fun(unwrap(step, local)))
        parts = [made] * group.size() if isinstance(made, StepFailure) else made
    mine: list[Any] = [None]
    dist.scatter_object_list(mine, parts, group=group, group_src=0)
    part: R = unwrap(step, mine)[0]
    return part


def all_reduce(
    step: str,
    map_fun: Callable[[], T],
    reduce_fun: Callable[[list[T]], R],
    group: dist.ProcessGroup,
) -> R:
    """Return on each rank what rank 0 makes of every rank's `map_fun()`."""
    local = gather_to_first(attempt(group.rank(), map_fun), group)
    made: list[Any] = [None]
    if group.rank() == 0:
        made = [attempt(0, lambda: reduce_fun(unwrap(step, local)))]
    dist.broadcast_object_list(made, group=group, group_src=0)
    result: R = unwrap(step, made)[0]
    return result


# --- 3. save: plan, write, publish ---


def save(
    directory: Path,
    state: Mapping[str, HeldTensor],
    group: dist.ProcessGroup,
    *,
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Write a new checkpoint; it has its name once all of it is on disk.

    `extra` is rank 0's: what a run needs besides tensors, as JSON takes it.
    """
    aside = directory.with_name(directory.name + ".part")

    def global_step(all_plans: list[SavePlan]) -> list[SavePlan]:
        if directory.exists():
            raise FileExistsError(f"{directory}: a checkpoint is never overwritten")
        plans = dedup_save_plans(all_plans)
        check_global_plan(plans)
        shutil.rmtree(aside, ignore_errors=True)  # of a save that was killed
        aside.mkdir(parents=True)
        return plans

    plan = reduce_scatter("plan", lambda: create_local_plan(state), global_step, group)
    all_reduce(
        "write",
        lambda: write_data(aside, group.rank(), plan, state),
        lambda results: publish(aside, directory, results, extra or {}),
        group,
    )


# --- 4. load: into whatever layout this is ---


def load(
    directory: Path, state: Mapping[str, HeldTensor], group: dist.ProcessGroup
) -> dict[str, Any]:
    """Fill the state in place on all ranks, or raise on all; return the `extra`."""
    answers: list[Any] = [None] * group.size()
    mine = attempt(group.rank(), lambda: read_state(directory, state))
    dist.all_gather_object(answers, mine, group=group)
    extra: dict[str, Any] = unwrap("read", answers)[group.rank()]
    return extra


if __name__ == "__main__":
    from mini_impls.demos.checkpoint import main

    raise SystemExit(main())
