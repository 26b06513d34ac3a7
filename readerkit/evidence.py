"""What records say about lines: which ran, and what they sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from readerkit.anchors import Span
from readerkit.annotations import Mirror
from readerkit.lit import sent_through
from readerkit.records import Record, lines_from_text


@dataclass(frozen=True, slots=True)
class Evidence:
    """A record, and why it no longer speaks of the code at hand."""

    record: Record
    stale: tuple[str, ...] = ()
    is_own: bool = False
    """Made on this machine, in place of the one that ships."""


@dataclass(frozen=True, slots=True, order=True)
class Calls:
    """What one rank issued in one step, through some lines."""

    op: str
    count: int
    payload_bytes: int


@dataclass(frozen=True, slots=True)
class SeenThere:
    """What one record saw in the lines of a span."""

    comparison: str
    lines: int
    """How many of the lines ran in the step; 0: none in this configuration."""
    calls: tuple[Calls, ...]


Files = Mapping[tuple[str, str], Mapping[str, frozenset[int]]]
"""Upstream and path to comparison to the lines that ran in its traced step."""


def ran_lines(
    evidence: Iterable[Evidence],
) -> dict[tuple[str, str], dict[str, frozenset[int]]]:
    """Return the lines of each file that ran in the step of each record.

    A file that a record knows, but of which no line ran in the step, has an empty set.
    A stale record says nothing: its lines are those of other files.
    """
    files: dict[tuple[str, str], dict[str, frozenset[int]]] = {}
    for each in evidence:
        if each.stale:
            continue
        for lit in each.record.lit:
            lines = frozenset(lines_from_text(lit.step))
            files.setdefault((lit.upstream, lit.path), {})[each.record.comparison] = (
                lines
            )
    return files


def seen_there(
    upstream: str, span: Span, files: Files, evidence: Mapping[str, Evidence]
) -> list[SeenThere]:
    """Return what each record that knows the file of a span saw in its lines."""
    wanted = set(range(span.first, span.last + 1))
    found = []
    for comparison, lines in files.get((upstream, span.path), {}).items():
        calls = _calls(evidence[comparison].record, upstream, span)
        found.append(SeenThere(comparison, len(lines & wanted), calls))
    return found


def _calls(record: Record, upstream: str, span: Span) -> tuple[Calls, ...]:
    """Return what the first rank issued while one of these lines was on the stack."""
    if not record.events:
        return ()
    sent = sent_through(record.events[0], upstream, span)
    return tuple(Calls(each.op, each.calls, each.payload_bytes) for each in sent)


def comparisons_of(mirror: Mirror, evidence: Mapping[str, Evidence]) -> list[str]:
    """Return the comparisons whose events belong to a mirror, or whose mini it has."""
    named = {
        event.comparison for section in mirror.sections for event in section.events
    }
    minis = {
        anchor.file.rpartition("/")[2].removesuffix(".py")
        for section in mirror.sections
        for anchor in section.mini
    }
    return [
        name
        for name, each in evidence.items()
        if name in named or each.record.mini in named | minis
    ]
