"""Turns two numbers into a line that says agree, differ, or differ for a reason."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from mini_impls.compare.tables import Known
from readerkit.content.vocabulary import WholeDifference
from readerkit.evidence.record import Event, RankEvents, Verdict


@dataclass(frozen=True, slots=True)
class AllowedDifference:
    """Why a line may differ, and by how much."""

    why: str = ""
    mirror: str = ""
    at_most: float = 0.0
    allowed: WholeDifference | Literal[""] = ""
    note: str = ""


NONE = AllowedDifference()


def excuse_of(
    known: Known, what: WholeDifference, sizes: Mapping[str, int]
) -> AllowedDifference:
    """Return what mirrors say of differences that have no event."""
    for mirror, difference in known:
        if difference.what == what:
            at_most = float(difference.at_most.evaluate(sizes))
            why, note = difference.why, difference.note
            return AllowedDifference(why, mirror, at_most, what, note)
    return NONE


def explained_by_events(
    rank: RankEvents, measure: Callable[[Event], int]
) -> AllowedDifference:
    """Return how far a sum over events is apart by the explained ones alone."""
    apart, whys, mirrors = 0, [], []
    for match in rank.matches:
        ours = rank.mini[match.mini] if match.mini is not None else None
        theirs = rank.upstream[match.upstream] if match.upstream is not None else None
        sizes = [measure(event) if event else 0 for event in (ours, theirs)]
        if match.state == "explained" and sizes[0] != sizes[1]:
            apart += sizes[0] - sizes[1]
            whys.append(match.why)
            mirrors.append(match.mirror)
    return AllowedDifference(
        "; ".join(dict.fromkeys(whys)), ", ".join(dict.fromkeys(mirrors)), abs(apart)
    )


def line(
    what: str,
    rank: int | None,
    mini: float,
    upstream: float,
    tolerance: float,
    reason: str,
    *,
    difference: float | None = None,
    excuse: AllowedDifference = NONE,
) -> Verdict:
    """Return a line; `excuse` is why they may be further apart than `tolerance`."""
    if difference is None:
        difference = abs(mini - upstream)
    numbers = (mini, upstream, difference, tolerance)
    # Written so that a difference that is not a number does not pass.
    if difference <= tolerance:
        return Verdict(what, rank, *numbers, "agree", reason)
    # What may be anything may be no number too.
    covered = difference <= excuse.at_most or excuse.at_most == math.inf
    if not (excuse.why and covered):
        return Verdict(what, rank, *numbers, "differ", reason)
    known = (excuse.mirror, excuse.allowed, excuse.note)
    return Verdict(what, rank, *numbers, "explained", excuse.why, *known)
