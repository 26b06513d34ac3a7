"""The strip of events of one rank's step, both sides, and the way to each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, takewhile

from readerkit.content.book import MINIS
from readerkit.content.vocabulary import PHASES
from readerkit.evidence.executed_lines import op_name
from readerkit.evidence.record import Event, EventMatch, ExecutedLine, RankEvents
from readerkit.evidence.relevance import Evidence
from readerkit.model import addresses
from readerkit.model.language import Say, english
from readerkit.render.html.clock_chart import clock_view
from readerkit.render.html.lanes_chart import LanesView, lanes_view
from readerkit.render.html.site_model import SiteModel
from readerkit.render.html.words import Text
from readerkit.wording.numbers import format_bytes

LAUNCHER = (MINIS, "mini_impls/launch.py")
"""What calls both sides: it is part of neither."""
SHORT: Mapping[str, str] = {
    "all_gather": "AG",
    "all_reduce": "AR",
    "all_to_all": "AA",
    "barrier": "BA",
    "broadcast": "BC",
    "gather": "GA",
    "recv": "R",
    "reduce": "RD",
    "reduce_scatter": "RS",
    "scatter": "SC",
    "send": "S",
}
"""Every operation that a record can hold, by its name: the order says nothing."""
IN_CPP = "issued in C++: no line of Python to show"
BY_HARNESS = "issued by the comparison itself: no line of either side to show"
STALE = "the lines have changed since: none to show"


OPERATIONS = tuple((op, short, op_name(op)) for op, short in SHORT.items())
"""As a legend and a prediction name them."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A line that stood on the stack."""

    site: str
    """``upstream:path:line``"""
    place: str
    function: str
    page: str
    """Empty where the site does not show the file."""


@dataclass(frozen=True, slots=True)
class EventCell:
    """One event of one side."""

    id: str
    """What it is called on its page: its address."""
    op: str
    short: str
    name: str
    bytes: str
    account: str
    """The id of what is told of it."""
    page: str
    """Where the line that issued it stands; empty where there is none."""
    stack: str
    """The id of the way to it; empty where there is none."""
    unplaced: str
    """Why no line can be shown; empty where one can."""


@dataclass(frozen=True, slots=True)
class Column:
    """A moment of the step: the event of each side, one of which may be missing."""

    state: str
    why: str
    op: str
    phase: str
    upstream: EventCell | None
    mini: EventCell | None


@dataclass(frozen=True, slots=True)
class RankView:
    """The step of one rank."""

    rank: int
    phases: tuple[tuple[str, tuple[Column, ...]], ...]
    """The moments of each."""
    stacks: tuple[tuple[str, tuple[Frame, ...]], ...]
    """By id, the way to some events, the innermost line first."""
    accounts: tuple[tuple[str, Text], ...]
    """By id, all that a record knows of some events."""
    lanes: LanesView
    clock: LanesView | None
    """The same by the clock, where that was measured."""
    is_apart: bool
    """No call is common: each phase has those of one side, then of the other."""


def rank_view(model: SiteModel, evidence: Evidence, events: RankEvents) -> RankView:
    """Return the step of one rank; of a stale record without any line."""
    name = f"{evidence.record.comparison}-{events.rank}"
    stacks = tuple(
        (f"w-{name}-{number}", tuple(_frames(model, way)))
        for number, way in enumerate(ways(evidence, events))
    )
    accounts: dict[str, tuple[str, Text]] = {}
    for event in (*events.upstream, *events.mini):
        told = model.words.text(partial(_account, event))
        known = f"a-{name}-{len(accounts)}", told
        accounts.setdefault(_account(event, english), known)
    writer = _Writer(evidence, f"e-{name}", stacks, accounts)
    columns = [writer.column(match, events) for match in events.matches]
    is_apart = not any(column.upstream and column.mini for column in columns)
    if is_apart:  # each phase once, so that what does one job stands together
        columns.sort(key=lambda column: PHASES.index(column.phase))
    phases = tuple(
        (phase, tuple(group))
        for phase, group in groupby(columns, key=lambda column: column.phase)
    )
    led = tuple(stack for stack in stacks if stack[1])
    drawn = model.words, evidence.record, events, SHORT
    all_told = tuple(accounts.values())
    return RankView(
        events.rank,
        phases,
        led,
        all_told,
        lanes_view(*drawn),
        clock_view(*drawn),
        is_apart,
    )


