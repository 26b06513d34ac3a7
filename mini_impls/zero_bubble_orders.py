"""Orders of work that leave little to wait for: ZB-H2, ZB-V, DualPipe; with no torch.

Where a backward is two steps, B for its input and W for its weights, W can fill a gap.
ZB-H2 fills the gaps of 1F1B but for p - 1 forwards and holds 2 p - 1 microbatches, not
p. ZB-V cuts the model into 2 p stages and lays them on p ranks as a V, there and back,
so that what a rank began it also ends. DualPipe sends half of the microbatches in at
each end; folded in the middle (DualPipeV) it is the V again, in which a forward and a
backward share a block.

    rank     | 0  1  1  0       stages of two ranks as a V
    stage    | 0  1  2  3

Follows:
    pytorch/pytorch: torch/distributed/pipelining/schedules.py

Leaves out:
    - ZB-H1: `schedules.py`
    - schedules searched for measured times (the paper's section 3)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

# p ranks, m microbatches.

# --- 1. the words ---------------------------------------------------------------------

Kind = Literal["F", "B", "W"]
KINDS: tuple[Kind, ...] = ("F", "B", "W")


class RankStep(NamedTuple):
    """One step: ``F``, ``B`` (its input's half, or all of it with ``whole``), ``W``."""

    kind: Kind
    microbatch: int
    chunk: int = 0
    """Of ZB-V: the way down or the way back. Of DualPipe: the direction."""
    whole: bool = False


Block = tuple[RankStep, ...]
"""What runs at once: one step, or in DualPipe a forward and a backward."""


# --- 2. one chunk a rank --------------------------------------------------------------


def zb_h2(rank: int, p: int, m: int) -> Iterator[Block]:
    """Twice 1F1B's warm-up, and the weights' gradients 2 r microbatches later.

    rank 0 | F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3 .
    rank 1 | .  F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3
    """
    ahead, late = 2 * (p - rank) - 1, 2 * rank
    for i in range(ahead):
        yield (RankStep("F", i),)
    for i in range(m):
        yield (RankStep("B", i),)
        if i >= late:
            yield (RankStep("W", i - late),)
        if i + ahead < m:
            yield (RankStep("F", i + ahead),)
    for i in range(m - late, m):
        yield (RankStep("W", i),)


# --- 3. two chunks a rank, as a V -----------------------------------------------------


def zb_v(rank: int, p: int, m: int) -> Iterator[Block]:
    """Two chunks a rank in the shape of a V: the last chunk is where the first is.

    Chunk 1's backward of a microbatch follows its forward on rank 0 at once, so that
    activations live no longer than in 1F1B.

    rank 0 | F0a F1a F2a F0b B0b W0b F1b B1b W1b B0a W0a F2b B2b W2b B1a W1a B2a W2a .
    rank 1 | .   F0a F0b F1a F1b B0b W0b F2a B0a W0a F2b B1b W1b B1a B2b B2a W1a W2b W2a
    """
    done = dict.fromkeys(("F0", "F1", "B0", "B1", "W0", "W1"), 0)

    def next_of(kind: Kind, chunk: int) -> Block:
        i = done[f"{kind}{chunk}"]
        done[f"{kind}{chunk}"] += 1
        return (RankStep(kind, i, chunk),)

    for _ in range(2 * (p - rank) - 1):
        yield next_of("F", 0)
    for _ in range(rank):
        yield next_of("F", 1)
        yield next_of("F", 0)
    for _ in range(p - rank):
        for kind in KINDS:
            yield next_of(kind, 1)
    while done["F1"] < m:
        if done["F0"] < m:
            yield next_of("F", 0)
        yield next_of("B", 0)
        yield next_of("W", 0)
        for kind in KINDS:
            yield next_of(kind, 1)
    while done["B1"] < m:
        yield next_of("B", 0)
        yield next_of("B", 1)
    while done["B0"] < m:
        yield next_of("B", 0)
        yield next_of("W", 0)
    for chunk in (1, 0):
        while done[f"W{chunk}"] < m:
            yield next_of("W", chunk)


# --- 4. both directions at once -------------------------------------------------------


def dualpipe(rank: int, p: int, m: int) -> Iterator[Block]:
    """Half of the microbatches from each end; in the middle both overlap.

    ``0`` below is the direction that begins nearer to this rank.
    """
    near = min(rank, p - 1 - rank)
    flip, rest = int(rank >= p // 2), p // 2 - near - 1
    counts = {(kind, way): 0 for kind in "FB" for way in (0, 1)}
    put_off: deque[RankStep] = deque()

    def take(kind: Kind, way: int, *, whole: bool = False) -> RankStep:
        i = counts[kind, way]
        counts[kind, way] += 1
        step = RankStep(kind, i, way ^ flip, whole)
        if kind == "B" and not whole:
            put_off.append(RankStep("W", i, way ^ flip))
        return step

    for _ in range(2 * rest):
        yield (take("F", 0),)
    for _ in range(near + 1):
        yield (take("F", 0),)
        yield (take("F", 1),)
    for _ in range(rest):
        yield (take("B", 1),)
        yield (put_off.popleft(),)
        yield (take("F", 1),)
    for i in range(m // 2 - p + near + 1):
        pair = take("F", 0), take("B", 1, whole=True)
        yield from ((each,) for each in pair) if i == 0 and rest == 0 else (pair,)
        yield take("F", 1), take("B", 0, whole=True)
    for _ in range(rest):
        yield (take("B", 1, whole=True),)
        yield take("F", 1), take("B", 0, whole=True)
    for i in range(2 * (near + 1)):
        yield (take("B", 1 - i % 2, whole=i <= near),)
    for _ in range(rest):
        yield (put_off.popleft(),)
        yield (take("B", 0),)
    while put_off:
        yield (put_off.popleft(),)


def dualpipe_v(rank: int, p: int, m: int) -> Iterator[Block]:
    """DualPipe of 2 p ranks, folded: each of p ranks has two of its stages.

    The second direction of the unfolded pipeline is the first half's way back, so that
    one copy of the weights is enough. Each step of a block takes its own time here:

    rank 0 | F0a F1a F2a F0b B0b W0b F1b F3a B1b W1b .   F2b B0a W0a B2b W2b .   ..
    rank 1 | .   F0a F0b F1a F1b F2a B0b W0b F2b B0a W0a F3a B1b W1b F3b B1a W1a ..
    """
    return dualpipe(rank, 2 * p, 2 * m)


ORDERS: dict[str, Callable[[int, int, int], Iterator[Block]]] = {
    "zb-h2": zb_h2,
    "zb-v": zb_v,
    "dualpipe": dualpipe,
}
