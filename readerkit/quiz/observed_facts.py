"""What shows a prediction to be wrong: calls of a record, the row of a schedule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from readerkit.model.language import Told
from readerkit.quiz.kinds.base import squeezed
from readerkit.quiz.lock import Fact, LockedFact, ResolvedPlace, held
from readerkit.quiz.messages import Remark
from readerkit.quiz.observed_keys import ObservationQuery, answer_schedule, schedule_row
from readerkit.quiz.prompts import CitedLines
from readerkit.quiz.schedule_reasons import WAIT, RankRow
from readerkit.quiz.variant import Scene
from readerkit.wording.next_command import typed

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
