"""Records what a rank does: operations, transfers, waits, memory; `run_trace` shows it.

The profiler of torch sees every operation, what gloo or NCCL moves in the background,
and each allocation. What it cannot see is told here: where a step begins, where Python
waits for a transfer, and what is only there to compare with.

Follows:
- pytorch/pytorch: torch/profiler/profiler.py

Leaves out:
- waits that C++ makes by itself, as the reducer of torch's DDP does: a transfer that is
  under way while nothing computes shows them
"""

import gc
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch.profiler import (
    ProfilerActivity,
    _ExperimentalConfig,
    profile,
    record_function,
)

from mini_impls.run_events import Event, read_events

STEP = "step"
ALONE = "one process alone"
WAIT = "wait"
LATER = "a later step"
MOST_STEPS = 5
"""Steps of a part that are recorded: later ones are alike, and make a trace long."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rates:
    """What a rank reached on this machine before the run, while all did the same."""

    ranks: int
    rows: int
    train_s: float
    """Of a training step of the default model on so many sequences, alone."""
    call_s: float
    """Of an all-reduce of one number."""
    large_bytes: int
    large_s: float
    """Of an all-reduce of so many bytes."""
    resident_bytes: int | None
    """Of the process, with the model of that step; None where nobody counts it."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """What the estimates make of one step of one rank on a machine of these rates."""

    exposed_s: float
    """Communication that compute does not hide, and the bubble."""
    step_s: float | None
    """None where nobody says what a step computes."""
    rates: str
    """They, as people read them."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What the estimates say of one step of one rank."""

    sent_bytes: float | None = None
    """Bytes that the textbook's algorithms send."""
    held_bytes: float | None = None
    """Parameters, gradients and optimizer state."""
    flops: float | None = None
    """Model FLOPs of this rank's part."""
    idle: float | None = None
    """Share of a step in which a rank of a pipeline has nothing to do."""
    peak_bytes: float | None = None
    """States, activations, and what is gathered for a while."""
    compute_s: float | None = None
    """Where the time of computing is set, as by a sleep."""
    axis: str = "tp"
    """Of the traffic, as the estimates call it."""

    def at(self, rates: Rates, calls: float) -> Predicted | None:
        """Return what a step of so many calls comes to; None where nothing tells."""
        return None


@dataclass(frozen=True, slots=True)
class RankTrace:
    """What one rank recorded, as the profiler of torch writes it."""

    rank: int
    events: Sequence[Event]
    base_ns: int
    """What the times of the events are counted from."""
    tokens: int
    """Of one step, of all ranks together."""
    written_bytes: dict[str, int]
    """What the process wrote in each step, by the kernel: sockets, on gloo.

    Empty where the kernel does not say.
    """
    expected: dict[str, Expected]
    """Of each part."""
    product_flops_per_s: float
    """What a matrix product alone reached in this process."""
    rates: Rates | None = None
    """None where nobody measured them."""
    counted: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    """When (Unix time, ns) so many bytes of tensors lived in the first step of a part.

    Of parts that share a process, which the profiler cannot tell apart.
    """


