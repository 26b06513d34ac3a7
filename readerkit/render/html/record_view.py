"""A record on a side-by-side page: its step event by event, and what it proves."""

from __future__ import annotations

from readerkit.evidence.record import PARAMETER_LINES
from readerkit.evidence.relevance import Evidence
from readerkit.render.html import addresses, record_tables
from readerkit.render.html.call_sites import issuers
from readerkit.render.html.site_model import Context, SiteModel
from readerkit.render.html.timeline import OPERATIONS, rank_view


def record_view(model: SiteModel, evidence: Evidence, address: str) -> Context:
    """Return what the page at ``address`` shows of a record."""
    record = evidence.record
    return {
        "evidence": evidence,
        "tally": record_tables.tally(record, model.words),
        "stale": [model.words.text(each.said) for each in evidence.stale],
        "ranks": [rank_view(model, evidence, rank) for rank in record.events],
        "operations": OPERATIONS,
        "issuers_upstream": issuers(model, evidence, "upstream", address),
        "issuers_mini": issuers(model, evidence, "mini", address),
        "losses": record_tables.losses(record),
        "memory": record_tables.memory(record),
        "chart": record_tables.bars(record),
        "totals": list(record_tables.totals(record)),
        "verdicts": list(map(record_tables.verdict_row, record.verdicts)),
        "differences": [
            record_tables.verdict_row(each)
            for each in record.verdicts
            if each.what in PARAMETER_LINES
        ],
        "shims": [("", (each.name, each.reason)) for each in record.shims],
        "limits": list(record_tables.limits(record)),
        "facts": list(record_tables.facts(record)),
        "raw": addresses.record_file(record.comparison),
    }
