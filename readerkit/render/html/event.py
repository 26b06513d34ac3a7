"""The time line of one rank's step: its events on both sides, and the way to each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile

from markupsafe import Markup

from readerkit.book import MINIS
from readerkit.evidence import Evidence
from readerkit.lit import op_name
from readerkit.records import Event, Match, RankEvents, Site
from readerkit.render.html import addresses
from readerkit.render.html.escape import shown
from readerkit.render.html.quantity import size
from readerkit.render.html.shelf import Shelf
from readerkit.render.html.words import Text, label

LAUNCHER = (MINIS, "mini_impls/launch.py")
"""What calls both sides: it is part of neither."""
SHORT: Mapping[str, str] = {
    "all_gather": "AG",
    "all_reduce": "AR",
    "all_to_all": "AA",
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


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation as a legend and a prediction name it."""

    op: str
    short: str
    name: str


OPERATIONS = tuple(Operation(op, short, op_name(op)) for op, short in SHORT.items())


@dataclass(frozen=True, slots=True)
class Frame:
    """A line that stood on the stack."""

    site: str
    """``upstream:path:line``"""
    place: Markup
    function: Markup
    page: str
    """Empty where the site does not show the file."""


@dataclass(frozen=True, slots=True)
class Stack:
    """The way to some events, the innermost line first."""

    id: str
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class EventCell:
    """One event of one side."""

    operation: Operation
    bytes: str
    about: Markup
    """All that the record knows of it, in a sentence."""
    page: str
    """Where the line that issued it stands; empty where there is none."""
    stack: str
    """The id of the way to it; empty where there is none."""
    unplaced: Text | None
    """Why no line issued it."""


@dataclass(frozen=True, slots=True)
class Column:
    """A moment of the step: the event of each side, one of which may be missing."""

    state: str
    why: Markup
    op: str
    upstream: EventCell | None
    mini: EventCell | None


@dataclass(frozen=True, slots=True)
class PhaseView:
    """The moments of one phase."""

    name: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class RankView:
    """The step of one rank."""

    rank: int
    phases: tuple[PhaseView, ...]
    stacks: tuple[Stack, ...]


def rank_view(shelf: Shelf, evidence: Evidence, events: RankEvents) -> RankView:
    """Return the step of one rank; of a stale record without any line."""
    prefix = f"w-{evidence.record.comparison}-{events.rank}"
    stacks = [
        Stack(f"{prefix}-{number}", tuple(_frames(shelf, way)))
        for number, way in enumerate(ways(evidence, events))
    ]
    columns = [_column(match, events, stacks, evidence) for match in events.matches]
    phases = tuple(
        PhaseView(phase, tuple(column for _, column in group))
        for phase, group in groupby(columns, key=lambda pair: pair[0])
    )
    return RankView(
        events.rank, phases, tuple(stack for stack in stacks if stack.frames)
    )


def ways(evidence: Evidence, events: RankEvents) -> list[tuple[Site, ...]]:
    """Return each stack as far as the launcher; of a stale record no line of any."""
    if evidence.stale:
        return [() for _ in events.stacks]
    return [tuple(takewhile(_is_of_a_side, stack)) for stack in events.stacks]


def _is_of_a_side(site: Site) -> bool:
    return (site.upstream, site.path) != LAUNCHER


def unplaced(evidence: Evidence, event: Event) -> Text | None:
    """Return why no line can be shown that issued an event; None where one can."""
    if event.site is None:
        return label(IN_CPP)
    if not _is_of_a_side(event.site):
        return label(BY_HARNESS)
    return label(STALE) if evidence.stale else None


def _column(
    match: Match, events: RankEvents, stacks: Sequence[Stack], evidence: Evidence
) -> tuple[str, Column]:
    up = None if match.upstream is None else events.upstream[match.upstream]
    mini = None if match.mini is None else events.mini[match.mini]
    either = up or mini
    column = Column(
        match.state,
        shown(": ".join(filter(None, (match.apart, match.why)))),
        either.op if either else "",
        _cell(up, stacks[up.stack], evidence) if up else None,
        _cell(mini, stacks[mini.stack], evidence) if mini else None,
    )
    return either.phase if either else "", column


def _cell(event: Event, stack: Stack, evidence: Evidence) -> EventCell:
    missing = unplaced(evidence, event)
    return EventCell(
        operation=Operation(
            event.op, SHORT.get(event.op, event.op[:2].upper()), op_name(event.op)
        ),
        bytes=size(event.payload_bytes),
        about=shown(". ".join(_about(event)) + "."),
        page=stack.frames[0].page if stack.frames and not missing else "",
        stack=stack.id if stack.frames else "",
        unplaced=missing,
    )


def _about(event: Event) -> Iterator[str]:
    yield f"{op_name(event.op)} of {size(event.payload_bytes)} {event.dtype}"
    yield f"group {event.group}" + (
        f", peer {event.peer}" if event.peer is not None else ""
    )
    if event.wait is None:
        yield "waited for in C++"
    elif event.products_hidden is not None:
        yield f"{event.products_hidden} matrix products between issue and wait"
    if event.gradients_ready is not None:
        yield f"issued when {event.gradients_ready} gradients were ready"


def _frames(shelf: Shelf, way: Sequence[Site]) -> Iterator[Frame]:
    for site in way:
        has_page = (site.upstream, site.path) in shelf.sheets
        page = addresses.source_page(site.upstream, site.path) if has_page else ""
        yield Frame(
            site=site_id(site),
            place=shown(f"{site.path.rpartition('/')[2]}:{site.line}"),
            function=shown(site.function),
            page=page and f"{page}#L{site.line}",
        )


def site_id(site: Site) -> str:
    """Return what lines of excerpts are called."""
    return f"{site.upstream}:{site.path}:{site.line}"
