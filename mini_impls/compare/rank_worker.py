"""What every rank does: train both sides on the same batches and watch one step each.

Steps alternate between the sides, so that what the machine does besides falls on both.
After the warm-up one step is traced for events, one for memory; the others are timed.
Up to there every line that runs is noted.
"""

import math
import sys
import time
import warnings
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from mini_impls.compare import shims
from mini_impls.compare.callbacks import pooled_too, watched_too
from mini_impls.compare.comparisons import find
from mini_impls.compare.lines import LineTrace
from mini_impls.compare.memory import LiveMemory, held_bytes
from mini_impls.compare.places import Places, get_roots
from mini_impls.compare.sides import (
    Comparison,
    Formulas,
    Schedule,
    SetPhase,
    Side,
    Sides,
    ignore_phase,
)
from mini_impls.compare.stacks import Stacks
from mini_impls.compare.trace import CollectiveTrace
from mini_impls.compare.unpinned import give_names
from mini_impls.compare.wire import ring_bytes
from mini_impls.demos.expected import Estimated, compared
from mini_impls.launch import Rank
from mini_impls.model import Batch, GPTConfig, make_batch
from mini_impls.recorder import (
    MOST_STEPS,
    Expected,
    RankTrace,
    Recorder,
    written_bytes,
)
from mini_impls.run_rates import measure_rates
from readerkit.content.vocabulary import Phase, SideName
from readerkit.evidence.record import Event, ExecutedLine, TimelineBar

WARM_UP_STEPS = 3
"""Torch's DDP builds its buckets anew after the first step, optimizers their state."""
WATCHED_STEPS = WARM_UP_STEPS + 2
"""Steps whose lines are noted: all that are not timed."""
MIN_STEPS = WATCHED_STEPS + 1
SIDES: tuple[SideName, SideName] = ("mini", "upstream")

Lines = Mapping[tuple[str, str], set[int]]


@dataclass(frozen=True, slots=True)
class Distance:
    """How far two sets of tensors are apart."""

    mini: float
    """Largest absolute value."""
    upstream: float
    difference: float


@dataclass(frozen=True, slots=True)
class SideResult:
    """What one side did on one rank."""

    losses: tuple[float, ...]
    events: tuple[Event, ...]
    gradients: int | None
    setup_lines: Lines
    step_lines: tuple[Lines, ...]
    """Of each watched step."""
    held: Mapping[str, int]
    peak: int
    peak_phase: Phase
    peak_categories: Mapping[str, int]
    random: int
    """A checksum of where the last step left torch's stream of random numbers."""
    times: tuple[float, ...]
    wire_bytes: int | None


@dataclass(frozen=True, slots=True)
class RankResult:
    """What one rank saw."""

    mini: SideResult
    upstream: SideResult
    distances: Mapping[str, Distance]
    formulas: Formulas
    schedule: Schedule | None
    bars: tuple[TimelineBar, ...]
    stacks: tuple[tuple[ExecutedLine, ...], ...]
    trace: RankTrace | None
    """Of steps after all others; None where nobody asked."""


def watch(
    rank: Rank,
    mini: str,
    upstream: str,
    steps: int,
    megatron: Path | None,
    is_traced: bool = False,
    locked: Collection[tuple[str, str]] | None = None,
) -> RankResult:
    """Run one comparison on this rank; note lines of `locked` files, or of all."""
    if megatron is not None:
        sys.dont_write_bytecode = True  # the directory stays what was verified
        sys.path.insert(0, str(megatron))
        # It says on import which optional packages it does without.
        warnings.filterwarnings("ignore", module=r"megatron\.")
        # It calls collectives by names that torch has renamed since.
        warnings.filterwarnings("ignore", r".* is deprecated", FutureWarning)
    give_names()
    rank.show("importing the mini and its upstream")
    comparison = find(mini, upstream).at(rank.world_size)
    places = Places(get_roots(megatron), locked)
    watcher = _Watcher(rank, comparison, places)
    return watcher.run(steps, is_traced=is_traced)