@dataclass
class Recorder:
    """Records inside `with`, of each part its first `MOST_STEPS` steps.

    Where `is_on` is false it records nothing, and a mini runs as without it.
    """

    is_on: bool = False
    sees_memory: bool = True
    """False where it begins too late to have seen what was allocated before."""
    parts: int = 1
    """How many there will be: ways to do the same, one after another."""
    part: str = ""
    """The name of the present one; empty where there is one alone."""
    expected: dict[str, Expected] = field(default_factory=dict)
    rates: Rates | None = None
    counted: dict[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    _profile: Any = None
    _steps: Counter[str] = field(default_factory=Counter)
    _tokens: int = 0
    _written: dict[str, int] = field(default_factory=dict)

    def __enter__(self) -> "Recorder":
        """Begin."""
        if self.is_on:
            # It would print a line at each start and stop.
            os.environ.setdefault("KINETO_LOG_LEVEL", "99")
            activities = [ProfilerActivity.CPU]
            if torch.cuda.is_available():
                activities.append(ProfilerActivity.CUDA)
            self._profile = profile(
                activities=activities,
                profile_memory=self.sees_memory,
                record_shapes=True,
                # Of callbacks too: a hook of DDP goes on wherever its future ends. Not
                # beside memory, whose counts it spoils.
                experimental_config=_ExperimentalConfig(
                    profile_all_threads=not self.sees_memory
                ),
            )
            self._profile.start()
        return self

    def __exit__(self, *error: object) -> None:
        """End, where the last step has not."""
        self._stop()

    def begin(self, part: str) -> None:
        """Go on with another part, whose memory is not that of the one before."""
        if self.is_on:
            gc.collect()  # models that hold each other by their hooks
        self.part = part

    def expect(self, expected: Expected) -> None:
        """Say what the estimates give for the present part."""
        self.expected[self.part] = expected

    def count(self, live: Sequence[tuple[int, int]]) -> None:
        """Say what lived in the first step of the present part, and when."""
        self.counted[self.part] = live

    @contextmanager
    def step(self, tokens: int) -> Iterator[None]:
        """Take a step: `tokens` are those of all ranks together."""
        if not self.is_on:
            yield
            return
        number = self._steps[self.part]
        self._steps[self.part] += 1
        self._tokens = tokens
        if number >= MOST_STEPS:
            with record_function(LATER):
                yield
            return
        name = f"{self.part}, {STEP} {number}" if self.part else f"{STEP} {number}"
        before = written_bytes()
        with record_function(name), replaced_waits(_recorded):
            yield
        after = written_bytes()
        if before is not None and after is not None:
            self._written[name] = after - before
        has_begun_all = len(self._steps) == self.parts
        if has_begun_all and min(self._steps.values()) == MOST_STEPS:
            self._stop()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Do what is only there to compare with: no part of the run that is shown."""
        with record_function(ALONE) if self.is_on else nullcontext():
            yield

    def take(self, rank: int, device: torch.device) -> RankTrace:
        """Return what was recorded of a rank that computes on a device.

        Raises:
            ValueError: nothing was: there was no `with`.
        """
        if self._profile is None:
            raise ValueError("nothing was recorded")
        base_ns, events = read_events(self._profile)
        self._profile = None  # it is larger than what was read
        return RankTrace(
            rank,
            events,
            base_ns,
            self._tokens,
            self._written,
            self.expected,
            measure_products(device),
            self.rates,
            self.counted,
        )

    def _stop(self) -> None:
        if self.is_on:
            self._profile.stop()
            self.is_on = False


Wait = Callable[..., Any]
"""A method of a transfer's work that returns when it is done."""


@contextmanager
def replaced_waits(replace: Callable[[Wait], Wait]) -> Iterator[None]:
    """Have each wait for a transfer go through what `replace` makes of it."""
    work: Any = dist.Work
    originals = {name: getattr(work, name) for name in ("wait", "block_current_stream")}
    for name, original in originals.items():
        setattr(work, name, replace(original))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(work, name, original)


def _recorded(original: Wait) -> Wait:
    def wait(*args: Any, **kwargs: Any) -> Any:
        with record_function(WAIT):
            return original(*args, **kwargs)

    return wait


def written_bytes() -> int | None:
    """Return what this process has written so far, sockets included, where known."""
    counters = Path("/proc/self/io")
    if not counters.exists():  # Linux alone counts it
        return None
    rows = dict(row.split(": ") for row in counters.read_text().splitlines())
    return int(rows["wchar"])


@cache
def measure_products(device: torch.device, size: int = 192, rounds: int = 20) -> float:
    """Return the FLOP/s of square matrix products of that size, the best of some."""
    one = torch.ones(size, size, device=device)
    best = float("inf")
    for _ in range(rounds):
        start = perf_counter()
        one @ one
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = min(best, perf_counter() - start)
    return 2 * size**3 / best


def gather(value: T, group: dist.ProcessGroup) -> list[T] | None:
    """Return what each rank gave on the first; None on the others."""
    is_first = group.rank() == 0
    gathered: list[Any] | None = [None] * group.size() if is_first else None
    dist.gather_object(value, gathered, group_dst=0, group=group)
    return gathered
