"""The events of one step of a record: both sides in one time line, and what follows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from readerkit.anchors import Span
from readerkit.evidence import Evidence
from readerkit.records import Event, RankEvents, Record, Site, Verdict
from readerkit.render.html import addresses
from readerkit.render.html.charts import Cell, gantt, loss_chart, memory_chart
from readerkit.render.html.escape import shown
from readerkit.render.html.excerpt import Excerpt, excerpt
from readerkit.render.html.quantity import number, size
from readerkit.render.html.shelf import Shelf

AROUND = 2
"""Lines shown on each side of a line that issues a collective."""
SHORT = {
    "all_reduce": "AR",
    "all_gather": "AG",
    "reduce_scatter": "RS",
    "broadcast": "BC",
    "reduce": "RD",
    "send": "S",
    "recv": "R",
    "all_to_all": "AA",
    "barrier": "BR",
}


@dataclass(frozen=True, slots=True)
class EventCell:
    """One event of one side."""

    op: str
    short: str
    name: str
    bytes: str
    about: Markup
    """All that the record knows of it, in a sentence."""
    site: str
    """``upstream:path:line``; empty for C++."""
    place: Markup
    page: str


@dataclass(frozen=True, slots=True)
class Column:
    """A moment of the step: the event of each side, one of which may be missing."""

    number: int
    state: str
    why: Markup
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
    count: int


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table, ready to show."""

    cells: tuple[Markup, ...]
    state: str = ""


@dataclass(frozen=True, slots=True)
class StripView:
    """Everything that a page shows of one record."""

    comparison: str
    made: Markup
    world_size: int
    backend: Markup
    command: Markup
    upstream: Markup
    agrees: bool
    is_own: bool
    stale: tuple[Markup, ...]
    ranks: tuple[RankView, ...]
    ops: tuple[str, ...]
    """The operations of the step, as choices of a prediction."""
    sites_upstream: tuple[Excerpt, ...]
    sites_mini: tuple[Excerpt, ...]
    losses: Markup
    memory: Markup
    chart: Markup
    totals: tuple[Row, ...]
    verdicts: tuple[Row, ...]
    differences: tuple[Row, ...]
    shims: tuple[Row, ...]
    facts: tuple[tuple[str, Markup], ...]
    raw: str


def strip_view(shelf: Shelf, evidence: Evidence, address: str) -> StripView:
    """Return what the page at ``address`` shows of a record."""
    record = evidence.record
    name = record.comparison
    stale = bool(evidence.stale)
    sites = [] if stale else list(_sites(record))
    return StripView(
        comparison=name,
        made=shown(record.made),
        world_size=record.world_size,
        backend=shown(record.backend),
        command=shown(record.command),
        upstream=shown(record.upstream),
        agrees=record.agrees,
        is_own=evidence.is_own,
        stale=tuple(shown(reason) for reason in evidence.stale),
        ranks=tuple(_rank(shelf, rank) for rank in record.events),
        ops=tuple(_ops(record)),
        sites_upstream=tuple(_excerpts(shelf, sites, address, minis=False)),
        sites_mini=tuple(_excerpts(shelf, sites, address, minis=True)),
        losses=_losses(record),
        memory=_memory(record),
        chart=_bars(record),
        totals=tuple(_totals(record)),
        verdicts=tuple(map(_verdict, record.verdicts)),
        differences=tuple(
            _verdict(each) for each in record.verdicts if "parameters" in each.what
        ),
        shims=tuple(Row((shown(s.name), shown(s.reason))) for s in record.shims),
        facts=tuple(_facts(record)),
        raw=addresses.record_file(name),
    )


def _rank(shelf: Shelf, events: RankEvents) -> RankView:
    columns = []
    for index, match in enumerate(events.matches, start=1):
        up = events.upstream[match.upstream] if match.upstream is not None else None
        mini = events.mini[match.mini] if match.mini is not None else None
        either = up or mini
        column = Column(
            index,
            match.state,
            shown(": ".join(filter(None, (match.apart, match.why)))),
            _cell(shelf, up) if up else None,
            _cell(shelf, mini) if mini else None,
        )
        columns.append((either.phase if either else "", column))
    phases = tuple(
        PhaseView(phase, tuple(column for _, column in group))
        for phase, group in groupby(columns, key=lambda pair: pair[0])
    )
    return RankView(events.rank, phases, len(columns))


def _cell(shelf: Shelf, event: Event) -> EventCell:
    site = event.site
    has_page = site is not None and (site.upstream, site.path) in shelf.sheets
    page = ""
    if site and has_page:
        page = f"{addresses.source_page(site.upstream, site.path)}#L{site.line}"
    return EventCell(
        op=event.op,
        short=SHORT.get(event.op, event.op[:2].upper()),
        name=event.op.replace("_", "-"),
        bytes=size(event.payload_bytes),
        about=shown(". ".join(_about(event)) + "."),
        site=f"{site.upstream}:{site.path}:{site.line}" if site else "",
        place=shown(f"{site.path.rpartition('/')[2]}:{site.line}" if site else "C++"),
        page=page,
    )


