"""What labs 01, 02 and 04 write down: the schema of their files of results."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from readerkit.errors import ContentError, ContentFault
from readerkit.model.codec import decoder
from readerkit.model.freshness import MadeFrom
from readerkit.system import json_file
from readerkit.wording.next_command import typed


@dataclass(frozen=True, slots=True)
class Environment:
    """The machine that a time was taken on."""

    python: str
    torch: str
    platform: str
    backend: str
    device: str
    devices: int
    load_average: float


@dataclass(frozen=True, slots=True)
class Training:
    """A few steps on all ranks beside one process."""

    losses: tuple[float, ...]
    one_process: tuple[float, ...]
    parameter_difference: float
    """Largest absolute difference of any parameter on any rank."""
    digests: tuple[str, ...]
    """Of all trained parameters, by rank."""


@dataclass(frozen=True, slots=True)
class AllReduce:
    """All-reduces of one size."""

    bytes: int
    median_s: float
    min_s: float


@dataclass(frozen=True, slots=True)
class DdpStep:
    """A step at one width on so many ranks, in its three parts."""

    hidden_size: int
    gradient_bytes: int
    world_size: int
    sequences: int
    """Of all ranks together."""
    compute_s: float
    all_reduce_s: float
    update_s: float

    @property
    def step_s(self) -> float:
        """Seconds of the whole step, nothing overlapped."""
        return self.compute_s + self.all_reduce_s + self.update_s


@dataclass(frozen=True, slots=True)
class DdpResult:
    """Lab 01."""

    lab: str
    made: str
    command: str
    made_from: MadeFrom
    environment: Environment
    world_size: int
    rounds: int
    training: Training
    all_reduce: tuple[AllReduce, ...]
    steps: tuple[DdpStep, ...]


@dataclass(frozen=True, slots=True)
class MeasuredGeneration:
    """Generation at one width on so many ranks."""

    hidden_size: int
    world_size: int
    prefill_s: float
    token_s: float
    all_reduces_s: float
    """The all-reduces of one token, with nothing between them."""
    weight_bytes: int
    cache_bytes: int
    tokens: tuple[int, ...]
    arrived: tuple[Mapping[str, str], ...]
    """Digest of each weight, as each rank read it."""


@dataclass(frozen=True, slots=True)
class GenerationResult:
    """Lab 02."""

    lab: str
    made: str
    command: str
    made_from: MadeFrom
    environment: Environment
    world_size: int
    rounds: int
    sent: Mapping[str, Mapping[str, str]]
    """Digest of each weight as it was written, by width."""
    curve: tuple[MeasuredGeneration, ...]


@dataclass(frozen=True, slots=True)
class FsdpStep:
    """A training step on so many ranks under one wrapping policy."""

    policy: str
    world_size: int
    groups: int
    tokens: int
    """Of all ranks together."""
    step_s: float
    quickest_step_s: float
    shard_bytes: int
    largest_group_bytes: int
    collectives: Mapping[str, int]
    payload_bytes: Mapping[str, int]

    @property
    def tokens_per_s(self) -> float:
        """Throughput of all ranks."""
        return self.tokens / self.step_s


@dataclass(frozen=True, slots=True)
class FsdpResult:
    """Lab 04."""

    lab: str
    made: str
    command: str
    made_from: MadeFrom
    environment: Environment
    world_size: int
    rounds: int
    steps: tuple[FsdpStep, ...]


Result = DdpResult | GenerationResult | FsdpResult
_R = TypeVar("_R", DdpResult, GenerationResult, FsdpResult)


def read_result(kind: type[_R], lab: str, path: Path) -> _R:
    """Return the result that a lab's run wrote.

    Raises:
        ContentError: it is not such a result.
    """
    expected = f"what {typed('lab', lab, '--run')} writes"
    try:
        data = json_file.load(path.read_text())
        build: Any = kind  # a class is hashable, which mypy cannot see here
        result: _R = decoder(build)(data, "result")
        if result.lab != lab:
            raise ValueError(f"the result of lab {result.lab}")
        for name, number in _numbers(result, "result"):
            if not math.isfinite(number) or number < 0:
                raise ValueError(f"{name} is {number}")
    except (OSError, ValueError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        raise ContentError(
            [
                ContentFault(
                    str(path), line, 1, "not a readable result", str(error), expected
                )
            ]
        ) from None
    return result


def _numbers(value: Any, where: str) -> Iterator[tuple[str, float]]:
    if is_dataclass(value):
        for field in fields(value):
            yield from _numbers(getattr(value, field.name), f"{where}.{field.name}")
    elif isinstance(value, tuple):
        for i, item in enumerate(value):
            yield from _numbers(item, f"{where}[{i}]")
    elif isinstance(value, int | float):
        yield where, value
