"""Why a step cannot stand at its place in a rank's row: told from the steps before it.

A row is right up to some place; each other step that may be typed there has its reason:
what it waits for, what stands before it, what the rank would hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from readerkit.model.language import Told

if TYPE_CHECKING:
    from mini_impls.schedules import Step
    from mini_impls.timeline import Timeline

WAIT = "."
"""A place in time at which a rank does nothing."""


@dataclass(frozen=True, slots=True)
class RankRow:
    """The row of a rank, in order or in time, and the schedule that it is of."""

    order: Sequence[Step]
    rank: int
    ranks: int
    chunks: int
    cells: Sequence[str]
    """The whole row as it would be typed."""
    timeline: Timeline
    """Of all ranks."""
    in_time: bool
    """Whether the row has the places in which the rank waits; an order has none."""

    def name(self, step: Step) -> str:
        """Return a step as it would be typed."""
        letter = chr(ord("a") + step.stage // self.ranks) if self.chunks > 1 else ""
        return f"{step.kind}{step.microbatch_id}{letter}"

    def reasons(self, at: int) -> Iterator[tuple[str, Told]]:
        """Yield each other step that may be typed at a place, and why it is wrong."""
        names = {self.name(step): step for step in self.order}
        for name in (*names, WAIT):
            if name != self.cells[at]:
                why = self._why(at, names.get(name), name)
                yield name, Told("{step}: {why}.", step=name, why=why)

    def none(self) -> Told:
        """Return what is said to a step that the schedule does not have."""
        return Told("the row of rank {rank} has no such step", rank=self.rank)

    def _why(self, at: int, step: Step | None, name: str) -> Told:
        """Return why a step, or to wait, is wrong behind the steps before a place."""
        done = [cell for cell in self.cells[:at] if cell != WAIT]
        if step is None:
            if not self.in_time:
                return Told("this row is an order of steps, in which nobody waits")
            told = "the rank need not wait here: all that its next step needs has come"
            return Told(told)
        if name in done:
            place = self.cells.index(name) + 1
            return Told("it has run already, in place {place}", place=place)
        own = f"F{name[1:]}"
        if step.kind != "F" and own not in done:
            return Told("it needs {own}, which has not run on this rank", own=own)
        first = next(s for s in self.order[len(done) :] if s.kind == step.kind)
        if first != step:
            told = "{first} comes before it: the schedule takes them in that order"
            return Told(told, first=self.name(first))
        if step == self.order[len(done)]:  # at its turn, but too early
            return self._too_early(at, step)
        return self._turn(step, done)

    def _too_early(self, at: int, step: Step) -> Told:
        """Return what a step has to wait for; each takes a unit of time."""
        from mini_impls.timeline import get_inputs

        inputs = get_inputs(step, self.ranks * self.chunks)
        last = max(inputs, key=lambda each: self.timeline[each][1])
        return Told(
            "it needs {input} of rank {rank}, which ends with place {end}",
            input=self.name(last),
            rank=last.stage % self.ranks,
            end=self.timeline[last][1],
        )

    def _turn(self, step: Step, done: Sequence[str]) -> Told:
        """Return why it is the turn of another kind of step."""
        from mini_impls.timeline import get_peak_in_flight

        kinds = [step.kind for step in self.order]
        lead, ends = kinds.index("B"), "W" if "W" in kinds else "B"
        run = {kind: sum(cell[0] == kind for cell in done) for kind in "FBW"}
        held, most = run["F"] - run[ends], get_peak_in_flight(self.order)
        if step.kind == "F" and held + 1 > most:
            return Told(
                "with it the rank would hold the activations of {held} forwards; in "
                "this schedule it holds {most} at most",
                held=held + 1,
                most=most,
            )
        if step.kind == "B" and run["F"] < lead:
            return Told(
                "rank {rank} of {ranks} runs {lead} forwards before its first "
                "backward; {count} have run",
                rank=self.rank,
                ranks=self.ranks,
                lead=lead,
                count=run["F"],
            )
        told = (
            "after {lead} forwards a backward and a forward take turns while both last"
        )
        return Told(told, lead=lead)
