"""What a record comes to: identical, explained, a trap, or apart without a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from readerkit.content.vocabulary import EventDifference
from readerkit.errors import ReaderkitError
from readerkit.evidence.record import (
    PARAMETERS,
    RankEvents,
    Record,
    Verdict,
    distance_line,
)
from readerkit.model.language import Say, english
from readerkit.wording.numbers import format_number

Kind = Literal["identical", "explained", "trap", "unexplained"]

_END = distance_line(PARAMETERS[-1])
_KINDS: Mapping[EventDifference, str] = {
    "mini-waits-longer": "waited for longer by the mini",
    "upstream-waits-longer": "waited for longer upstream",
    "payload": "with another payload",
    "only-mini": "in the mini alone",
    "only-upstream": "upstream alone",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why some events of a step differ, or some other quantity."""

    why: str
    """Where nobody knows why: how they differ."""
    mirror: str
    """What gives the reason; empty where there is none."""
    events: int
    """So many have this reason, of all ranks; none where it is of no event."""
    what: str = ""
    """The quantity that it is of, where it is of no event."""


@dataclass(frozen=True, slots=True)
class UpstreamTrap:
    """A place where upstream, told to, goes wrong without a word."""

    why: str
    mirror: str
    """The mirror that gives this reason."""
    note: str
    """The annotation that tells of it."""
    upstream: float
    """Its loss at the end."""
    mini: float


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What a record says, counted: events of all ranks, each pair once."""

    kind: Kind
    events: int
    identical: int
    common: int
    """Those that both sides have, alike or not."""
    unseen: int
    """The identical of which nobody saw a wait, on one side or both."""
    explained: tuple[tuple[EventDifference, int], ...]
    """Those that differ for a known reason, by how they differ."""
    unexplained: tuple[tuple[EventDifference, int], ...]
    quantities: int
    """Lines of the verdict that differ without a reason."""
    reasons: tuple[Reason, ...]
    trap: UpstreamTrap | None
    steps: int
    apart: float
    """How far parameters are apart after so many steps, at most."""

    @classmethod
    def of(cls, record: Record) -> Conclusion:
        """Return what a record comes to."""
        matches = [match for rank in record.events for match in rank.matches]
        trap = _trap(record)
        apart = sum(line.state == "differ" for line in record.verdicts)
        flagged = [match.what for match in matches if match.state == "flagged"]
        kind: Kind = "identical"
        if apart or flagged:
            kind = "unexplained"
        elif trap:
            kind = "trap"
        elif any(match.state == "explained" for match in matches):
            kind = "explained"
        return cls(
            kind=kind,
            events=len(matches),
            identical=sum(match.state == "matched" for match in matches),
            common=sum(None not in (m.mini, m.upstream) for m in matches),
            unseen=sum(map(_unseen, record.events)),
            explained=_counted(m.what for m in matches if m.state == "explained"),
            unexplained=_counted(flagged),
            quantities=apart,
            reasons=tuple(_reasons(record)),
            trap=trap,
            steps=record.steps,
            apart=parameters_apart(record),
        )

    @property
    def has_calls_alone(self) -> bool:
        """Whether some call has no partner: then what calls are for is compared."""
        return self.common < self.events

    @property
    def is_mostly_apart(self) -> bool:
        """Whether under half of the events are identical: then it says what is not."""
        return 2 * self.identical < self.events


def parameters_apart(record: Record) -> float:
    """Return how far parameters are apart, at most, once a comparison has ended.

    Raises:
        ReaderkitError: a record without the line that says it.
    """
    found = [line.difference for line in record.verdicts if line.what == _END]
    if not found:
        raise ReaderkitError(
            f"the record of {record.comparison}: got no line '{_END}', expected one: "
            f"make it again: {record.command}"
        )
    return found[0]


def _trap(record: Record) -> UpstreamTrap | None:
    wrong = next((v for v in record.verdicts if v.allowed == "values"), None)
    if wrong is None:
        return None
    last = {
        side: next((losses[-1] for losses in ranks if losses), float("nan"))
        for side, ranks in record.losses.items()
    }
    return UpstreamTrap(
        wrong.reason, wrong.mirror, wrong.note, last["upstream"], last["mini"]
    )


def _counted(kinds: Iterable[str]) -> tuple[tuple[EventDifference, int], ...]:
    count = Counter(kinds)
    return tuple((kind, count[kind]) for kind in _KINDS if count[kind])


def _unseen(rank: RankEvents) -> int:
    return sum(
        rank.mini[match.mini].wait is None or rank.upstream[match.upstream].wait is None
        for match in rank.matches
        if match.state == "matched"
        and match.mini is not None
        and match.upstream is not None
    )


def _reasons(record: Record) -> Iterator[Reason]:
    """Yield each once: what has none first, then those of most events."""
    matches = [match for rank in record.events for match in rank.matches]
    flagged = Counter(m.apart for m in matches if m.state == "flagged")
    for apart, events in flagged.items():
        yield Reason(apart, "", events)
    for line in (line for line in record.verdicts if line.state == "differ"):
        sides = f"{format_number(line.mini)} / {format_number(line.upstream)}"
        yield Reason(sides, "", 0, line.what)
    known = Counter((m.why, m.mirror) for m in matches if m.state == "explained")
    for (why, mirror), events in known.most_common():
        yield Reason(why, mirror, events)
    whole: dict[tuple[str, str], Verdict] = {}
    for line in record.verdicts:
        if line.allowed and line.allowed != "values":
            whole.setdefault((line.reason, line.mirror), line)
    for (why, mirror), line in whole.items():
        yield Reason(why, mirror, 0, line.what)


def say_conclusion(found: Conclusion, say: Say = english) -> Iterator[str]:
    """Yield what happened, sentence by sentence, the one that matters most first.

    The reasons come after it: ``8 of 48 events identical, 40 explained: ...``
    """
    if found.kind == "unexplained":
        told = say(
            "It differs without a reason (events: {events}; other lines: {lines})."
        )
        events = sum(count for _, count in found.unexplained)
        yield told.format(events=events, lines=found.quantities)
    if found.trap:
        told = say(
            "A trap: upstream's loss is wrong here. It ends at {upstream}, that of "
            "the mini at {mini}."
        )
        upstream, mini = (f"{x:.4g}" for x in (found.trap.upstream, found.trap.mini))
        yield told.format(upstream=upstream, mini=mini)
    yield _count(found, say)
    if found.is_mostly_apart:
        yield _common(found, say)
        if found.trap:
            return
        if found.apart:
            told = say("After {steps} steps parameters differ by at most {apart}.")
            apart = format_number(found.apart)
            yield told.format(steps=found.steps, apart=apart)
        else:
            told = say("After {steps} steps every parameter is equal.")
            yield told.format(steps=found.steps)


def _count(found: Conclusion, say: Say) -> str:
    told = say("{same} of {events} events identical").format(
        same=found.identical, events=found.events
    )
    if found.unseen:
        told += f" ({say('{count} with waits unseen').format(count=found.unseen)})"
    for phrase, kinds in (
        ("{count} explained", found.explained),
        ("{count} without a reason", found.unexplained),
    ):
        if kinds:
            each = ", ".join(f"{n} {say(_KINDS[kind])}" for kind, n in kinds)
            count = sum(n for _, n in kinds)
            told += f", {say(phrase).format(count=count)}: {each}"
    return f"{told}."


def _common(found: Conclusion, say: Say) -> str:
    """Return what both sides have all the same, where most events are apart."""
    if not found.common:
        return say(
            "No call is common to both sides: the same work is done by other calls. "
            "Compare what each phase sends, what a rank keeps, and the tensors."
        )
    kinds = {kind for kind, _ in (*found.explained, *found.unexplained)}
    if not kinds <= {"mini-waits-longer", "upstream-waits-longer"}:
        told = say("{common} calls are on both sides, {alone} on one alone.")
        return told.format(common=found.common, alone=found.events - found.common)
    return say(
        "Every call is on both sides with the same bytes; what differs is how long "
        "each is waited for."
    )


def say_reason(reason: Reason, say: Say = english) -> str:
    """Return how much has a reason, as it stands before the reason itself."""
    one = say("1 event") if reason.events == 1 else say("{count} events")
    told = reason.what or one.format(count=reason.events)
    return told if reason.mirror else f"{told}, {say('without a reason')}"
