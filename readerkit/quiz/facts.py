"""Keys that a run or a schedule gives: what to ask of it, and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from readerkit.errors import ReaderkitError
from readerkit.expression import Number
from readerkit.quiz.scene import Fact, Scene

if TYPE_CHECKING:
    from mini_impls.schedules import Step
    from readerkit.records import Event, Record

_OF_RECORDS = ("calls", "bytes", "ops", "held")


@dataclass(frozen=True, slots=True)
class RecordQuery:
    """What to ask of a comparison's record: events of one side of one rank."""

    record: str
    give: str
    side: str = "upstream"
    rank: int = 0
    phase: str = ""
    op: str = ""
    group: str = ""
    category: str = ""
    skip: int = 0
    take: int = 0
    """How many events; 0: all of them."""

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> RecordQuery:
        """Return the query of an entry.

        Raises:
            ReaderkitError: a key that records know nothing of.
        """
        if value["give"] not in _OF_RECORDS:
            known = ", ".join(_OF_RECORDS)
            raise ReaderkitError(f"a record does not give '{value['give']}': {known}")
        strange = set(value) - {each.name for each in fields(cls)}
        if strange:
            raise ReaderkitError(f"a record has no {', '.join(sorted(strange))}")
        given = dict(value)
        given["rank"] = int(given.get("rank", 0))
        return cls(**given)


@dataclass(frozen=True, slots=True)
class FaultQuery:
    """What to ask of a mini with one deliberate fault: what showed when it ran."""

    mini: str
    fault: str
    give: str = "symptom"

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> FaultQuery:
        """Return the query of an entry.

        Raises:
            ReaderkitError: a key that faults know nothing of, or a missing one.
        """
        if set(value) != {"mini", "fault", "give"} or value["give"] != "symptom":
            raise ReaderkitError("of a fault: expected mini, fault, and give: symptom")
        return cls(value["mini"], value["fault"])


@dataclass(frozen=True, slots=True)
class ScheduleQuery:
    """What to ask of a pipeline schedule; sizes are formulas over the parameters."""

    schedule: str
    give: str
    ranks: str
    microbatches: str
    chunks: str = "1"
    rank: str = "0"
    skip: int = 0
    take: int = 0

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> ScheduleQuery:
        """Return the query of an entry.

        Raises:
            ReaderkitError: a key that schedules know nothing of, or a missing size.
        """
        if value["give"] in (*_OF_RECORDS, "symptom"):
            raise ReaderkitError(f"a schedule does not give '{value['give']}'")
        strange = set(value) - {each.name for each in fields(cls)}
        missing = {"ranks", "microbatches"} - set(value)
        if strange or missing:
            raise ReaderkitError(
                f"of a schedule: missing {sorted(missing)}, unknown {sorted(strange)}"
            )
        given = dict(value)
        for name in ("ranks", "microbatches", "chunks", "rank"):
            if name in given:
                given[name] = str(given[name])
        return cls(**given)

    def formulas(self) -> list[str]:
        """Return the sizes."""
        return [self.ranks, self.microbatches, self.chunks, self.rank]


def answer_record(query: RecordQuery, record: Record) -> Fact:
    """Return what a record says.

    Raises:
        ReaderkitError: a rank or a category that it does not have.
    """
    if query.give == "held":
        held = [
            held.bytes
            for held in record.held
            if (held.rank, held.side, held.category)
            == (query.rank, query.side, query.category)
        ]
        if len(held) != 1:
            raise ReaderkitError(f"{query.record}: {len(held)} such entries, not one")
        return held[0]
    ranks = [each for each in record.events if each.rank == query.rank]
    if not ranks:
        raise ReaderkitError(f"{query.record} has no rank {query.rank}")
    [of_rank] = ranks
    events = of_rank.mini if query.side == "mini" else of_rank.upstream
    chosen = [event for event in events if _fits(event, query)][query.skip :]
    chosen = chosen[: query.take] if query.take else chosen
    if not chosen:
        raise ReaderkitError(f"{query.record}: no event fits")
    if query.give == "calls":
        return len(chosen)
    if query.give == "bytes":
        return sum(event.payload_bytes for event in chosen)
    return tuple(event.op for event in chosen)


def _fits(event: Event, query: RecordQuery) -> bool:
    asked = (
        (query.phase, event.phase),
        (query.op, event.op),
        (query.group, event.group),
    )
    return all(want in ("", have) for want, have in asked)


def answer_schedule(query: ScheduleQuery, scene: Scene) -> Fact:
    """Return what a schedule of the minis says for the variant's sizes.

    Raises:
        ReaderkitError: sizes that the schedule does not take.
    """
    # A quiz may have no such question.
    import mini_impls.schedules as schedules

    ranks, microbatches, chunks, rank = map(scene.whole, query.formulas())
    try:
        orders = schedules.get_orders(query.schedule, ranks, microbatches, chunks)
    except ValueError as error:
        raise ReaderkitError(str(error)) from None
    if not 0 <= rank < ranks:
        raise ReaderkitError(f"rank {rank}: expected 0 to {ranks - 1}")
    order = orders[rank]
    number: Number
    if query.give in ("bubble_ideal", "bubble_total"):
        ideal, total = schedules.get_bubble(schedules.get_timeline(orders), ranks)
        number = float(ideal if query.give == "bubble_ideal" else total)
        return number * 100
    if query.give == "lead":
        return [step.kind for step in order].index("B")
    if query.give == "in_flight":
        return schedules.get_peak_in_flight(order)
    if query.give == "timeline":
        drawn = schedules.draw(schedules.get_timeline(orders), ranks).splitlines()[rank]
        cells = drawn.partition("|")[2].split()
    else:
        cells = [_cell(step, ranks, chunks) for step in order]
    end = query.skip + query.take if query.take else len(cells)
    return tuple(cells[query.skip : end])


def _cell(step: Step, ranks: int, chunks: int) -> str:
    letter = chr(ord("a") + step.stage // ranks) if chunks > 1 else ""
    return f"{step.kind}{step.microbatch_id}{letter}"
