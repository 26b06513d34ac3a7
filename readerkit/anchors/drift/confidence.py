"""How likely a place is exactly the right one."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp

from readerkit.anchors.drift.span_place import Candidate
from readerkit.anchors.drift.weights import ELSEWHERE, GONE, PLACE

ALONE = 0.96
"""The least chance of a place that has all of a span, where nothing like it was before,
and no other has. Of such places 99% and more were right, in the cases of the fit."""
_HEAVY = 4 / (3 + 4)
_OF_BOTH = ("other target", "kept", "share", "taken", "elsewhere", "light", "around")


def is_rival(c: Candidate, other: Candidate) -> bool:
    """Tell whether another place is as good as one, but for its path."""
    return (
        (other.path, other.first, other.last) != (c.path, c.first, c.last)
        and other.kept >= c.kept - 0.02
        and other.frame_likeness >= c.frame_likeness - 0.05
        and other.path_likeness >= c.path_likeness - 0.1
        and other.taken <= c.taken + 0.1
        and other.home >= c.home - 0.25
    )


def features(c: Candidate, others: list[Candidate]) -> dict[str, float]:
    """Return what a place is judged by."""
    start, end = c.start, c.end
    rival = any(is_rival(c, other) for other in others)
    most = max(other.home for other in others)
    home = c.home / most if most else 0.0
    is_alone = c.elsewhere and c.share > 0.999 and not c.taken and not rival
    return {
        "share": c.share,
        "kept": c.kept,
        "all kept": float(c.share > 0.999),
        "start exact, tight": float(start.exact and c.tight[0]),
        "start exact, loose": float(start.exact and not c.tight[0]),
        "start like, tight": start.likeness * (not start.exact and c.tight[0]),
        "start like, loose": start.likeness * (not start.exact and not c.tight[0]),
        "start guess, tight": float(not start.likeness and c.tight[0]),
        "start slack": min(start.slack, 4) / 4,
        "start margin": max(-0.5, start.margin) * (start.likeness > 0),
        "end margin": max(-0.5, end.margin) * (end.likeness > 0),
        "end exact, tight": float(end.exact and c.tight[1]),
        "end exact, loose": float(end.exact and not c.tight[1]),
        "end like, tight": end.likeness * (not end.exact and c.tight[1]),
        "end like, loose": end.likeness * (not end.exact and not c.tight[1]),
        "end guess, tight": float(not end.likeness and c.tight[1]),
        "end slack": min(end.slack, 4) / 4,
        "frame": c.frame_likeness,
        "named": float(c.by_name),
        "whole": float(c.whole),
        "around": c.around,
        "length": float(c.same_length),
        "taken": c.taken,
        "rival": float(rival),
        "light": 1 / (1 + c.weight),
        "light, around": c.around / (1 + c.weight),
        "path": c.path_likeness,
        "file gone": float(c.file_gone),
        "home": home,
        "home, file gone": home * c.file_gone,
        "alone": is_alone * c.weight / (3 + c.weight),
        "alone, whole": float(is_alone and c.whole and c.by_name),
        "ends, frame": c.frame_likeness * (start.likeness + end.likeness),
        "other target": float(c.other_target),
        "other target, one line": float(c.other_target and c.first == c.last),
        "stated": c.stated,
        "stated, kept": c.stated * c.kept,
        "grown": float(c.grown > 0),
        "grown far": min(c.grown, 12) / 12 if c.grown > 0 else 0.0,
        "shrunk": float(c.grown < 0),
        "elsewhere": float(c.elsewhere),
    }


def chance(found: Mapping[str, float]) -> float:
    """Return how likely a place with these features is the right one."""
    known = logistic(found, ELSEWHERE if found["elsewhere"] else PLACE)
    # All of it, new there, and nowhere else: how often that is right was counted.
    return max(known, ALONE) if found["alone"] >= _HEAVY else known


def gone_features(
    chance: float, found: Mapping[str, float] | None, left: Mapping[str, float]
) -> dict[str, float]:
    """Return what tells whether a span is gone, by the likeliest of its places.

    ``left`` says what is left around it.
    """
    if found is None:
        return {"no place": 1.0, **{f"{k}, no place": v for k, v in left.items()}}
    edges = ("exact, tight", "like, tight")
    return {
        "chance": chance,
        "ends": sum(
            found[f"{end} {edge}"] for end in ("start", "end") for edge in edges
        ),
        **{name: found[name] for name in _OF_BOTH},
        **left,
    }


def gone_chance(found: Mapping[str, float]) -> float:
    """Return how likely it is that nothing is left of a span."""
    return logistic(found, GONE)


def logistic(found: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the chance that weights give to some features."""
    total = sum(value * weights.get(name, 0.0) for name, value in found.items())
    return 1 / (1 + exp(-max(-30.0, min(30.0, total + weights["bias"]))))
