"""Notes when each forward and backward of a pipeline ran."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor

from mini_impls.compare.sides import SetPhase, ignore_phase
from readerkit.content.vocabulary import SideName
from readerkit.evidence.record import TimelineBar


def now() -> float:
    """Return the time once a GPU, if there is one, has computed what it was asked to.

    Its stream of computing alone: what it still receives may wait for this rank.
    """
    if torch.cuda.is_initialized():
        torch.cuda.current_stream().synchronize()
    return time.perf_counter()


class StepLog:
    """The steps of one rank and side, the last time they ran."""

    def __init__(self, side: SideName, rank: int) -> None:
        self.side: SideName = side
        self.rank = rank
        self.bars: list[TimelineBar] = []
        self.set_phase: SetPhase = ignore_phase

    def start(self, set_phase: SetPhase) -> None:
        """Begin a step of training."""
        self.bars.clear()
        self.set_phase = set_phase

    @contextmanager
    def step(
        self, kind: Literal["F", "B", "W"], microbatch: int, stage: int
    ) -> Iterator[None]:
        """Note one forward, or backward, or the weights' half of one."""
        self.set_phase("forward" if kind == "F" else "backward")
        start = now()
        yield
        end = now()
        bar = TimelineBar(self.rank, self.side, kind, microbatch, stage, start, end)
        self.bars.append(bar)

    def is_whole(self, microbatch: int, stage: int) -> None:
        """Note that the backward that has just ended made the weights' half too.

        It is a bar of no length, so that its order and its unit of cost are known.
        """
        end = self.bars[-1].end_s
        bar = TimelineBar(self.rank, self.side, "W", microbatch, stage, end, end)
        self.bars.append(bar)

    def mark(self, forward: Tensor | None, backward: Tensor | None) -> None:
        """Say of tensors about to be sent or received which phase they are of."""
        if forward is not None:
            self.set_phase("forward", forward)
        if backward is not None:
            self.set_phase("backward", backward)
