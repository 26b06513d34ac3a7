"""Figures of the reader's own ledger, labs and comparisons, for questions about them.

Each source is a table of figures, computed when a question first asks for one of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from msgspec import Struct, json

from readerkit.app.folders import data_folder, open_ledger, read_at_most
from readerkit.errors import ReaderkitError
from readerkit.labs import predictions, results
from readerkit.labs.lab import LABS
from readerkit.model.expression import Number
from readerkit.wording.next_command import typed

EXPERIMENTS = Path("experiments")
"""Where hand-ins of labs are, unless it is said otherwise."""
_T = TypeVar("_T")


class OwnLacking(ReaderkitError):
    """The reader has no such figure yet; the text says how to get it."""


@dataclass(frozen=True, slots=True)
class LedgerFigures:
    """Of the budget's ledger: a run is an entry that is settled and cost something."""

    ceiling_usd: float
    counted_usd: float
    """Spent, or reserved and not settled yet."""
    runs: int
    paid_usd: float
    reserved_usd: float
    """For these runs, before each of them."""
    minutes: float
    """That these runs took together."""
    last_usd: float
    last_minutes: float
    last_limit_minutes: float
    dear_entry: int
    """The number of the run that cost most for each hour."""
    dear_usd: float
    dear_minutes: float
    costly_entry: int
    """The number of the run that cost most in all."""


@dataclass(frozen=True, slots=True)
class DdpFigures:
    """Of lab 01, its steps at the largest width."""

    ranks: int
    small_bytes: int
    small_us: float
    large_mb: float
    large_us: float
    width: int
    gradient_mb: float
    alone_rate: float
    """Sequences a second on one rank."""
    rate: float
    compute_ms: float
    all_reduce_ms: float
    update_ms: float


@dataclass(frozen=True, slots=True)
class GuessFigures:
    """The guess before lab 01 at how many times as long a large all-reduce takes."""

    guessed: float
    measured: float


@dataclass(frozen=True, slots=True)
class GenerationFigures:
    """Of lab 02, at the largest width."""

    ranks: int
    alone_ms: float
    """For a token."""
    token_ms: float
    all_reduces_ms: float
    alone_weight_mb: float
    weight_mb: float


@dataclass(frozen=True, slots=True)
class FsdpFigures:
    """Of lab 04, its policy with the most groups."""

    ranks: int
    alone_rate: float
    """Tokens a second on one rank."""
    rate: float
    shard_mb: float
    largest_group_mb: float
    groups: int
    gathered_mb: float
    scattered_mb: float


@dataclass(frozen=True, slots=True)
class ComparedFigures:
    """Of a comparison that was kept: what rank 0 of the mini sent in one step."""

    ranks: int
    calls: int
    payload_bytes: int
    wire_bytes: int
    parameter_bytes: int
    held_bytes: int
    """Parameters, gradients and optimizer state."""
    mini_ms: float
    upstream_ms: float


@dataclass(slots=True)
class OwnFigures:
    """What this reader has; nothing is read before somebody asks."""

    folder: Path = EXPERIMENTS
    _read: dict[str, object] = field(default_factory=dict)

    def of(self, names: Iterable[str]) -> dict[str, Number]:
        """Return figures by their names, ``source.figure``.

        Raises:
            OwnLacking: the reader has no such source, or it has no such figure.
        """
        found = {}
        for name in names:
            source, _, figure = name.partition(".")
            if source not in self._read:
                try:
                    self._read[source] = _SOURCES[source][1](self.folder)
                except ReaderkitError as error:
                    self._read[source] = OwnLacking(str(error))
            if isinstance(table := self._read[source], OwnLacking):
                raise table
            found[name] = _displayed(getattr(table, figure))
        return found


def own_names() -> frozenset[str]:
    """Return the names of all figures there can be."""
    return frozenset(
        f"{source}.{each.name}"
        for source, (table, _) in _SOURCES.items()
        for each in dataclasses.fields(table)
    )


def keep_guesses(result: Path, guesses: Iterable[float | None]) -> None:
    """Keep what was guessed beside the result that it was guessed of."""
    from readerkit.upstreams.store import write_atomically

    write_atomically(_guesses_of(result), json.encode(_Guesses([*guesses])))


class _Guesses(Struct, frozen=True):
    guesses: list[float | None]


def _guesses_of(result: Path) -> Path:
    return result.with_suffix(".guesses.json")


def _displayed(value: Number) -> Number:
    """Return a figure to four digits, as it is shown: a key is computed from that."""
    if isinstance(value, int):
        return value
    short = float(f"{value:.4g}")
    return int(short) if short.is_integer() else short


# --- the sources ---


def _ledger(folder: Path) -> LedgerFigures:
    ledger = open_ledger()
    entries = ledger.entries() if ledger.path.is_file() else []
    runs = [  # number, dollars, minutes, and what it was reserved for
        (each.id, each.actual_cents / 100, each.seconds / 60, each)
        for each in entries
        if each.actual_cents and each.seconds
    ]
    if not runs:
        guard = typed("budget", "run", "--help")
        raise OwnLacking(f"your ledger has no run that has ended and cost: {guard}")
    room = ledger.rooms(None)[0]
    _, last_usd, last_minutes, last = runs[-1]
    dear, dear_usd, dear_minutes, _ = max(runs, key=lambda run: run[1] / run[2])
    return LedgerFigures(
        ceiling_usd=room.ceiling_cents / 100,
        counted_usd=room.counted_cents / 100,
        runs=len(runs),
        paid_usd=sum(usd for _, usd, _, _ in runs),
        reserved_usd=sum(each.reserved_cents for *_, each in runs) / 100,
        minutes=sum(minutes for _, _, minutes, _ in runs),
        last_usd=last_usd,
        last_minutes=last_minutes,
        last_limit_minutes=last.limit_seconds / 60,
        dear_entry=dear,
        dear_usd=dear_usd,
        dear_minutes=dear_minutes,
        costly_entry=max(runs, key=lambda run: run[1])[0],
    )


