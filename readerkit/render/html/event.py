"""The time line of one rank's step: its events on both sides, and the way to each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, takewhile

from markupsafe import Markup

from readerkit.content.book import MINIS
from readerkit.evidence.executed_lines import op_name
from readerkit.evidence.record import Event, EventMatch, ExecutedLine, RankEvents
from readerkit.evidence.relevance import Evidence
from readerkit.model.language import Say, english
from readerkit.render.html import addresses
from readerkit.render.html.escape import shown
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
class CallStack:
    """The way to some events, the innermost line first."""

    id: str
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Account:
    """All that a record knows of some events, in a sentence."""

    id: str
    text: Text


@dataclass(frozen=True, slots=True)
class EventCell:
    """One event of one side."""

    operation: Operation
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
    stacks: tuple[CallStack, ...]
    accounts: tuple[Account, ...]


def rank_view(model: SiteModel, evidence: Evidence, events: RankEvents) -> RankView:
    """Return the step of one rank; of a stale record without any line."""
    name = f"{evidence.record.comparison}-{events.rank}"
    stacks = tuple(
        CallStack(f"w-{name}-{number}", tuple(_frames(model, way)))
        for number, way in enumerate(ways(evidence, events))
    )
    texts: dict[str, Account] = {}
    for event in (*events.upstream, *events.mini):
        text = model.words.text(partial(_account, event))
        account = Account(f"a-{name}-{len(texts)}", text)
        texts.setdefault(_account(event, english), account)
    writer = _Writer(evidence, stacks, texts)
    columns = [writer.column(match, events) for match in events.matches]
    phases = tuple(
        PhaseView(phase, tuple(column for _, column in group))
        for phase, group in groupby(columns, key=lambda pair: pair[0])
    )
    led = tuple(stack for stack in stacks if stack.frames)
    return RankView(events.rank, phases, led, tuple(texts.values()))


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
    stacks: Sequence[CallStack]
    accounts: Mapping[str, Account]
    """By what they say in English."""

    def column(self, match: EventMatch, events: RankEvents) -> tuple[str, Column]:
        """Return the phase of a moment, and the moment."""
        up = None if match.upstream is None else events.upstream[match.upstream]
        mini = None if match.mini is None else events.mini[match.mini]
        either = up or mini
        column = Column(
            match.state,
            shown(": ".join(filter(None, (match.apart, match.why)))),
            either.op if either else "",
            self._cell(up) if up else None,
            self._cell(mini) if mini else None,
        )
        return either.phase if either else "", column

    def _cell(self, event: Event) -> EventCell:
        missing = unplaced(self.evidence, event)
        stack = self.stacks[event.stack]
        short = SHORT.get(event.op, event.op[:2].upper())
        return EventCell(
            operation=Operation(event.op, short, op_name(event.op)),
            bytes=format_bytes(event.payload_bytes),
            account=self.accounts[_account(event, english)].id,
            page=stack.frames[0].page if stack.frames and not missing else "",
            stack=stack.id if stack.frames else "",
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
        between = say("{count} matrix products between issue and wait")
        yield between.format(count=hidden)
    if ready is not None:
        yield say("issued when {count} gradients were ready").format(count=ready)


def _frames(model: SiteModel, way: Sequence[ExecutedLine]) -> Iterator[Frame]:
    for site in way:
        has_page = (site.upstream, site.path) in model.sheets
        page = addresses.source_page(site.upstream, site.path) if has_page else ""
        yield Frame(
            site=site_id(site),
            place=shown(f"{site.path.rpartition('/')[2]}:{site.line}"),
            function=shown(site.function),
            page=page and f"{page}#L{site.line}",
        )


def site_id(site: ExecutedLine) -> str:
    """Return what lines of excerpts are called."""
    return f"{site.upstream}:{site.path}:{site.line}"
