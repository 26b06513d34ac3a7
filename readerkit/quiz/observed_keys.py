"""Keys that a run or a schedule gives: what to ask of it, and its answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, to_builtins

from mini_impls.schedules import SCHEDULES
from readerkit.content.vocabulary import Category, Phase, SideName
from readerkit.errors import ReaderkitError
from readerkit.model.base import Formula, Id, Model, Name
from readerkit.model.expression import Number
from readerkit.quiz.lockfile import Fact
from readerkit.quiz.schedule_reasons import RankRow
from readerkit.quiz.variant import Scene

if TYPE_CHECKING:
    from readerkit.evidence.record import Event, Record


from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from readerkit.model.language import Told
from readerkit.quiz.kinds.question import squeezed
from readerkit.quiz.lockfile import LockedFact, ResolvedPlace, held
from readerkit.quiz.messages import Remark
from readerkit.quiz.prompts import CitedLines
from readerkit.quiz.schedule_reasons import WAIT
from readerkit.wording.next_command import typed

_OF_RECORDS = ("calls", "bytes", "ops", "held")
_KEYS = {
    "record": {"side", "rank", "phase", "op", "group", "category", "skip", "take"},
    "schedule": {"ranks", "microbatches", "chunks", "rank", "skip", "take"},
    "fault": {"mini"},
}
"""What may be said beside each source, and what it gives."""


class ObservationQuery(Model, frozen=True):
    """What to ask of a record, of a pipeline schedule, or of a mini with a fault."""

    give: Literal[
        "calls",
        "bytes",
        "ops",
        "held",
        "row",
        "timeline",
        "lead",
        "in_flight",
        "bubble_ideal",
        "bubble_total",
        "symptom",
    ]
    record: Annotated[
        Name | None, Meta(description="A comparison of annotations/records.")
    ] = None
    side: SideName | None = None
    """Of a record: upstream where it says none."""
    phase: Phase | None = None
    op: Name | None = None
    group: Name | None = None
    category: Category | None = None
    skip: Annotated[int, Meta(ge=0)] | None = None
    take: Annotated[int, Meta(ge=1)] | None = None
    """How many events or cells; all of them where it says none."""
    schedule: Annotated[
        str | None, Meta(extra_json_schema={"enum": list(SCHEDULES)})
    ] = None
    ranks: Formula | None = None
    microbatches: Formula | None = None
    chunks: Formula | None = None
    rank: Formula | None = None
    mini: Annotated[
        Name | None, Meta(description="The mini of a fault: break lists both.")
    ] = None
    fault: Annotated[
        Id | None,
        Meta(description="Its name: what shows when it is run is the key."),
    ] = None

    def check(self) -> None:
        """Hold its keys against what it asks.

        Raises:
            ReaderkitError: not one source, a key that this one knows nothing of, or
                something that it does not give.
        """
        given = set(to_builtins(self)) - {"give"}
        named = [name for name in _KEYS if name in given]
        if len(named) != 1:
            raise ReaderkitError(
                "'from' must name a record or a schedule or a fault, one of them"
            )
        [of] = named
        strange = given - _KEYS[of] - {of}
        is_given = {
            "record": self.give in _OF_RECORDS,
            "schedule": self.give not in (*_OF_RECORDS, "symptom"),
            "fault": self.give == "symptom",
        }
        if of == "fault" and (strange or self.mini is None or not is_given[of]):
            raise ReaderkitError("of a fault: expected mini, fault, and give: symptom")
        if not is_given[of]:
            known = f": {', '.join(_OF_RECORDS)}" if of == "record" else ""
            raise ReaderkitError(f"a {of} does not give '{self.give}'{known}")
        missing = {"ranks", "microbatches"} - given if of == "schedule" else set()
        if strange or missing:
            raise ReaderkitError(
                f"of a {of}: missing {sorted(missing)}, unknown {sorted(strange)}"
            )

    def sizes(self) -> list[str]:
        """Return the sizes of a schedule, and the rank: formulas."""
        sizes = (self.ranks or 0, self.microbatches or 0, self.chunks or 1)
        return [str(each) for each in (*sizes, self.rank or 0)]


def answer_record(query: ObservationQuery, record: Record) -> Fact:
    """Return the fact that a query finds in a record.

    Raises:
        ReaderkitError: a rank or a category that it does not have.
    """
    number = int(query.rank or 0)
    side = query.side or "upstream"
    if query.give == "held":
        held = [
            held.bytes
            for held in record.held
            if (held.rank, held.side, held.category) == (number, side, query.category)
        ]
        if len(held) != 1:
            raise ReaderkitError(f"{query.record}: {len(held)} such entries, not one")
        return held[0]
    chosen = chosen_events(query, record)
    if query.give == "calls":
        return len(chosen)
    if query.give == "bytes":
        return sum(event.payload_bytes for event in chosen)
    return tuple(event.op for event in chosen)


def chosen_events(query: ObservationQuery, record: Record) -> list[Event]:
    """Return the events of a record that a query asks about, in their order.

    Raises:
        ReaderkitError: a rank that it does not have, or no event.
    """
    number = int(query.rank or 0)
    ranks = [each for each in record.events if each.rank == number]
    if not ranks:
        raise ReaderkitError(f"{query.record} has no rank {number}")
    [of_rank] = ranks
    events = of_rank.mini if query.side == "mini" else of_rank.upstream
    chosen = [event for event in events if _fits(event, query)][query.skip or 0 :]
    chosen = chosen[: query.take] if query.take else chosen
    if not chosen:
        raise ReaderkitError(f"{query.record}: no event fits")
    return chosen


def _fits(event: Event, query: ObservationQuery) -> bool:
    asked = (
        (query.phase, event.phase),
        (query.op, event.op),
        (query.group, event.group),
    )
    return all(want in (None, have) for want, have in asked)


def schedule_row(query: ObservationQuery, scene: Scene) -> RankRow:
    """Return the whole row of a rank for the variant's sizes.

    Raises:
        ReaderkitError: sizes that the schedule does not take.
    """
    # A quiz may have no such question.
    from mini_impls.schedules import get_orders
    from mini_impls.timeline import draw, get_timeline

    ranks, microbatches, chunks, rank = map(scene.whole, query.sizes())
    try:
        orders = get_orders(query.schedule or "", ranks, microbatches, chunks)
    except ValueError as error:
        raise ReaderkitError(str(error)) from None
    if not 0 <= rank < ranks:
        raise ReaderkitError(f"rank {rank}: expected 0 to {ranks - 1}")
    timeline = get_timeline(orders)
    drawn = draw(timeline, ranks).splitlines()[rank].partition("|")[2].split()
    row = RankRow(orders[rank], rank, ranks, chunks, drawn, timeline, in_time=True)
    if query.give == "timeline":
        return row
    return replace(row, cells=[*map(row.name, row.order)], in_time=False)


def answer_schedule(query: ObservationQuery, scene: Scene) -> Fact:
    """Return the fact that a schedule of the minis gives for the variant's sizes.

    Raises:
        ReaderkitError: sizes that the schedule does not take.
    """
    from mini_impls.timeline import get_bubble, get_peak_in_flight

    row = schedule_row(query, scene)
    if query.give in ("bubble_ideal", "bubble_total"):
        ideal, total = get_bubble(row.timeline, row.ranks)
        number: Number = float(ideal if query.give == "bubble_ideal" else total)
        return number * 100
    if query.give == "lead":
        return [step.kind for step in row.order].index("B")
    if query.give == "in_flight":
        return get_peak_in_flight(row.order)
    skip = query.skip or 0
    return tuple(row.cells[skip : skip + query.take if query.take else len(row.cells)])


MOST_SITES = 4
"""Of lines that calls of a record came from."""


@dataclass(frozen=True, slots=True)
class ObservedFact:
    """A key that was observed, and what it was observed in."""

    query: ObservationQuery
    key: Fact
    fact: LockedFact | None = None
    """Of a record or a fault."""
    row: RankRow | None = None
    """Of a schedule."""

    def of_number(self) -> tuple[Remark, ...]:
        """Return what shows a number: the lines that were counted, or the row."""
        if self.row is not None:
            return (self._of_row(self.row),)
        sites = self.fact.sites if self.fact else ()
        counted = Counter(sites).most_common(MOST_SITES)
        return (
            *(_from(site, count, len(sites)) for site, count in counted if site),
            *self._command(),
        )

    def of_each(self) -> list[tuple[Remark, ...]]:
        """Return what shows each word; nothing of a schedule: it has reasons."""
        if self.query.fault:
            command = typed("break", str(self.query.mini), str(self.query.fault))
            shown = " ".join(self.key) if isinstance(self.key, tuple) else self.key
            told = "The run of this fault shows {symptom}: {command}"
            return [(Remark(Told(told, symptom=shown, command=command)),)]
        if self.fact is None or not self.fact.command:
            return []
        assert isinstance(self.key, tuple)
        sites = self.fact.sites or (None,) * len(self.key)
        found = []
        for number, (op, site) in enumerate(zip(self.key, sites, strict=True), 1):
            told = "In the record call {number} is {op}."
            here = "In the record call {number} is {op}, from these lines."
            values = {"number": number, "op": op}
            place = CitedLines.of(site) if site else None
            remark = Remark(Told(here if place else told, **values), place)
            found.append((remark, *self._command()))
        return found

    def reasons(self) -> Sequence[Mapping[str, Remark]]:
        """Return what is said to each step that is wrong at a place of a row."""
        if self.row is None:
            return ()
        first, count = self.query.skip or 0, len(self.key)  # type: ignore[arg-type]
        return [
            {_compared(step): Remark(why) for step, why in self.row.reasons(at)}
            for at in range(first, first + count)
        ]

    def none(self) -> Remark | None:
        """Return what is said to a step that the schedule does not have."""
        return None if self.row is None else Remark(self.row.none())

    def _command(self) -> tuple[Remark, ...]:
        command = self.fact.command if self.fact else ""
        if not command:
            return ()
        told = Told("What counts it on this machine: {command}", command=command)
        return (Remark(told),)

    def _of_row(self, row: RankRow) -> Remark:
        kinds = [step.kind for step in row.order]
        steps = " ".join(map(row.name, row.order[: kinds.index("B") + 1]))
        told = "Rank {rank} begins {steps}: so many forwards, then its first backward."
        if self.query.give in ("bubble_ideal", "bubble_total"):
            end = max(end for _, end in row.timeline.values())
            told = "Each rank has {busy} steps, and the last one ends with place {end}."
            return Remark(Told(told, busy=len(row.order), end=end))
        return Remark(Told(told, rank=row.rank, steps=steps))


def observed(query: ObservationQuery, question: str, scene: Scene) -> ObservedFact:
    """Return the key of a prediction, and what shows it.

    Raises:
        KeyMissingError: the lock has none.
    """
    if query.schedule is not None:
        row = schedule_row(query, scene)
        return ObservedFact(query, answer_schedule(query, scene), row=row)
    fact = held(scene.lock.facts, question)
    return ObservedFact(query, fact.value, fact)


def _from(site: ResolvedPlace, count: int, of: int) -> Remark:
    told = "{count} of the {of} calls in the record come from these lines."
    return Remark(Told(told, count=count, of=of), CitedLines.of(site))


def _compared(step: str) -> str:
    return step if step == WAIT else squeezed(step)
