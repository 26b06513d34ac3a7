"""The lines that issued the events of one side, in the order of the step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from readerkit.anchors import Span
from readerkit.content.vocabulary import SideName
from readerkit.evidence.executed_lines import op_name
from readerkit.evidence.record import ExecutedLine
from readerkit.evidence.relevance import Evidence
from readerkit.render.html.excerpt import excerpt
from readerkit.render.html.site_model import Context, SiteModel
from readerkit.render.html.timeline import unplaced

AROUND = 2
"""Lines shown on each side of a line that issues something."""
APART = 3
"""Lines between two such pieces, up to which they are shown as one."""


def issuers(
    model: SiteModel, evidence: Evidence, side: SideName, address: str
) -> Context:
    """Return the lines that issued the events of a side, near ones together."""
    events = [
        event
        for rank in evidence.record.events
        for event in (rank.mini if side == "mini" else rank.upstream)
    ]
    reasons: dict[str, dict[str, None]] = {}
    sites: dict[tuple[str, str, int], ExecutedLine] = {}
    for event in events:
        why = unplaced(evidence, event)
        if why:
            reasons.setdefault(why, {})[op_name(event.op)] = None
        elif event.site and (event.site.upstream, event.site.path) in model.sheets:
            site = event.site
            sites.setdefault((site.upstream, site.path, site.line), site)
    pieces = _pieces(model, list(sites.values()))
    return {
        "excerpts": [excerpt(model, *piece, address) for piece in pieces],
        "unplaced": [(", ".join(names), why) for why, names in reasons.items()],
    }


def _pieces(
    model: SiteModel, sites: Sequence[ExecutedLine]
) -> Iterator[tuple[str, Span]]:
    """Yield the lines around each site, pieces in the order of their first event."""
    for group in sorted(_near(sites), key=lambda near: min(map(sites.index, near))):
        upstream, path = group[0].upstream, group[0].path
        count = len(model.sheets[upstream, path].drawn.lines)
        first = max(1, group[0].line - AROUND)
        last = min(count, group[-1].line + AROUND)
        if first <= last:
            yield upstream, Span(path, first, last)


def _near(sites: Iterable[ExecutedLine]) -> list[list[ExecutedLine]]:
    """Return sites in groups, each of lines of one file that stand close together."""
    groups: list[list[ExecutedLine]] = []
    for site in sorted(sites, key=lambda site: (site.upstream, site.path, site.line)):
        before = groups[-1][-1] if groups else None
        if (
            before
            and (before.upstream, before.path) == (site.upstream, site.path)
            and site.line - before.line <= 2 * AROUND + APART
        ):
            groups[-1].append(site)
        else:
            groups.append([site])
    return groups
