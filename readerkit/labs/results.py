"""What labs 01, 02 and 04 write down: the schema of their files of results."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

from msgspec import Meta

from readerkit.errors import ContentError, ContentFault
from readerkit.model.freshness import MadeFrom
from readerkit.model.stored import MEASURED, Stored, parse
from readerkit.wording.next_command import typed

Measure = Annotated[float, MEASURED]
Count = Annotated[int, Meta(ge=0)]


class Environment(Stored, frozen=True):
    """The machine that a time was taken on."""

    python: str
    torch: str
    platform: str
    backend: str
    device: str
    devices: Count
    load_average: Measure


class Measured(Stored, frozen=True):
    """What the result of every lab says."""

    lab: str
    made: str
    command: str
    made_from: MadeFrom
    environment: Environment
    world_size: Count
    rounds: Count


class Training(Stored, frozen=True):
    """A few steps on all ranks beside one process."""

    losses: tuple[Measure, ...]
    one_process: tuple[Measure, ...]
    parameter_difference: Measure
    """Largest absolute difference of any parameter on any rank."""
    digests: tuple[str, ...]
    """Of all trained parameters, by rank."""


class AllReduce(Stored, frozen=True):
    """All-reduces of one size."""

    bytes: Count
    median_s: Measure
    min_s: Measure


class DdpStep(Stored, frozen=True):
    """A step at one width on so many ranks, in its three parts."""

    hidden_size: Count
    gradient_bytes: Count
    world_size: Count
    sequences: Count
    """Of all ranks together."""
    compute_s: Measure
    all_reduce_s: Measure
    update_s: Measure

    @property
    def step_s(self) -> float:
        """Seconds of the whole step, nothing overlapped."""
        return self.compute_s + self.all_reduce_s + self.update_s


class DdpResult(Measured, frozen=True):
    """Lab 01."""

    training: Training
    all_reduce: tuple[AllReduce, ...]
    steps: tuple[DdpStep, ...]


class MeasuredGeneration(Stored, frozen=True):
    """Generation at one width on so many ranks."""

    hidden_size: Count
    world_size: Count
    prefill_s: Measure
    token_s: Measure
    all_reduces_s: Measure
    """The all-reduces of one token, with nothing between them."""
    weight_bytes: Count
    cache_bytes: Count
    tokens: tuple[Count, ...]
    arrived: tuple[Mapping[str, str], ...]
    """Digest of each weight, as each rank read it."""


class GenerationResult(Measured, frozen=True):
    """Lab 02."""

    sent: Mapping[str, Mapping[str, str]]
    """Digest of each weight as it was written, by width."""
    curve: tuple[MeasuredGeneration, ...]


class FsdpStep(Stored, frozen=True):
    """A training step on so many ranks under one wrapping policy."""

    policy: str
    world_size: Count
    groups: Count
    tokens: Count
    """Of all ranks together."""
    step_s: Measure
    quickest_step_s: Measure
    shard_bytes: Count
    largest_group_bytes: Count
    collectives: Mapping[str, Count]
    payload_bytes: Mapping[str, Count]

    @property
    def tokens_per_s(self) -> float:
        """Throughput of all ranks."""
        return self.tokens / self.step_s


class FsdpResult(Measured, frozen=True):
    """Lab 04."""

    steps: tuple[FsdpStep, ...]


Result = DdpResult | GenerationResult | FsdpResult
_R = TypeVar("_R", DdpResult, GenerationResult, FsdpResult)


def read_result(kind: type[_R], lab: str, path: Path) -> _R:
    """Return the result that a lab's run wrote.

    Raises:
        ContentError: it is not such a result.
    """
    expected = f"what {typed('lab', lab, '--run')} writes"
    fault = partial(ContentFault, str(path), 1, 1, "not a readable result")
    try:
        text = path.read_text()
    except (OSError, ValueError) as error:
        raise ContentError([fault(str(error), expected)]) from None
    result = parse(text, kind, str(path), what="result", expected=expected)
    if result.lab != lab:
        raise ContentError([fault(f"the result of lab {result.lab}", expected)])
    return result