class _Watcher:
    def __init__(self, rank: Rank, comparison: Comparison, places: Places) -> None:
        self.rank, self.comparison, self.places = rank, comparison, places
        self.stacks = Stacks(places)
        self.setup = LineTrace(places)
        late = shims.compiling_late()
        with late, self.shims("upstream"), pooled_too(self.setup), self.setup:
            self.sides: Sides = comparison.build(rank, comparison)
        self.losses: dict[str, list[float]] = defaultdict(list)
        self.times: dict[str, list[float]] = defaultdict(list)
        self.wire: dict[str, int | None] = {}
        self.traces: dict[str, CollectiveTrace] = {}
        self.lines: dict[str, list[LineTrace]] = defaultdict(list)
        self.memory = {name: LiveMemory() for name in SIDES}
        torch.manual_seed(0)
        self.random = dict.fromkeys(SIDES, random_state(rank.device))

    def run(self, steps: int, *, is_traced: bool) -> RankResult:
        distances = {"parameters at the start": self.distance("parameters")}
        for step in range(steps):
            self.rank.show("mini and upstream by turns, step", step, steps)
            for name in SIDES if step % 2 == 0 else SIDES[::-1]:
                self.step(name, step)
            if step == 0:
                distances["gradients of the first step"] = self.distance("gradients")
        distances["gradients of the last step"] = self.distance("gradients")
        distances["parameters at the end"] = self.distance("parameters")
        bars = self.sides.bars() if self.sides.bars else ()
        of_mini, of_upstream = self.result("mini"), self.result("upstream")
        return RankResult(
            of_mini,
            of_upstream,
            distances,
            self.formulas(),
            self.sides.schedule,
            bars,
            self.stacks.all(),
            self.traced(steps) if is_traced else None,
        )

    def traced(self, first: int) -> RankTrace:
        """Take more steps of both sides with everything recorded, from this one on.

        In the first of each side its tensors' bytes are counted, which takes time.
        """
        rates = measure_rates(self.rank, sees_memory=False)
        recorder = Recorder(True, sees_memory=False, parts=len(SIDES), rates=rates)
        with recorder:
            for name in SIDES:
                recorder.begin(name)
                recorder.expect(self.expected(name))
            for step in range(first, first + MOST_STEPS):
                for name in SIDES:
                    batch = self.batch(step)
                    dist.barrier(self.rank.group)
                    recorder.begin(name)
                    step_of_it = recorder.step(batch[0].numel())
                    with self.shims(name), self.drawing(name), step_of_it:
                        if step == first:
                            recorder.count(self.counted_step(name, batch))
                        else:
                            self.side(name).step(batch, ignore_phase)
        return recorder.take(self.rank.rank, self.rank.device)

    def counted_step(self, name: SideName, batch: Batch) -> list[tuple[int, int]]:
        """Take a step; return when how many bytes of this side's tensors lived."""
        side, memory = self.side(name), LiveMemory()
        memory.start(side.held())  # type: ignore[arg-type]
        here = torch.autograd.set_multithreading_enabled(False)
        with here, watched_too(memory), memory.watching():
            side.step(batch, ignore_phase)
        return memory.seen

    def expected(self, name: SideName) -> Expected:
        """Return what the calls of the traced step come to in rings.

        Nothing where an operation has no formula, where others write what the kernel
        counts, or where groups of several sizes send: of two, each is the whole world.
        """
        of, world_size = self.comparison, self.rank.world_size
        events = self.traces[name].events()
        is_known = {e.op for e in events if e.payload_bytes} <= {
            *self.formulas().payload[name],
            *("recv", "barrier"),
        }
        is_one_group = len(self.sides.groups) < 2 or world_size == 2
        if not (is_known and is_one_group and self.is_on_wire_alone()):
            return Expected()
        sent = sum(ring_bytes(event, self.rank.rank, world_size) for event in events)
        if type(of.config) is not GPTConfig or not of.data_parallel:
            return Estimated(sent_bytes=sent)
        return compared(of.config, self.rank, rows=of.rows_per_rank, sent=sent)

    def batch(self, step: int) -> Batch:
        """Return the tokens and labels of a step, on this rank's device."""
        rows = self.comparison.rows_per_rank
        if self.comparison.data_parallel:
            rows *= self.rank.world_size
        tokens, labels = make_batch(self.comparison.config, step=step, batch_size=rows)
        return tokens.to(self.rank.device), labels.to(self.rank.device)

    def is_on_wire_alone(self) -> bool:
        """Tell whether what was written can be held against what was due."""
        return not (self.comparison.writes_files or self.comparison.uneven)

    def formulas(self) -> Formulas:
        """Return what the traced step should have sent."""
        known = self.sides.of_traced_step
        return known(WARM_UP_STEPS) if known else self.sides.formulas

    def side(self, name: SideName) -> Side:
        return self.sides.mini if name == "mini" else self.sides.upstream

    def shims(self, name: SideName) -> AbstractContextManager[None]:
        names = self.comparison.shims if name == "upstream" else ()
        return shims.applied(names, self.rank.device)

    @contextmanager
    def drawing(self, name: SideName) -> Iterator[None]:
        """Let a side go on in its own stream of random numbers, alike at the start."""
        set_random_state(self.rank.device, self.random[name])
        yield
        self.random[name] = random_state(self.rank.device)

    def step(self, name: SideName, step: int) -> None:
        """Take one step and note its loss."""
        batch, side = self.batch(step), self.side(name)
        dist.barrier(self.rank.group)
        with self.shims(name), self.drawing(name):
            if step == WARM_UP_STEPS:
                loss = self.traced_step(name, side, batch)
            elif step < WATCHED_STEPS:
                loss = self.watched_step(name, batch, self.memory[name].set_phase)
            else:
                before, start = written_bytes(), self.settled()
                loss = side.step(batch, ignore_phase)
                self.times[name].append(self.settled() - start)
                after = written_bytes()
                is_known = before is not None and after is not None
                self.wire[name] = after - before if is_known else None  # type: ignore[operator]
        if loss is not None:
            self.losses[name].append(loss)

    def traced_step(
        self, name: SideName, side: Side, batch: tuple[Tensor, Tensor]
    ) -> float | None:
        """Take a step with every collective and every line noted."""
        self.traces[name] = trace = CollectiveTrace(self.stacks, self.sides.groups)
        with trace.watching(side.watched()):
            return self.watched_step(name, batch, trace.set_phase, trace)

    def watched_step(
        self,
        name: SideName,
        batch: Batch,
        set_phase: SetPhase,
        *outer: AbstractContextManager[Any],
    ) -> float | None:
        """Take a step with every line and every tensor noted, inside `outer`."""
        side, memory = self.side(name), self.memory[name]
        is_last = len(self.lines[name]) == WATCHED_STEPS - 1
        memory.start(side.held(), measures=is_last)  # type: ignore[arg-type]
        self.lines[name].append(lines := LineTrace(self.places))
        # Autograd would run the backward of a GPU on a thread of its own, unseen.
        here = torch.autograd.set_multithreading_enabled(False)
        threads = watched_too(*outer, memory, lines)
        with here, pooled_too(lines), threads, memory.watching(), lines:
            return side.step(batch, set_phase)

    def settled(self) -> float:
        """Return the time once all that was asked of the device is done."""
        if self.rank.device.type == "cuda":
            torch.cuda.synchronize(self.rank.device)
        return time.perf_counter()

    def distance(self, what: str) -> Distance:
        """Compare both sides' parameters or gradients, name by name."""
        with self.shims("mini"):
            ours = getattr(self.sides.mini, what)()
        with self.shims("upstream"):
            theirs = getattr(self.sides.upstream, what)()
        if set(ours) != set(theirs):
            odd = sorted(set(ours) ^ set(theirs))
            raise ValueError(f"{len(odd)} {what} are on one side only: {odd}")
        pairs = [(ours[name], theirs[name]) for name in ours]
        return Distance(
            largest(a.abs().max().item() for a, _ in pairs),
            largest(b.abs().max().item() for _, b in pairs),
            largest((a - b).abs().max().item() for a, b in pairs),
        )

    def result(self, name: SideName) -> SideResult:
        """Return everything seen of one side."""
        side, memory = self.side(name), self.memory[name]
        return SideResult(
            losses=tuple(self.losses[name]),
            events=self.traces[name].events(),
            gradients=len(list(side.watched())) or None,
            setup_lines=dict(self.setup.lines),
            step_lines=tuple(dict(trace.lines) for trace in self.lines[name]),
            held={
                **{what: held_bytes(kept) for what, kept in side.held().items()},
                "other": memory.left,
            },
            peak=memory.peak,
            peak_phase=memory.peak_phase,
            peak_categories=memory.peak_categories,
            random=checksum(self.random[name]),
            times=tuple(self.times[name]),
            wire_bytes=self.wire.get(name) if self.is_on_wire_alone() else None,
        )


def largest(values: Iterable[float]) -> float:
    """Return the largest value; not a number, where one of them is none.

    `max` would pass over it, depending on where it stands.
    """
    known = list(values)
    return math.nan if any(map(math.isnan, known)) else max(known, default=0.0)


def random_state(device: torch.device) -> list[Tensor]:
    """Return where torch's streams of random numbers stand, of CPU and device."""
    of_device = [torch.cuda.get_rng_state(device)] if device.type == "cuda" else []
    return [torch.get_rng_state(), *of_device]


def set_random_state(device: torch.device, state: Sequence[Tensor]) -> None:
    """Go on where `random_state` was taken."""
    torch.set_rng_state(state[0])
    for of_device in state[1:]:
        torch.cuda.set_rng_state(of_device, device)


def checksum(state: Iterable[Tensor]) -> int:
    """Return one number for a state."""
    return zlib.crc32(b"".join(bytes(each.tolist()) for each in state)) % 10**6
