"""How often a span is carried to exactly its place: drift beside git, difflib, quotes.

    .venv/bin/python benchmarks/drift/run.py [--cache DIR] [CASE]...

Releases are fetched once into the cache, outside of the repository.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from cases import HELD_OUT, Case, cases  # noqa: E402
from history import Traced  # noqa: E402
from others import Place, by_difflib, by_git, by_quote  # noqa: E402

from readerkit.anchors.drift.engine import carry  # noqa: E402
from readerkit.model.anchor import Span  # noqa: E402

Answer = tuple[Place, bool, float]
"""A place, whether the way is sure of it, and its confidence."""
_LARGE = 25_000_000
_SLOW = ("difflib", "quote search")
"""What would take hours on trees of more bytes than that: it is left out there."""
GROUPS = ("histories", "refactored", "parsed")
KINDS = ("not edited", "edited", "gone")


def by_drift(case: Case) -> list[Answer]:
    spans = [Span(t.path, t.start, t.end) for t in case.truth]
    found = carry(spans, case.old, case.new)
    return [
        (
            (v.to.path, v.to.first, v.to.last) if v.to else None,
            v.status != "unsure",
            v.confidence,
        )
        for v in found
    ]


def sure(way: Callable[..., list[Place]]) -> Callable[[Case], list[Answer]]:
    def run(case: Case) -> list[Answer]:
        return [(each, True, 1.0) for each in way(case.old, case.new, case.truth)]

    return run


WAYS: dict[str, Callable[[Case], list[Answer]]] = {
    "drift": by_drift,
    "git diff -M": sure(by_git),
    "difflib": sure(by_difflib),
    "quote search": sure(by_quote),
}


def group_of(name: str) -> str:
    """Return which kind of truth a case has."""
    first = name.partition(" ")[0]
    return first if first in GROUPS else GROUPS[0]


def kind(truth: Traced) -> str:
    return "gone" if truth.state == "gone" else KINDS[truth.edited]


def is_right(truth: Traced, place: Place) -> bool:
    if truth.state == "gone":
        return place is None
    return place == (truth.to_path, truth.to_start, truth.to_end)


class Tally:
    """Counts of one way on one kind of span."""

    def __init__(self) -> None:
        self.count = self.right = self.sure_right = self.wrong = 0

    def add(self, right: bool, is_sure: bool) -> None:
        self.count += 1
        self.right += right
        self.sure_right += right and is_sure
        self.wrong += is_sure and not right

    def row(self) -> str:
        shares = [
            f"{n / self.count:7.1%}" for n in (self.right, self.sure_right, self.wrong)
        ]
        return f"{self.count:6d} {' '.join(shares)}"


def measure(names: Sequence[str], cache: Path) -> None:
    total: dict[tuple[str, str, str], Tally] = defaultdict(Tally)
    spent: dict[str, float] = defaultdict(float)
    chances: list[tuple[float, bool]] = []
    dropped = 0
    for name in names:
        group = group_of(name)
        for case in cases(name, cache):
            dropped += case.dropped
            size = sum(map(len, case.old.values()))
            for way, run in WAYS.items():
                if size > _LARGE and way in _SLOW:
                    continue
                begun = time.process_time()
                answers = run(case)
                spent[way] += time.process_time() - begun
                here: dict[str, Tally] = defaultdict(Tally)
                for truth, (place, is_sure, chance) in zip(
                    case.truth, answers, strict=True
                ):
                    right = is_right(truth, place)
                    for tally in (here[kind(truth)], total[group, way, kind(truth)]):
                        tally.add(right, is_sure)
                    if way == "drift":
                        chances.append((chance, right))
                for each in KINDS:
                    if here[each].count:
                        row = here[each].row()
                        print(f"{name:36} {way:13} {each:11} {row}", flush=True)
    print("\nall held-out cases: spans, exact, exact and sure, wrong without saying so")
    for group in GROUPS:
        for way in WAYS:
            for each in KINDS:
                if tally := total.get((group, way, each)):
                    print(f"{group:11} {way:13} {each:11} {tally.row()}")
            every = [total[group, way, each] for each in KINDS]
            count = sum(t.count for t in every)
            if count:
                wrong = sum(t.wrong for t in every) / count
                print(f"{group:11} {way:13} wrong without saying so {wrong:.2%}")
    print(f"\n{dropped} spans were left out: their histories do not say where they are")
    print("seconds of processor time:", {w: round(s, 1) for w, s in spent.items()})
    print("confidence, and how often it was right:")
    edges = (0.0, 0.5, 0.8, 0.94, 0.98, 1.01)
    for low, high in pairwise(edges):
        found = [right for chance, right in chances if low <= chance < high]
        if found:
            share = sum(found) / len(found)
            print(f"  {low:.2f} to {min(high, 1):.2f}: {share:6.1%} of {len(found)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path.home() / ".cache" / "readerkit-benchmarks" / "drift"
    parser.add_argument("--cache", type=Path, default=default)
    parser.add_argument("cases", nargs="*", default=HELD_OUT)
    given = parser.parse_args()
    measure(given.cases, given.cache)


if __name__ == "__main__":
    main()