def ways(evidence: Evidence, events: RankEvents) -> list[tuple[ExecutedLine, ...]]:
    """Return each stack as far as the launcher; of a stale record no line of any."""
    if evidence.stale:
        return [() for _ in events.stacks]
    return [tuple(takewhile(_is_of_a_side, stack)) for stack in events.stacks]


def _is_of_a_side(site: ExecutedLine) -> bool:
    return (site.upstream, site.path) != LAUNCHER


def unplaced(evidence: Evidence, event: Event) -> str:
    """Return why no line can be shown that issued an event; empty where one can."""
    if event.site is None:
        return IN_CPP
    if not _is_of_a_side(event.site):
        return BY_HARNESS
    return STALE if evidence.stale else ""


@dataclass(frozen=True, slots=True)
class _Writer:
    evidence: Evidence
    name: str
    stacks: Sequence[tuple[str, tuple[Frame, ...]]]
    accounts: Mapping[str, tuple[str, Text]]
    """By what they say in English."""

    def column(self, match: EventMatch, events: RankEvents) -> Column:
        """Return a moment."""
        up = None if match.upstream is None else events.upstream[match.upstream]
        mini = None if match.mini is None else events.mini[match.mini]
        either = up or mini
        return Column(
            match.state,
            ": ".join(filter(None, (match.apart, match.why))),
            either.op if either else "",
            either.phase if either else "",
            self._cell(up, f"u{match.upstream}") if up else None,
            self._cell(mini, f"m{match.mini}") if mini else None,
        )

    def _cell(self, event: Event, place: str) -> EventCell:
        missing = unplaced(self.evidence, event)
        stack, frames = self.stacks[event.stack]
        return EventCell(
            f"{self.name}-{place}",
            event.op,
            short=SHORT.get(event.op, event.op[:2].upper()),
            name=op_name(event.op),
            bytes=format_bytes(event.payload_bytes),
            account=self.accounts[_account(event, english)][0],
            page=frames[0].page if frames and not missing else "",
            stack=stack if frames else "",
            unplaced=missing,
        )


def _account(event: Event, say: Say) -> str:
    """Return all that is known of an event, in a sentence."""
    told = "; ".join(_told(event, say)) + "."
    return told[0].upper() + told[1:]


def _told(event: Event, say: Say) -> Iterator[str]:
    yield say("{op} of {bytes} {dtype}").format(
        op=op_name(event.op),
        bytes=format_bytes(event.payload_bytes),
        dtype=event.dtype,
    )
    peer = event.peer
    told = say("group {group}" if peer is None else "group {group}, with rank {rank}")
    yield told.format(group=event.group, rank=peer)
    hidden, ready = event.products_hidden, event.gradients_ready
    if event.wait is None:
        yield say("waited for in C++")
    elif hidden is not None:
        one = say("1 matrix product between issue and wait")
        many = say("{count} matrix products between issue and wait")
        yield one if hidden == 1 else many.format(count=hidden)
    if ready is not None:
        one = say("issued when 1 gradient was ready")
        many = say("issued when {count} gradients were ready")
        yield one if ready == 1 else many.format(count=ready)


def _frames(model: SiteModel, way: Sequence[ExecutedLine]) -> Iterator[Frame]:
    for site in way:
        has_page = (site.upstream, site.path) in model.sheets
        page = addresses.source_page(site.upstream, site.path) if has_page else ""
        yield Frame(
            site=f"{site.upstream}:{site.path}:{site.line}",
            place=f"{site.path.rpartition('/')[2]}:{site.line}",
            function=site.function,
            page=page and f"{page}#L{site.line}",
        )
