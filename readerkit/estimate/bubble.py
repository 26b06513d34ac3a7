"""The bubble of a pipeline, and what it holds: by formula, and from a schedule run.

The order of every schedule comes from ``mini_impls.schedules``; its idle time must be
that of the formula here, which a test holds for every size it tries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from mini_impls.zero_bubble_orders import ORDERS
from readerkit.errors import EstimateError
from readerkit.estimate.checks import MAX_RANKS, check_amount, check_choice, check_count
from readerkit.estimate.defaults import SCHEDULE
from readerkit.estimate.planned_steps import PlannedStep, drawn
from readerkit.estimate.quantity import (
    Number,
    Quantity,
    ceil_divide,
    divide,
    maximum,
    minimum,
    named_sizes,
)
from readerkit.estimate.schedules import CHUNKED, SOURCES, STAGES_OF_RANK
from readerkit.estimate.sizes import PIPELINE
from readerkit.estimate.zero_bubble import (
    check_sizes,
    held,
    lay_out,
    run,
    zb_interleaved,
)
from readerkit.estimate.zero_bubble import idle as idle_of
from readerkit.model.expression import plain

if TYPE_CHECKING:
    from fractions import Fraction

    from mini_impls.timeline import Timeline

SPLIT = ("zb-h1", "zb-interleaved", *ORDERS)
"""Those that split a backward."""
MAX_RUN = 200_000
"""Steps of one chunk that a schedule is run with."""
MAX_DRAWN = 20_000
"""Cells of a grid that anyone would look at."""


def check_schedule(name: str) -> None:
    """Raise for a schedule that is not known here.

    Raises:
        EstimateError: with those that are.
    """
    check_choice("schedule", name, SOURCES)


Flight = tuple[Number, int]
"""Chunks that a rank holds at its peak, and how many of them make a whole pass."""


class Pipeline(NamedTuple):
    """A schedule, its sizes, the times of its steps; ``Pipeline.parse`` checks them.

    ``forward`` and ``backward`` are one microbatch through one rank's layers. The
    zero-bubble schedules split the backward: theirs is the input's gradient alone, and
    ``weight`` the weights'.
    """

    schedule: str = SCHEDULE
    stages: int = 1
    microbatches: int = 1
    virtual_stages: int = 1
    forward: Number = 1
    backward: Number = 1
    weight: Number = 1

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Pipeline:
        """Return a pipeline whose sizes its schedule can have.

        Raises:
            EstimateError: a wrong value, or sizes that the schedule cannot have.
        """
        for name in values:
            check_choice("size of a pipeline", name, cls._fields)
        one = cls(**values)
        check_schedule(one.schedule)
        p = check_count("stages", one.stages, most=MAX_RANKS)
        m = check_count("microbatches", one.microbatches)
        v = check_count("virtual_stages", one.virtual_stages)
        for name in ("forward", "backward", "weight"):
            check_amount(name, getattr(one, name), zero=name == "weight")
        if v > 1 and one.schedule not in CHUNKED:
            raise EstimateError(
                f"virtual_stages: got {v} for {one.schedule}, expected 1 "
                f"({' and '.join(CHUNKED)} have more)"
            )
        if one.schedule in CHUNKED and m % p:
            raise EstimateError(
                f"microbatches: got {m}, expected a multiple of {p} (stages): the "
                f"{one.schedule} schedule takes them in groups"
            )
        if one.schedule in ORDERS:
            check_sizes(one.schedule, p, m)
        return one

    def named(self) -> Pipeline:
        """Return the same with sizes that know their names."""
        return self._replace(**named_sizes(self, PIPELINE))

    @property
    def splits_backward(self) -> bool:
        """Whether the weights' gradients are steps of their own."""
        return self.schedule in SPLIT

    @property
    def stages_of_rank(self) -> int:
        """Stages on a rank that a microbatch meets one of: one of each direction."""
        return STAGES_OF_RANK.get(self.schedule, 1)

    @property
    def idle(self) -> Number:
        """The idle time of one rank in a step.

        GPipe, 1F1B: (p - 1)(F + B); interleaved: that over v. ZB-H1: (p - 1)(F + B -
        W), from p microbatches on; with fewer, less of W finds a gap: (p - 1)(F + B) -
        (m - 1) W; interleaved: the first of both over v. ZB-H2: (p - 1)(F + B - 2 W),
        and never below zero; with fewer than 2 p - 1 microbatches it cannot fill its
        warm-up, and is refused. DualPipe: (p / 2 - 1)(F&B + B' - 3 W), where B' =
        B + W, F&B = F + B' and F = B. Of other times the schedule is run, as ZB-V is;
        and where W is longer than F or B, which delays what other ranks wait for.
        """
        p, f, b, w = self.stages, self.forward, self.backward, self.weight
        ramp = (p - 1) * (f + b)
        if not self.splits_backward:
            return divide(ramp, self.virtual_stages)
        if w > min(f, b) or self.schedule == "zb-v":
            return self._idle_of_run()
        if self.schedule == "zb-h2":
            return maximum(0, (p - 1) * (f + b - 2 * w))
        if self.schedule == "dualpipe":
            published = (divide(p, 2) - 1) * (f + 2 * b - w)
            return published if f == b else self._idle_of_run()
        filled = (minimum(self.microbatches, p) - 1) * w
        return divide(ramp - filled, self.virtual_stages)

    @property
    def busy(self) -> Number:
        """The time that one rank works in a step."""
        one = self.forward + self.backward
        if self.splits_backward:
            one += self.weight
        return check_amount("work", self.microbatches * one)

    @property
    def bubble(self) -> Number:
        """The bubble over busy time: (p - 1) / (v m) where a backward is whole."""
        if self.splits_backward:
            return divide(self.idle, self.busy)
        return divide(self.stages - 1, self.virtual_stages * self.microbatches)

    @property
    def bubble_of_total(self) -> Number:
        """The bubble as a share of the whole step."""
        if self.splits_backward:
            return divide(self.idle, self.busy + self.idle)
        ramp = self.stages - 1
        return divide(ramp, self.virtual_stages * self.microbatches + ramp)

    def chunks_in_flight(self, rank: int = 0) -> Number:
        """Return how many chunks' activations a rank holds at its peak.

        A chunk is 1 / virtual_stages of the rank's layers. ``mini_impls.schedules``
        gives the same by running the schedule.
        """
        p, m, v = self.stages, self.microbatches, self.virtual_stages
        if self.schedule == "1f1b" or (v == 1 and self.schedule == "interleaved"):
            return minimum(m, p - rank)
        if self.schedule == "interleaved":
            return minimum(m * v, 2 * (p - rank - 1) + (v - 1) * p + 1)
        if self.schedule == "zb-interleaved":
            return v * p
        if self.schedule == "gpipe":
            return m
        if self.schedule == "dualpipe":
            return p + 1
        return minimum(m, 2 * p - 1 if self.schedule == "zb-h2" else p)

    def flight(self, rank: int = 0) -> Flight:
        """Return the same, and how many chunks a pass through the rank's layers has."""
        parts = self.virtual_stages * self.stages_of_rank
        return self.chunks_in_flight(rank), parts

    def in_flight(self, rank: int = 0) -> Number:
        """Return the microbatches whose activations a rank holds at its peak.

        Counted in passes through all of the rank's layers, so that an interleaved
        schedule can come to a fraction.

        Raises:
            EstimateError: no rank of this pipeline.
        """
        if not 0 <= rank < self.stages:
            raise EstimateError(f"rank: got {rank}, expected 0 to {self.stages - 1}")
        return divide(self.chunks_in_flight(rank), self.virtual_stages)

    def first_chunks_in_flight(self, rank: int = 0) -> Number:
        """Return the microbatches whose pass through the first chunk is held."""
        if self.schedule in ("zb-v", "dualpipe"):
            # Of two directions the second begins where the first ends.
            near = min(rank, int(self.stages) - 1 - rank)
            return held(self.schedule, near, self.stages, self.microbatches, chunk=0)
        chunks = ceil_divide(self.chunks_in_flight(rank), self.virtual_stages)
        return minimum(self.microbatches, chunks)

    def simulate(self) -> tuple[Fraction, Fraction]:
        """Return the bubble of ideal and of total, from running the schedule.

        Of those that let each rank begin and end when it can, the idle time between.
        """
        if self.schedule in ORDERS:
            from fractions import Fraction

            idle, busy = Fraction(self._ran_idle()), Fraction(self.busy)
            return idle / busy, idle / (busy + idle)
        from mini_impls.timeline import get_bubble

        return get_bubble(self._run(), int(self.stages))

    def bars(self) -> list[PlannedStep]:
        """Return the steps of the schedule with their times, rank by rank.

        Raises:
            EstimateError: a schedule that is not run here, or too large to look at.
        """
        self._check_drawn()
        if self.schedule in ORDERS:
            costs = self._whole_times()
            steps = lay_out(self.schedule, self.stages, self.microbatches, costs)
            return [PlannedStep(*step) for step in steps]
        found = []
        for step, (start, end) in self._run().items():
            chunk, rank = divmod(step.stage, self.stages)
            name = step.kind, step.microbatch_id, chunk
            found.append(PlannedStep(rank, start, end, *name))
        return sorted(found, key=lambda bar: (bar.rank, bar.start))

    def grid(self) -> str:
        """Return the schedule as text: a line a rank, a column a unit of time.

        Raises:
            EstimateError: a schedule that is not run here, or too large to look at.
        """
        return drawn(self.bars(), self.stages)

    def _whole_times(self) -> tuple[int, int, int]:
        """Return the times of steps; a schedule is run in whole ones."""
        names = ("forward", "backward", "weight")
        times = (check_count(name, getattr(self, name)) for name in names)
        forward, backward, weight = map(int, times)
        return forward, backward, weight

    def _ran_idle(self) -> Fraction:
        """Return the idle time of a rank between its first step and its last."""
        p, m = int(self.stages), int(self.microbatches)
        if (steps := p * m * int(self.virtual_stages)) > MAX_RUN:
            raise EstimateError(
                f"{self.schedule}: got {steps:,} steps, expected at most {MAX_RUN:,}"
                f": where no formula holds the schedule is run"
            )
        if self.schedule not in ORDERS:
            return self.simulate()[0] * m * sum(self._whole_times())
        chunks = 2 if self.schedule == "zb-v" else 1
        times = run(self.schedule, p, m, self._whole_times())
        from fractions import Fraction

        return Fraction(idle_of(times, p), chunks)

    def _idle_of_run(self) -> Number:
        """Return the same, under a name where the sizes have names.

        Of ZB-V with even steps there is none, as its paper says: a test runs it.
        """
        found: Number = 0
        how = "none where F = B = W"
        if self.schedule != "zb-v" or not self.forward == self.backward == self.weight:
            found, how = plain(self._ran_idle()), "as the schedule is run"
        if not isinstance(self.forward, Quantity):
            return found
        return Quantity.given("I", found, f"idle time of a rank, {how}")

    def _check_drawn(self) -> None:
        unit = sum(self._whole_times())
        steps = self.stages * self.virtual_stages * (self.microbatches + self.stages)
        if steps * unit > MAX_DRAWN:
            raise EstimateError(
                f"the grid: got about {steps * unit:,} cells, expected at most "
                f"{MAX_DRAWN:,}"
            )

    def _run(self) -> Timeline:
        # Here, because most questions are answered by the formulas above.
        from mini_impls.schedules import get_orders
        from mini_impls.timeline import get_timeline

        sizes = int(self.stages), int(self.microbatches), int(self.virtual_stages)
        if self.schedule == "zb-interleaved":
            orders = [list(zb_interleaved(r, *sizes)) for r in range(sizes[0])]
        else:
            orders = get_orders(self.schedule, *sizes)
        return get_timeline(orders, *self._whole_times())


def bubble_time(**sizes: Any) -> Number:
    """Return the idle time of one rank in a step, of a ``Pipeline`` of these sizes."""
    return Pipeline.parse(sizes).idle


def bubble_fraction(*, of: str = "total", **sizes: Any) -> Number:
    """Return the bubble as a share of ``ideal`` (busy) time or of the ``total``."""
    check_choice("of", of, ("ideal", "total"))
    pipeline = Pipeline.parse(sizes)
    return pipeline.bubble if of == "ideal" else pipeline.bubble_of_total


def bubble_ratio_to_ideal(**sizes: Any) -> Number:
    """Return the bubble over busy time: (p - 1) / (v m)."""
    return Pipeline.parse(sizes).bubble


def peak_in_flight(*, rank: int = 0, **sizes: Any) -> Number:
    """Return the microbatches whose activations a rank holds at its peak."""
    return Pipeline.parse(sizes).in_flight(rank)
