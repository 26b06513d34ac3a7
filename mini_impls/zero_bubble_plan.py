"""What each rank of a zero-bubble pipeline does: blocks of steps, and their messages.

A schedule orders steps for ranks and chunks; here chunks become stages. Then sends and
receives are put between the steps, one at a time: a message leaves when its step is
over, and is waited for when a step needs it. The orders themselves are in
`schedules.py` (1F1B, ZB-H1) and `zero_bubble_orders.py` (ZB-H2, ZB-V, DualPipe's).

    rank 0 | F0 F1 ..          rank 0 | F0 send F1 send ..
    rank 1 | F0 ..             rank 1 | recv F0 ..

Follows:
- pytorch/pytorch: torch/distributed/pipelining/schedules.py

Leaves out:
- gathering and freeing a stage's weights as FSDP needs it
- receives put off until shortly before they are needed (`defer_pp_recv`)
- ZB-V of fewer than 2 p - 1 microbatches, which torch runs
"""

from collections import deque
from collections.abc import Mapping, Sequence
from fractions import Fraction

from mini_impls import schedules
from mini_impls.schedules import Step
from mini_impls.timeline import Timeline, Transfer, get_inputs
from mini_impls.zero_bubble_orders import RankStep, dualpipe_v, zb_h2, zb_v

# p ranks, m microbatches.

# --- 1. what a rank does, in order: blocks of steps ---

Block = tuple[Step, ...]
"""What runs at once. With B and W of a microbatch in one, its backward is whole."""
SCHEDULES = ("1f1b", "zb-h1", "zb-h2", "zb-v", "dualpipe-v")
V_SHAPED = {"zb-v": zb_v, "dualpipe-v": dualpipe_v}
"""Those with two stages a rank: r on the way there, 2 p - 1 - r on the way back."""


def get_blocks(schedule: str, p: int, m: int) -> list[list[Block]]:
    """Return the blocks of every rank; ValueError where the schedule does not fit."""
    if schedule not in SCHEDULES:
        raise ValueError(f"schedule {schedule!r} is none of {', '.join(SCHEDULES)}")
    if schedule in ("1f1b", "zb-h1"):
        return [
            [_of_step(step, whole=schedule == "1f1b") for step in order]
            for order in schedules.get_orders(schedule, p, m)
        ]
    least = 2 * p if schedule == "dualpipe-v" else 2 * p - 1
    if m < least:
        raise ValueError(f"{schedule} of {p} ranks takes {least} microbatches, not {m}")
    one = V_SHAPED.get(schedule, zb_h2)

    def to_steps(rank: int, step: RankStep) -> Block:
        stage = 2 * p - 1 - rank if step.chunk else rank
        return _of_step(Step(step.kind, step.microbatch, stage), whole=step.whole)

    return [
        [sum((to_steps(rank, step) for step in block), ()) for block in one(rank, p, m)]
        for rank in range(p)
    ]


def _of_step(step: Step, *, whole: bool) -> Block:
    if step.kind == "B" and whole:
        return step, Step("W", step.microbatch_id, step.stage)
    return (step,)


def get_orders(blocks: Sequence[Sequence[Block]]) -> list[list[Step]]:
    """Return the steps one after the other, as `timeline.py` takes them."""
    return [[step for block in rank for step in block] for rank in blocks]


# --- 2. sends and receives, put in by the sender ---


def add_send_recv(blocks: Sequence[Sequence[Block]]) -> list[list[Block | Transfer]]:
    """Put both ends of a message into the plans as soon as its sender has run.

    All ranks go on by turns, each as far as what it needs is there: so any two ranks
    have their ends of messages in one order, and each is received before it is used.
    """
    orders = get_orders(blocks)
    rank_of = {step.stage: r for r, order in enumerate(orders) for step in order}
    plans: list[list[Block | Transfer]] = [[] for _ in blocks]
    there: list[set[Step]] = [set() for _ in blocks]
    todo = [deque(rank) for rank in blocks]
    while any(todo):
        left = sum(map(len, todo))
        for rank, coming in enumerate(todo):
            if not coming or not _inputs(coming[0], len(rank_of)) <= there[rank]:
                continue
            block = coming.popleft()
            plans[rank].append(block)
            for step in block:
                there[rank].add(step)
                taken_by = step.stage + {"F": 1, "B": -1, "W": 0}[step.kind]
                peer = rank_of.get(taken_by, rank)
                if peer != rank:
                    plans[rank].append(Transfer("send", step, peer))
                    plans[peer].append(Transfer("recv", step, rank))
                    there[peer].add(step)
        _check_progress(todo, left)
    return plans


def _inputs(block: Block, num_stages: int) -> set[Step]:
    return {i for step in block for i in get_inputs(step, num_stages)} - {*block}


def _check_progress(todo: Sequence[Sequence[Block]], before: int) -> None:
    if sum(map(len, todo)) == before:
        stuck = {rank: coming[0] for rank, coming in enumerate(todo) if coming}
        raise ValueError(f"each waits for a step that cannot come: {stuck}")


# --- 3. when each block runs, and what is lost ---


def get_block_timeline(
    blocks: Sequence[Sequence[Block]], costs: Mapping[str, int]
) -> Timeline:
    """Every block as early as its rank and its inputs allow; costs by kind of step.

    Its steps run one after the other, and what they made leaves when all are over.
    """
    num_stages = 1 + max(step.stage for rank in get_orders(blocks) for step in rank)
    todo, free = [deque(rank) for rank in blocks], [0] * len(blocks)
    over: dict[Step, int] = {}
    timeline: Timeline = {}
    while any(todo):
        left = sum(map(len, todo))
        for rank, coming in enumerate(todo):
            while coming and (needed := _inputs(coming[0], num_stages)) <= over.keys():
                block, at = (
                    coming.popleft(),
                    max([free[rank], *(over[step] for step in needed)]),
                )
                for step in block:
                    timeline[step] = at, at + costs[step.kind]
                    at += costs[step.kind]
                free[rank] = at
                over |= dict.fromkeys(block, at)
        _check_progress(todo, left)
    return timeline


def get_split_bubble(
    schedule: str, p: int, m: int, forward: int = 1, backward: int = 1, weight: int = 1
) -> tuple[Fraction, str]:
    """Return the bubble of ideal time and its formula; m is 2 p or more, F = B >= W.

    The costs are of a chunk, of which a V has two a rank. Ranks begin one after the
    other and end so: nothing else is lost in ZB-H2 and ZB-V, whose F is at most 2 W.
    """
    f, b, w = forward, backward, weight
    lost, text = {
        "1f1b": (f + b + w, "F+B+W"),
        "zb-h1": (f + b - w, "F+B-W"),
        "zb-h2": (f, "F"),
        "zb-v": (f, "F"),
        "dualpipe-v": (f + 2 * b - w, "F+2B-W"),
    }[schedule]
    chunks = 2 if schedule in V_SHAPED else 1
    bubble = Fraction((p - 1) * lost, chunks * m * (f + b + w))
    return bubble, f"(p-1)({text})/({'2' if chunks > 1 else ''}m(F+B+W))"
