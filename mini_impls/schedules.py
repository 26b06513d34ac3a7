"""Orders of work for a pipeline: GPipe, 1F1B, interleaved and ZB-H1, with no torch.

A pipeline of p ranks cuts the model into p * v stages: rank r holds v model chunks, the
stages r, p + r, 2p + r, ... Each of m microbatches goes forward through all stages and
back again. A schedule says in which order one rank takes its forwards and backwards.
`timeline.py` has what follows from the orders of all ranks: times, bubble, activations
held, sends and receives.

Follows:
    NVIDIA/Megatron-LM: megatron/core/pipeline_parallel/schedules.py
    pytorch/pytorch: torch/distributed/pipelining/schedules.py

Leaves out:
    - zero-bubble schedules that hold more than 1F1B (ZB-H2), or that search
    - forward-only runs
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

# --- 1. the words of a schedule -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """One forward (F) or backward (B) of one microbatch through one stage.

    A schedule may split the backward: B is then the input's gradient alone, which the
    stage before waits for, and W the weights', which nobody waits for.
    """

    kind: Literal["F", "B", "W"]
    microbatch_id: int
    stage: int


# --- 2. how many forwards before the first backward -----------------------------------


def get_pp_rank_microbatches(
    num_microbatches: int,
    num_model_chunks: int,
    microbatch_group_size_per_vp_stage: int,
    *,
    pipeline_parallel_size: int,
    pipeline_parallel_rank: int,
) -> tuple[int, bool, int, int]:
    """Total steps each way; whether all are warm-up; warm-up steps; remaining steps."""
    total_num_microbatches = num_microbatches * num_model_chunks
    num_warmup_microbatches = pipeline_parallel_size - pipeline_parallel_rank - 1
    if num_model_chunks > 1:
        # Twice: forwards also fill the time in which the first backward travels back.
        # (With one chunk that would save no time and hold more activations.) And that
        # backward starts at the last chunk, once a group has passed all the others.
        num_warmup_microbatches *= 2
        num_warmup_microbatches += (
            num_model_chunks - 1
        ) * microbatch_group_size_per_vp_stage
    num_warmup_microbatches = min(num_warmup_microbatches, total_num_microbatches)
    num_microbatches_remaining = total_num_microbatches - num_warmup_microbatches
    return (
        total_num_microbatches,
        num_microbatches_remaining == 0,
        num_warmup_microbatches,
        num_microbatches_remaining,
    )


def get_schedule_table(
    num_microbatches: int,
    num_model_chunks: int,
    microbatch_group_size_per_vp_stage: int,
) -> list[tuple[int, int]]:
    """(microbatch_id, model_chunk_id) of each virtual microbatch, in forward order.

    Five microbatches, two chunks, groups of three:
        virtual_microbatch_id | 0 1 2 3 4 5 6 7 8 9
        microbatch_id         | 0 1 2 0 1 2 3 4 3 4
        model_chunk_id        | 0 0 0 1 1 1 0 0 1 1
    """
    size = microbatch_group_size_per_vp_stage
    return [
        (microbatch_id, model_chunk_id)
        for first in range(0, num_microbatches, size)
        for model_chunk_id in range(num_model_chunks)
        for microbatch_id in range(first, min(first + size, num_microbatches))
    ]


# --- 3. the schedules: what one rank does, in order -----------------------------------


def gpipe(rank: int, world_size: int, num_microbatches: int) -> Iterator[Step]:
    """All forwards, then all backwards; the activations of all microbatches are held.

    rank 0 | F0 F1 F2 .  .  B0 B1 B2
    rank 1 | .  F0 F1 F2 B0 B1 B2 .
    """
    for i in range(num_microbatches):
        yield Step("F", i, stage=rank)
    for i in range(num_microbatches):
        yield Step("B", i, stage=rank)


def one_f_one_b(rank: int, world_size: int, num_microbatches: int) -> Iterator[Step]:
    """One forward and one backward in turn: the same bubble, fewer activations held.

    rank 0 | F0 F1 .  B0 F2 B1 .  B2
    rank 1 | .  F0 B0 F1 B1 F2 B2 .
    """
    total, _, num_warmup_microbatches, num_microbatches_remaining = (
        get_pp_rank_microbatches(
            num_microbatches,
            num_model_chunks=1,
            microbatch_group_size_per_vp_stage=1,
            pipeline_parallel_size=world_size,
            pipeline_parallel_rank=rank,
        )
    )
    for i in range(num_warmup_microbatches):
        yield Step("F", i, stage=rank)
    for i in range(num_microbatches_remaining):
        yield Step("F", i + num_warmup_microbatches, stage=rank)
        yield Step("B", i, stage=rank)
    for i in range(num_microbatches_remaining, total):
        yield Step("B", i, stage=rank)


def interleaved(
    rank: int, world_size: int, num_microbatches: int, num_model_chunks: int
) -> Iterator[Step]:
    """1F1B over v chunks a rank (a, b, ..): a v-th of the bubble, v times the messages.

    rank 0 | F0a F1a F0b F1b .   B0b .   B1b B0a B1a
    rank 1 | .   F0a F1a F0b B0b F1b B1b B0a B1a .
    """
    total, _, num_warmup_microbatches, num_microbatches_remaining = (
        get_pp_rank_microbatches(
            num_microbatches,
            num_model_chunks,
            microbatch_group_size_per_vp_stage=world_size,
            pipeline_parallel_size=world_size,
            pipeline_parallel_rank=rank,
        )
    )
    schedule_table = get_schedule_table(num_microbatches, num_model_chunks, world_size)

    def forward(virtual_microbatch_id: int) -> Step:
        microbatch_id, model_chunk_id = schedule_table[virtual_microbatch_id]
        return Step("F", microbatch_id, model_chunk_id * world_size + rank)

    def backward(virtual_microbatch_id: int) -> Step:
        microbatch_id, model_chunk_id = schedule_table[virtual_microbatch_id]
        model_chunk_id = num_model_chunks - model_chunk_id - 1
        return Step("B", microbatch_id, model_chunk_id * world_size + rank)

    for k in range(num_warmup_microbatches):
        yield forward(k)
    for k in range(num_microbatches_remaining):
        yield forward(k + num_warmup_microbatches)
        yield backward(k)
    for k in range(num_microbatches_remaining, total):
        yield backward(k)


def zb_h1(rank: int, world_size: int, num_microbatches: int) -> Iterator[Step]:
    """1F1B with the backward split: a third of its bubble, at equal costs and m >= p.

    Rank r puts off the weights' gradients by r microbatches and fills the gaps at the
    end with them. So it holds r microbatches more than 1F1B, and every rank p: as many
    as the fullest rank of 1F1B, the first.

    rank 0 | F0 F1 .  B0 W0 F2 B1 W1 B2 W2
    rank 1 | .  F0 B0 F1 B1 W0 F2 B2 W1 W2
    """
    *_, num_warmup_microbatches, num_microbatches_remaining = get_pp_rank_microbatches(
        num_microbatches,
        num_model_chunks=1,
        microbatch_group_size_per_vp_stage=1,
        pipeline_parallel_size=world_size,
        pipeline_parallel_rank=rank,
    )
    for i in range(num_warmup_microbatches):
        yield Step("F", i, stage=rank)
    for i in range(num_microbatches):
        if i < num_microbatches_remaining:
            yield Step("F", i + num_warmup_microbatches, stage=rank)
        yield Step("B", i, stage=rank)
        if i >= rank:
            yield Step("W", i - rank, stage=rank)
    for i in range(max(0, num_microbatches - rank), num_microbatches):
        yield Step("W", i, stage=rank)


SCHEDULES = ("gpipe", "1f1b", "interleaved", "zb-h1")


def get_orders(
    schedule: str, world_size: int, num_microbatches: int, num_model_chunks: int = 1
) -> list[list[Step]]:
    """Return the order of every rank; ValueError where the schedule does not fit."""
    sizes = (world_size, num_microbatches, num_model_chunks)
    if schedule not in SCHEDULES:
        raise ValueError(f"schedule {schedule!r} is none of {', '.join(SCHEDULES)}")
    if min(sizes) < 1:
        raise ValueError(f"ranks, microbatches and chunks must be at least 1: {sizes}")
    if schedule == "interleaved":
        # A short last group would leave holes that no other work can fill.
        if num_microbatches % world_size:
            raise ValueError(
                "interleaved 1F1B takes microbatches in groups of the pipeline size: "
                f"{num_microbatches} is not a multiple of {world_size}"
            )
        return [list(interleaved(rank, *sizes)) for rank in range(world_size)]
    if num_model_chunks != 1:
        raise ValueError(f"{schedule} takes 1 chunk a rank, not {num_model_chunks}")
    one = {"gpipe": gpipe, "1f1b": one_f_one_b, "zb-h1": zb_h1}[schedule]
    return [list(one(r, world_size, num_microbatches)) for r in range(world_size)]


if __name__ == "__main__":
    from mini_impls.demos.schedules import main

    raise SystemExit(main())
