"""Records as a site has them: which are stale, whose lines ran, where they belong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from readerkit.anchors import Span
from readerkit.annotations import Mirror
from readerkit.lit import LitLines, lit
from readerkit.records import Record, lines_from_text


@dataclass(frozen=True, slots=True)
class Evidence:
    """A record, and why it no longer speaks of the code at hand."""

    record: Record
    stale: tuple[str, ...] = ()
    is_own: bool = False
    """Made on this machine, in place of the one that ships."""


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
        for row in each.record.lit:
            of_file = files.setdefault((row.upstream, row.path), {})
            of_file[each.record.comparison] = frozenset(lines_from_text(row.step))
    return files


def seen_there(
    upstream: str, span: Span, evidence: Mapping[str, Evidence]
) -> list[LitLines]:
    """Return what each record of the code at hand shows of some lines."""
    fresh = (each.record for each in evidence.values() if not each.stale)
    return lit(fresh, upstream, span)


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
