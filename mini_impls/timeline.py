"""When each step of a pipeline's schedule runs, and what follows from that: no torch.

From the orders of all ranks and from who waits for whom come the times; from the times
the bubble, the activations held, and the order of sends and receives.

    order of rank 0 | F0 F1 B0 B1         at times | F0 F1 .  B0 .  B1
    order of rank 1 | F0 B0 F1 B1                  | .  F0 B0 F1 B1 .

Follows:
    NVIDIA/Megatron-LM: megatron/core/pipeline_parallel/schedules.py
    NVIDIA/Megatron-LM: megatron/core/pipeline_parallel/p2p_communication.py

Leaves out:
    - stages of unequal cost, the time that a message takes
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Literal

from mini_impls.schedules import Step

# --- 1. times, from what waits for what -----------------------------------------------


Timeline = dict[Step, tuple[int, int]]
"""When each step of every rank starts and ends."""


def get_inputs(step: Step, num_stages: int) -> list[Step]:
    """Return the steps whose results this one needs."""
    if step.kind == "F":
        before = Step("F", step.microbatch_id, step.stage - 1)
        return [before] if step.stage > 0 else []
    if step.kind == "W":
        return [Step("B", step.microbatch_id, step.stage)]
    own = Step("F", step.microbatch_id, step.stage)
    behind = Step("B", step.microbatch_id, step.stage + 1)
    return [own, behind] if step.stage < num_stages - 1 else [own]


def get_timeline(
    orders: Sequence[Sequence[Step]],
    forward_cost: int = 1,
    backward_cost: int = 1,
    weight_cost: int = 1,
) -> Timeline:
    """Every step as early as its rank's order and its inputs allow."""
    costs = {"F": forward_cost, "B": backward_cost, "W": weight_cost}
    if min(costs.values()) <= 0:
        raise ValueError(f"a step of no time can be in no order: costs {costs}")
    num_stages = 1 + max(step.stage for order in orders for step in order)
    todo = [deque(order) for order in orders]
    free = [0] * len(orders)
    timeline: Timeline = {}
    while any(todo):
        left = sum(map(len, todo))
        for rank, steps in enumerate(todo):
            while steps:
                inputs = get_inputs(steps[0], num_stages)
                if not all(step in timeline for step in inputs):
                    break
                step = steps.popleft()
                start = max([free[rank], *(timeline[needed][1] for needed in inputs)])
                free[rank] = start + costs[step.kind]
                timeline[step] = start, free[rank]
        if sum(map(len, todo)) == left:
            stuck = {rank: steps[0] for rank, steps in enumerate(todo) if steps}
            raise ValueError(f"each waits for a step that cannot come: {stuck}")
    return timeline


# --- 2. bubble and memory -------------------------------------------------------------


def get_bubble(timeline: Timeline, world_size: int) -> tuple[Fraction, Fraction]:
    """Idle time of a rank, over its busy time (ideal) and over all time (total)."""
    total = max(end for _, end in timeline.values())
    busy = Fraction(sum(end - start for start, end in timeline.values()), world_size)
    return (total - busy) / busy, (total - busy) / total


def get_closed_bubble(
    schedule: str,
    world_size: int,
    num_microbatches: int,
    num_model_chunks: int = 1,
    forward_cost: int = 1,
    backward_cost: int = 1,
    weight_cost: int = 1,
) -> tuple[Fraction, str]:
    """Bubble of ideal time where only the ramps at both ends are lost; its formula.

    A split backward, its W no longer than F or B, fills the ramps with weights'
    gradients that were put off: p - 1, or m - 1 where m is smaller.
    """
    p, m = world_size, num_microbatches
    if schedule != "zb-h1":
        return Fraction(p - 1, num_model_chunks * m), "(p-1)/(v*m)"
    both, put_off = forward_cost + backward_cost, min(m, p) - 1
    bubble = Fraction((p - 1) * both - put_off * weight_cost, m * (both + weight_cost))
    if m >= p:
        return bubble, "(p-1)(F+B-W)/(m(F+B+W))"
    return bubble, "((p-1)(F+B)-(m-1)W)/(m(F+B+W)), as m < p"


def get_peak_in_flight(order: Sequence[Step]) -> int:
    """Most forwards at once whose backward is still to come: activations of a chunk.

    A split backward still needs them for the weights' half.
    """
    ends = "W" if any(step.kind == "W" for step in order) else "B"
    change = {"F": 1, ends: -1}
    return max(accumulate(change.get(step.kind, 0) for step in order))


# --- 3. sends and receives: one order of messages that every rank keeps ---------------


@dataclass(frozen=True, slots=True)
class Transfer:
    """One end of a message: the activation, or the gradient, that a step made."""

    action: Literal["send", "recv"]
    made_by: Step
    peer: int


Exchange = tuple[Transfer, ...]
"""The transfers between two steps of a rank, in the order in which they are posted."""


def add_send_recv(orders: Sequence[Sequence[Step]]) -> list[list[Step | Exchange]]:
    """Put transfers into the orders; those with no step between are one exchange.

    A message belongs to the moment when its sender ends the step, and every rank posts
    its ends of messages in the order of those moments. So the earliest message that is
    not through has both ends posted, and no ring of ranks can wait for each other; and
    the n-th send to a peer is what that peer's n-th receive takes, without tags.
    """
    timeline, world_size = get_timeline(orders), len(orders)
    num_stages = 1 + max(step.stage for step in timeline)
    transfers: list[deque[tuple[int, Transfer]]] = [deque() for _ in orders]
    for step in sorted(timeline, key=lambda step: (timeline[step][1], step.stage)):
        end = timeline[step][1]
        taken_by = step.stage + (1 if step.kind == "F" else -1)
        rank, peer = step.stage % world_size, taken_by % world_size
        # A pipeline of one rank hands over from chunk to chunk in memory.
        # A weight's gradient stays where it is.
        if step.kind != "W" and 0 <= taken_by < num_stages and peer != rank:
            transfers[rank].append((end, Transfer("send", step, peer)))
            transfers[peer].append((end, Transfer("recv", step, rank)))

    plans: list[list[Step | Exchange]] = []
    for order, coming in zip(orders, transfers, strict=True):
        plan: list[Step | Exchange] = []
        for step in order:
            exchange: list[Transfer] = []
            while coming and coming[0][0] <= timeline[step][0]:
                exchange.append(coming.popleft()[1])
            plan += [tuple(exchange), step] if exchange else [step]
        plan += [tuple(transfer for _, transfer in coming)] if coming else []
        plans.append(plan)
    return plans


# --- 4. on paper ----------------------------------------------------------------------


def draw(timeline: Timeline, world_size: int) -> str:
    """One line a rank, one column a unit of time: `F3b` is microbatch 3, chunk b."""
    grid = [["."] * max(end for _, end in timeline.values()) for _ in range(world_size)]
    chunked = max(step.stage for step in timeline) >= world_size
    for step, (start, end) in timeline.items():
        model_chunk_id, rank = divmod(step.stage, world_size)
        letter = chr(ord("a") + model_chunk_id) if chunked else ""
        cell = f"{step.kind}{step.microbatch_id}{letter}"
        grid[rank][start:end] = [cell] * (end - start)
    width = max(len(cell) for cells in grid for cell in cells)
    lines = (" ".join(cell.ljust(width) for cell in cells) for cells in grid)
    return "\n".join(
        f"rank {rank} | {line}".rstrip() for rank, line in enumerate(lines)
    )
