"""Which records concern which mirror and which note, and whose lines ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from readerkit.content.annotations import Annotation
from readerkit.content.mirrors import Mirror
from readerkit.evidence.executed_lines import MINIS, LitLines, lit
from readerkit.evidence.record import Record
from readerkit.model.anchor import Span
from readerkit.model.freshness import Change


@dataclass(frozen=True, slots=True)
class Evidence:
    """A record, and why it no longer speaks of the code at hand."""

    record: Record
    stale: tuple[Change, ...] = ()
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
            of_file[each.record.comparison] = row.in_step(each.record.traced_step)
    return files


def seen_there(
    upstream: str, span: Span, evidence: Mapping[str, Evidence]
) -> list[LitLines]:
    """Return the evidence of each fresh record for some lines."""
    fresh = (each.record for each in evidence.values() if not each.stale)
    return lit(fresh, upstream, span)


@dataclass(frozen=True, slots=True)
class Related:
    """A record that bears on a mirror."""

    comparison: str
    is_own: bool
    """The mirror names its events, or it is of the mini that the mirror is about.

    Else the record has watched another mini that the mirror shows.
    """


def related(mirror: Mirror, evidence: Mapping[str, Evidence]) -> list[Related]:
    """Return the records that bear on a mirror, its own before the others."""
    named = {name for section in mirror.sections for name, _ in section.named_events()}
    main = main_mini(mirror)
    shown = {anchor.file for section in mirror.sections for anchor in section.mini}
    found = []
    for name, each in evidence.items():
        compared = f"mini_impls/{each.record.mini}.py"
        watched = {*each.record.blobs.get(MINIS, ()), compared}
        is_own = name in named or compared == main
        if is_own or shown & watched:
            found.append(Related(name, is_own))
    return sorted(found, key=lambda one: not one.is_own)


def main_mini(mirror: Mirror) -> str:
    """Return the file that a mirror shows most of; empty where it shows no mini."""
    files = Counter(
        anchor.file for section in mirror.sections for anchor in section.mini
    )
    return files.most_common(1)[0][0] if files else ""


def homes(
    mirrors: Iterable[Mirror], evidence: Mapping[str, Evidence]
) -> dict[str, Mirror]:
    """Return for each comparison the mirror that shows its record in full."""
    found: dict[str, Mirror] = {}
    guests: dict[str, Mirror] = {}
    for mirror in mirrors:
        for one in related(mirror, evidence):
            (found if one.is_own else guests).setdefault(one.comparison, mirror)
    return {**guests, **found}


def of_the_idea(mirror: Mirror, evidence: Mapping[str, Evidence]) -> set[str]:
    """Return the comparisons that are a mirror's own."""
    return {one.comparison for one in related(mirror, evidence) if one.is_own}


def expected_to_run(
    annotation: Annotation,
    file: Mapping[str, frozenset[int]],
    mirrors: Iterable[Mirror],
    evidence: Mapping[str, Evidence],
) -> set[str]:
    """Return the comparisons of which one would think that they ran a note's lines.

    Those of the mirrors that name the note; without such a mirror, those that ran other
    lines of its ``file``, as ``ran_lines`` has it.
    """
    own = [
        of_the_idea(mirror, evidence)
        for mirror in mirrors
        if any(annotation.id in section.upstream for section in mirror.sections)
    ]
    return set().union(*own) or {name for name, lines in file.items() if lines}


def worth_saying(found: Sequence[LitLines], expected: Set[str]) -> list[LitLines]:
    """Return, of all that records show of some lines, what is to be said.

    Those that ran there in the traced step, or else at another time; where none did,
    the expected.
    """
    ran = [each for each in found if each.ran]
    elsewhere = [each for each in found if each.ran_elsewhere]
    return ran or elsewhere or [each for each in found if each.comparison in expected]
