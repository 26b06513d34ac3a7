"""A record on a side-by-side page: its step event by event, and what it proves."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from readerkit.evidence.record import PARAMETER_LINES
from readerkit.evidence.relevance import Evidence
from readerkit.render.html import addresses, record_tables
from readerkit.render.html.call_sites import Issuers, issuers
from readerkit.render.html.escape import shown
from readerkit.render.html.event import OPERATIONS, Operation, RankView, rank_view
from readerkit.render.html.record_tables import Row
from readerkit.render.html.site_model import SiteModel
from readerkit.render.html.words import Text


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
    tally: Text
    is_own: bool
    stale: tuple[Text, ...]
    ranks: tuple[RankView, ...]
    issuers_upstream: Issuers
    issuers_mini: Issuers
    losses: Markup
    memory: Markup
    chart: Markup
    totals: tuple[Row, ...]
    verdicts: tuple[Row, ...]
    differences: tuple[Row, ...]
    shims: tuple[Row, ...]
    limits: tuple[tuple[str, Markup], ...]
    facts: tuple[tuple[str, Markup], ...]
    raw: str
    operations: tuple[Operation, ...] = OPERATIONS
    """Of the legend, and the choices of a prediction: those of all records."""


def strip_view(model: SiteModel, evidence: Evidence, address: str) -> StripView:
    """Return what the page at ``address`` shows of a record."""
    record = evidence.record
    return StripView(
        comparison=record.comparison,
        made=shown(record.made),
        world_size=record.world_size,
        backend=shown(record.backend),
        command=shown(record.command),
        upstream=shown(record.upstream),
        agrees=record.agrees,
        tally=record_tables.tally(record, model.words),
        is_own=evidence.is_own,
        stale=tuple(model.words.text(each.said) for each in evidence.stale),
        ranks=tuple(rank_view(model, evidence, rank) for rank in record.events),
        issuers_upstream=issuers(model, evidence, "upstream", address),
        issuers_mini=issuers(model, evidence, "mini", address),
        losses=record_tables.losses(record),
        memory=record_tables.memory(record),
        chart=record_tables.bars(record),
        totals=tuple(record_tables.totals(record)),
        verdicts=tuple(map(record_tables.verdict_row, record.verdicts)),
        differences=tuple(
            record_tables.verdict_row(each)
            for each in record.verdicts
            if each.what in PARAMETER_LINES
        ),
        shims=tuple(Row((shown(s.name), shown(s.reason))) for s in record.shims),
        limits=tuple(record_tables.limits(record)),
        facts=tuple(record_tables.facts(record)),
        raw=addresses.record_file(record.comparison),
    )