def _ddp(folder: Path) -> DdpFigures:
    result = results.read_result(results.DdpResult, "01", _handed_in(folder, "01"))
    small, *_, large = sorted(result.all_reduce, key=attrgetter("bytes"))
    width = max(step.hidden_size for step in result.steps)
    alone, step = _of_each(
        (each for each in result.steps if each.hidden_size == width), result.world_size
    )
    return DdpFigures(
        ranks=result.world_size,
        small_bytes=small.bytes,
        small_us=small.median_s * 1e6,
        large_mb=large.bytes / 1e6,
        large_us=large.median_s * 1e6,
        width=width,
        gradient_mb=step.gradient_bytes / 1e6,
        alone_rate=alone.sequences / alone.step_s,
        rate=step.sequences / step.step_s,
        compute_ms=step.compute_s * 1e3,
        all_reduce_ms=step.all_reduce_s * 1e3,
        update_ms=step.update_s * 1e3,
    )


def _guess(folder: Path) -> GuessFigures:
    path = _handed_in(folder, "01")
    result = results.read_result(results.DdpResult, "01", path)
    kept = _guesses_of(path)
    if kept.is_file():
        said = json.decode(kept.read_bytes(), type=_Guesses).guesses
        answer = predictions.predictions(result, said)[0]
        if answer.guess:
            return GuessFigures(answer.guess, answer.measured)
    run = typed("lab", "01", "--run")
    raise OwnLacking(f"no guess of yours is kept beside {path}: {run} asks for it")


def _generation(folder: Path) -> GenerationFigures:
    path = _handed_in(folder, "02")
    result = results.read_result(results.GenerationResult, "02", path)
    width = max(each.hidden_size for each in result.curve)
    alone, ranks = _of_each(
        (each for each in result.curve if each.hidden_size == width), result.world_size
    )
    return GenerationFigures(
        ranks=result.world_size,
        alone_ms=alone.token_s * 1e3,
        token_ms=ranks.token_s * 1e3,
        all_reduces_ms=ranks.all_reduces_s * 1e3,
        alone_weight_mb=alone.weight_bytes / 1e6,
        weight_mb=ranks.weight_bytes / 1e6,
    )


def _fsdp(folder: Path) -> FsdpFigures:
    result = results.read_result(results.FsdpResult, "04", _handed_in(folder, "04"))
    policy = max(result.steps, key=attrgetter("groups")).policy
    alone, step = _of_each(
        (each for each in result.steps if each.policy == policy), result.world_size
    )
    return FsdpFigures(
        ranks=result.world_size,
        alone_rate=alone.tokens_per_s,
        rate=step.tokens_per_s,
        shard_mb=step.shard_bytes / 1e6,
        largest_group_mb=step.largest_group_bytes / 1e6,
        groups=step.groups,
        gathered_mb=step.payload_bytes.get("all_gather", 0) / 1e6,
        scattered_mb=step.payload_bytes.get("reduce_scatter", 0) / 1e6,
    )


def _compared(comparison: str, folder: Path) -> ComparedFigures:
    from readerkit.evidence.record import Record

    path = data_folder() / "records" / f"{comparison}.json"
    mini = comparison.partition("_")[0]
    if not path.is_file():
        run = typed("compare", mini, "--save")
        raise OwnLacking(f"no comparison of {mini} of yours is kept: {run}")
    text = read_at_most(path, None).decode("utf-8", "replace")
    record = Record.parse(text, str(path))
    ours = ("mini", 0)
    sent = [each for each in record.totals if (each.side, each.rank) == ours]
    held = [each for each in record.held if (each.side, each.rank) == ours]
    wire = [each.bytes for each in record.wire if (each.side, each.rank) == ours]
    times = next((each for each in record.times if each.rank == 0), None)
    if not sent or not wire or times is None:
        raise OwnLacking(f"{path} has no bytes and times of a step: compare it again")
    return ComparedFigures(
        ranks=record.world_size,
        calls=sum(each.calls for each in sent),
        payload_bytes=sum(each.payload_bytes for each in sent),
        wire_bytes=wire[0],
        parameter_bytes=sum(e.bytes for e in held if e.category == "parameters"),
        held_bytes=sum(each.bytes for each in held),
        mini_ms=median(times.mini) * 1e3,
        upstream_ms=median(times.upstream) * 1e3,
    )


def _handed_in(folder: Path, lab: str) -> Path:
    path = folder / LABS[lab].handed_in
    if not path.is_file():
        raise OwnLacking(f"{path} is not there: {typed('lab', lab, '--run')} makes it")
    return path


def _of_each(rows: Iterable[_T], ranks: int) -> tuple[_T, _T]:
    """Return what was measured on one rank, and on all."""
    by_world = {row.world_size: row for row in rows}  # type: ignore[attr-defined]
    if ranks < 2 or not {1, ranks} <= by_world.keys():
        raise OwnLacking("your result has no step on one rank and on more: again")
    return by_world[1], by_world[ranks]


_SOURCES: dict[str, tuple[Any, Callable[[Path], object]]] = {
    "ledger": (LedgerFigures, _ledger),
    "lab01": (DdpFigures, _ddp),
    "guess": (GuessFigures, _guess),
    "lab02": (GenerationFigures, _generation),
    "lab04": (FsdpFigures, _fsdp),
    "ddp": (ComparedFigures, partial(_compared, "ddp_torch")),
    "fsdp": (ComparedFigures, partial(_compared, "fsdp_fully_shard")),
}
