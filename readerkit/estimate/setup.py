"""What a plan and a check ask about: a model on a cluster, in any layout."""

from __future__ import annotations

from dataclasses import dataclass, field

from readerkit.estimate.defaults import PRECISION, RESERVE
from readerkit.estimate.hardware import Cluster
from readerkit.estimate.layout import Layout
from readerkit.estimate.memory import RankMemory, most_loaded
from readerkit.estimate.shape import Shape
from readerkit.estimate.states import Precision, precision
from readerkit.estimate.step_time import Assumptions, StepTime, step_time
from readerkit.model.language import Told
from readerkit.wording.numbers import format_flop_rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A model on a cluster, and how it is trained there, whatever the layout."""

    shape: Shape
    cluster: Cluster
    assumptions: Assumptions = field(default_factory=Assumptions)
    convention: str = PRECISION
    reserve: float = RESERVE
    no_sync: bool = True

    @property
    def kept(self) -> Precision:
        """The bytes that are kept for a parameter."""
        return precision(self.convention)

    @property
    def usable_bytes(self) -> float:
        """What one GPU offers."""
        return float(self.cluster.gpu.memory_bytes * (1 - self.reserve))

    def mfu_convention(self, flash: bool) -> str:
        """Return what an MFU of this question counts, and against which peak."""
        counted = "causal attention as half" if flash else "the whole square of scores"
        if self.shape.window:
            counted += f", of local layers a window of {self.shape.window} tokens"
        peak = f"{format_flop_rate(self.cluster.gpu.flops_per_s, 1)}, dense 16-bit"
        return f"{counted}, nothing that is recomputed; the peak is {peak}"

    def time(self, layout: Layout) -> StepTime:
        """Return the time of a step in a layout."""
        return step_time(
            self.shape,
            layout,
            self.cluster,
            self.assumptions,
            convention=self.convention,
            no_sync=self.no_sync,
        )

    def most_loaded(self, layout: Layout) -> RankMemory:
        """Return what the pipeline rank holds whose GPU holds most in a layout."""
        return most_loaded(self.shape, layout, self.kept)

    def held(self, layout: Layout) -> float:
        """Return the bytes of that GPU."""
        return float(self.most_loaded(layout).total)


def microbatches(count: int) -> Told:
    """Return so many of them, in words."""
    if count == 1:
        return Told("1 microbatch")
    return Told("{count} microbatches", count=count)
