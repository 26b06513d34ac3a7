"""Lab 02's curve: how many times as quick a token is on 2 and on 4 ranks, by width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from readerkit.labs.lab import ChecklistItem
from readerkit.labs.results import GenerationResult, MeasuredGeneration
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import counted, format_seconds

WORLDS = (1, 2, 4)
MIN_WIDTHS = 3


@dataclass(frozen=True, slots=True)
class WidthCurve:
    """One width, on each number of ranks that was measured."""

    alone: MeasuredGeneration
    on_more: tuple[MeasuredGeneration, ...]
    """Fewest ranks first; each took some time."""

    @property
    def hidden_size(self) -> int:
        """The width."""
        return self.alone.hidden_size

    @property
    def worlds(self) -> set[int]:
        """On how many ranks it was measured."""
        return {row.world_size for row in (self.alone, *self.on_more)}

    def speed_up(self, row: MeasuredGeneration) -> float:
        """Return how many times as quick a token is as on one rank."""
        return self.alone.token_s / row.token_s


def curves(result: GenerationResult) -> list[WidthCurve]:
    """Return a curve of each width that was measured on one rank and on more."""
    found = []
    for alone in result.curve:
        more = sorted(
            (
                row
                for row in result.curve
                if row.hidden_size == alone.hidden_size
                and row.world_size > 1
                and row.token_s
            ),
            key=lambda row: row.world_size,
        )
        if alone.world_size == 1 and more:
            found.append(WidthCurve(alone, tuple(more)))
    return found


def needed_worlds(result: GenerationResult) -> list[int]:
    """Return the numbers of ranks that a curve has: on GPUs, one each at the most."""
    where = result.environment
    most = where.devices if where.backend == "nccl" else WORLDS[-1]
    return [world for world in WORLDS if world <= max(2, most)]


def tell_crowding(result: GenerationResult) -> str:
    """Return what fewer cores than ranks mean for the times; empty: nothing."""
    where = result.environment
    ranks = max((row.world_size for row in result.curve), default=0)
    if where.backend == "nccl" or ranks <= where.devices:
        return ""
    cores = counted(where.devices, "core")
    return (
        f"{ranks} ranks shared {cores}: one that has none cannot join an all-reduce, "
        f"so times on more than {counted(where.devices, 'rank')} have waiting for a "
        f"turn in them; whether {ranks} are quicker takes {ranks} cores or GPUs"
    )


def check_generation(result: GenerationResult) -> list[ChecklistItem]:
    """Return the checklist of lab 02 for a result."""
    rows = result.curve
    weights = sum(len(each) for row in rows for each in row.arrived)
    whole = bool(rows) and all(
        len(row.arrived) == row.world_size
        and all(
            dict(got) == dict(result.sent.get(str(row.hidden_size), {}))
            for got in row.arrived
        )
        and row.arrived[0]
        for row in rows
    )
    found, needed = curves(result), needed_worlds(result)
    same = bool(found) and all(
        row.tokens == each.alone.tokens for each in found for row in each.on_more
    )
    complete = [each for each in found if each.worlds >= {*needed}]
    ran = sorted({row.world_size for row in rows})
    return [
        ChecklistItem.of(
            "two ranks or more ran",
            max(ran, default=0) >= 2 and result.world_size in ran,
            f"{_listed(ran)} ranks" if ran else "none",
        ),
        ChecklistItem.of(
            "every weight arrived as it left",
            whole,
            f"{weights} digests, before and after the process boundary",
        ),
        ChecklistItem.of(
            "more ranks generate the same tokens",
            same,
            f"{len(found)} widths, {len(rows[0].tokens) if rows else 0} tokens each",
        ),
        ChecklistItem.of(
            f"latency a token on {_listed(needed)} ranks, and its curve",
            len(complete) >= MIN_WIDTHS,
            _evidence(result, found, sorted({*needed} - {*ran})),
        ),
    ]


def _evidence(
    result: GenerationResult, found: Sequence[WidthCurve], missing: Sequence[int]
) -> str:
    texts = [
        f"width {each.hidden_size}: {format_seconds(each.alone.token_s)} a token, "
        + ", ".join(
            f"{each.speed_up(row):.2f}x on {row.world_size}" for row in each.on_more
        )
        for each in found
    ]
    if missing:
        again = typed("lab", "02", "--run")
        ranks = counted(missing[-1], "rank")
        texts.insert(0, f"nothing on {ranks}: {again} measures the whole curve")
    if found:
        ratios = [each.speed_up(each.on_more[-1]) for each in found]
        slower = sum(ratio < 1 for ratio in ratios)
        most = max(row.world_size for each in found for row in each.on_more)
        where = f"{slower} of {len(ratios)} widths"
        every = "every width" if slower == len(ratios) else where
        texts[-1] += f" (a slowdown on {most} at {every})"
    return "; ".join(filter(None, [*texts, tell_crowding(result)]))


def _listed(worlds: Sequence[int]) -> str:
    *before, last = map(str, worlds)
    return f"{', '.join(before)} and {last}" if before else last