def _about(event: Event) -> Iterator[str]:
    yield f"{event.op.replace('_', '-')} of {size(event.payload_bytes)} {event.dtype}"
    yield f"group {event.group}" + (
        f", peer {event.peer}" if event.peer is not None else ""
    )
    if event.wait is None:
        yield "waited for in C++"
    elif event.products_hidden is not None:
        yield f"{event.products_hidden} matrix products between issue and wait"
    if event.gradients_ready is not None:
        yield f"issued when {event.gradients_ready} gradients were ready"
    yield f"issued in {event.site.function}" if event.site else "issued in C++"


def _ops(record: Record) -> Iterator[str]:
    seen = {
        event.op for rank in record.events for event in (*rank.mini, *rank.upstream)
    }
    usual = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "send")
    yield from dict.fromkeys([*sorted(seen), *usual])


def _sites(record: Record) -> Iterator[Site]:
    found = (
        event.site
        for rank in record.events
        for event in (*rank.upstream, *rank.mini)
        if event.site
    )
    yield from {(s.upstream, s.path, s.line): s for s in found}.values()


def _excerpts(
    shelf: Shelf, sites: Sequence[Site], address: str, *, minis: bool
) -> Iterator[Excerpt]:
    """Yield the lines around each place that issues something, near ones together."""
    chosen = sorted(
        (site for site in sites if (site.upstream == "minis") is minis),
        key=lambda site: (site.upstream, site.path, site.line),
    )
    spans: list[tuple[str, Span]] = []
    for site in chosen:
        if (site.upstream, site.path) not in shelf.sheets:
            continue
        count = len(shelf.sheets[site.upstream, site.path].drawn.lines)
        first, last = max(1, site.line - AROUND), min(count, site.line + AROUND)
        if spans:
            upstream, before = spans[-1]
            if (upstream, before.path) == (site.upstream, site.path) and (
                first <= before.last + 3
            ):
                spans[-1] = (upstream, Span(site.path, before.first, last))
                continue
        if first <= last:
            spans.append((site.upstream, Span(site.path, first, last)))
    for upstream, span in spans:
        yield excerpt(shelf, upstream, span, address)


def _losses(record: Record) -> Markup:
    series: dict[str, Sequence[float]] = {}
    for side, ranks in record.losses.items():
        told = [line for line in ranks if line]
        if told:
            series[side] = told[0]
    return loss_chart(f"loss-{record.comparison}", series) if series else Markup("")


def _memory(record: Record) -> Markup:
    rows = [(h.category, h.side, h.bytes) for h in record.held if h.rank == 0]
    rows.sort(key=lambda row: row[0])
    return memory_chart(f"memory-{record.comparison}", rows) if rows else Markup("")


def _bars(record: Record) -> Markup:
    pipeline = record.pipeline
    bars = [bar for bar in pipeline.bars if bar.side == "upstream"] if pipeline else []
    if not pipeline or not bars:
        return Markup("")
    stages = pipeline.stages // pipeline.chunks if pipeline.chunks else 1
    cells = [
        Cell(
            bar.rank,
            bar.start_s,
            bar.end_s,
            f"{bar.kind}{bar.microbatch}",
            bar.kind,
            bar.stage // max(stages, 1),
        )
        for bar in sorted(bars, key=lambda bar: bar.start_s)
    ]
    rows = [f"rank {rank}" for rank in range(record.world_size)]
    title = f"{pipeline.schedule}: what upstream's ranks did in the traced step"
    return gantt(f"bars-{record.comparison}", title, rows, cells)


def _totals(record: Record) -> Iterator[Row]:
    for total in record.totals:
        if total.rank == 0:
            formula = "" if total.formula_bytes is None else f"{total.formula_bytes:,}"
            same = total.formula_bytes in (None, total.payload_bytes)
            yield Row(
                (
                    shown(total.op.replace("_", "-")),
                    shown(total.side),
                    shown(f"{total.calls}"),
                    shown(f"{total.payload_bytes:,}"),
                    shown(formula),
                    shown(total.formula),
                ),
                "agree" if same else "differ",
            )


def _verdict(verdict: Verdict) -> Row:
    rank = "" if verdict.rank is None else f", rank {verdict.rank}"
    return Row(
        (
            shown(verdict.what + rank),
            shown(number(verdict.mini)),
            shown(number(verdict.upstream)),
            shown(number(verdict.difference)),
            shown(number(verdict.tolerance)),
            shown(verdict.state),
            shown(verdict.reason),
        ),
        verdict.state,
    )


def _facts(record: Record) -> Iterator[tuple[str, Markup]]:
    yield "steps", shown(f"{record.steps}, the first {record.warm_up_steps} warm up")
    yield "traced step", shown(str(record.traced_step))
    for name, value in {**record.versions, **record.environment}.items():
        yield name, shown(value)
    work = ", ".join(f"{key} {value}" for key, value in record.work.items())
    yield "work", shown(work)
