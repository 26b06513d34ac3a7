"""Fit ``anchors/drift/weights.py`` to the cases that the benchmark does not report.

    .venv/bin/python benchmarks/drift/fit.py [--cache DIR]

Two logistic regressions: whether a place is exactly right, told from its features; and
whether nothing is, told from the likeliest place.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from cases import TRAIN, Case, cases  # noqa: E402
from history import Traced  # noqa: E402
from run import GROUPS, group_of, is_right  # noqa: E402

from readerkit.anchors.drift import confidence, engine  # noqa: E402
from readerkit.anchors.drift.corpus import Corpus  # noqa: E402
from readerkit.anchors.drift.remains import left_of  # noqa: E402
from readerkit.anchors.drift.span_place import Candidate  # noqa: E402
from readerkit.anchors.drift.verdict import refuse  # noqa: E402
from readerkit.model.anchor import Span  # noqa: E402

Sample = tuple[Traced, list[dict[str, float]], list[bool], dict[str, float]]
WEIGHTS = Path(engine.__file__).with_name("weights.py")
_STRENGTH = 2.0
"""Of the penalty on large weights."""
_SPANS_A_GROUP = 12_000


def samples(case: Case) -> Iterator[Sample]:
    """Yield each span with its candidates' features, and which of them is right."""
    tried: dict[Span, tuple[list[Candidate], dict[str, float]]] = {}

    def note(span: Span, candidates: list[Candidate], corpus: Corpus) -> object:
        tried[span] = candidates, left_of(span, corpus)
        return refuse(span, "")

    before, engine.decide = engine.decide, note  # type: ignore[assignment]
    try:
        engine.carry(
            [Span(t.path, t.start, t.end) for t in case.truth], case.old, case.new
        )
    finally:
        engine.decide = before
    for truth in case.truth:
        found, left = tried.get(Span(truth.path, truth.start, truth.end), (None, {}))
        if found is not None:
            rows = [confidence.features(each, found) for each in found]
            right = [
                truth.state != "gone"
                and is_right(truth, (each.path, each.first + 1, each.last + 1))
                for each in found
            ]
            yield truth, rows, right, left


def fitted(
    rows: list[Mapping[str, float]], right: list[bool], worth: list[float]
) -> dict[str, float]:
    """Return the weights of a logistic regression, found by Newton's method.

    ``worth`` says how much each row counts.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    given = numpy.array(
        [[row.get(name, 0.0) for name in names] + [1.0] for row in rows]
    )
    wanted = numpy.array(right, dtype=float)
    penalty = numpy.full(len(names) + 1, _STRENGTH)
    weights = numpy.zeros(len(names) + 1)
    for _ in range(60):
        chance = 1 / (1 + numpy.exp(-numpy.clip(given @ weights, -30, 30)))
        pull = penalty * weights
        pull[-1] = 0.0
        slope = given.T @ ((chance - wanted) * worth) + pull
        bend = (given * (chance * (1 - chance) * worth)[:, None]).T @ given
        step = numpy.linalg.solve(bend + numpy.diag(penalty), slope)
        weights -= step
        if abs(step).max() < 1e-6:
            break
    return dict(zip([*names, "bias"], map(float, weights), strict=True))


def best_of(rows: list[dict[str, float]]) -> tuple[float, dict[str, float] | None]:
    chances = [confidence.chance(row) for row in rows]
    if not chances:
        return 0.0, None
    at = max(range(len(chances)), key=chances.__getitem__)
    return chances[at], rows[at]


def _table(weights: Mapping[str, float]) -> str:
    rows = "".join(f'    "{name}": {value:.3f},\n' for name, value in weights.items())
    return "{\n" + rows + "}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path.home() / ".cache" / "readerkit-benchmarks" / "drift"
    parser.add_argument("--cache", type=Path, default=default)
    cache = parser.parse_args().cache
    found, worth = [], []
    for group in GROUPS:
        some = [name for name in TRAIN if group_of(name) == group]
        of_group = [s for n in some for case in cases(n, cache) for s in samples(case)]
        found += of_group
        # Each kind of truth counts the same, however many spans it has.
        worth += [_SPANS_A_GROUP / len(of_group)] * len(of_group)
    rows = [
        (row, is_right, count)
        for (_, each, right, _), count in zip(found, worth, strict=True)
        for row, is_right in zip(each, right, strict=True)
    ]
    tables = {}
    for name, is_elsewhere in (("PLACE", False), ("ELSEWHERE", True)):
        some = [each for each in rows if bool(each[0]["elsewhere"]) == is_elsewhere]
        plain = [{k: v for k, v in r.items() if k != "elsewhere"} for r, *_ in some]
        right, counts = [r for _, r, _ in some], [count for *_, count in some]
        tables[name] = fitted([*plain], right, counts)
        setattr(confidence, name, tables[name])
    best = [(*best_of(each), left) for _, each, _, left in found]
    gone = fitted(
        [confidence.gone_features(*each) for each in best],
        [truth.state == "gone" for truth, *_ in found],
        worth,
    )
    text = WEIGHTS.read_text().partition("PLACE = ")[0]
    said = "Whether a place in the same file is exactly the right one."
    text += f'PLACE = {_table(tables["PLACE"])}"""{said}"""\n\n'
    said = "The same of one that was searched for, in another definition or file."
    text += f'ELSEWHERE = {_table(tables["ELSEWHERE"])}"""{said}"""\n\n'
    text += f"GONE = {_table(gone)}"
    text += '"""Whether nothing is the right one, told from the likeliest place."""\n'
    WEIGHTS.write_text(text)
    print(f"fitted to {len(found)} spans with {len(rows)} places: {WEIGHTS}")


if __name__ == "__main__":
    main()
