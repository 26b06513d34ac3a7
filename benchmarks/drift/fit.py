"""Fit ``readerkit/drift/weights.py`` to the cases that the benchmark does not report.

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
from run import is_right  # noqa: E402

from readerkit.drift import confidence, engine  # noqa: E402
from readerkit.drift.place import Candidate  # noqa: E402
from readerkit.drift.verdict import refuse  # noqa: E402
from readerkit.model.anchor import Span  # noqa: E402

Sample = tuple[Traced, list[dict[str, float]], list[bool]]
WEIGHTS = Path(engine.__file__).with_name("weights.py")
_STRENGTH = 2.0
"""Of the penalty on large weights."""


def samples(case: Case) -> Iterator[Sample]:
    """Yield each span with its candidates' features, and which of them is right."""
    tried: dict[Span, list[Candidate]] = {}

    def note(span: Span, candidates: list[Candidate], corpus: object) -> object:
        tried[span] = candidates
        return refuse(span, "")

    before, engine.decide = engine.decide, note  # type: ignore[assignment]
    try:
        engine.carry(
            [Span(t.path, t.start, t.end) for t in case.truth], case.old, case.new
        )
    finally:
        engine.decide = before
    for truth in case.truth:
        found = tried.get(Span(truth.path, truth.start, truth.end))
        if found is not None:
            rows = [confidence.features(each, found) for each in found]
            right = [
                truth.state != "gone"
                and is_right(truth, (each.path, each.first + 1, each.last + 1))
                for each in found
            ]
            yield truth, rows, right


def fitted(rows: list[Mapping[str, float]], right: list[bool]) -> dict[str, float]:
    """Return the weights of a logistic regression, found by Newton's method."""
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
        slope = given.T @ (chance - wanted) + pull
        bend = (given * (chance * (1 - chance))[:, None]).T @ given
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
    found = [s for name in TRAIN for case in cases(name, cache) for s in samples(case)]
    rows = [pair for _, each, right in found for pair in zip(each, right, strict=True)]
    tables = {}
    for name, is_elsewhere in (("PLACE", False), ("ELSEWHERE", True)):
        some = [(row, r) for row, r in rows if bool(row["elsewhere"]) == is_elsewhere]
        plain = [{k: v for k, v in row.items() if k != "elsewhere"} for row, _ in some]
        tables[name] = fitted([*plain], [right for _, right in some])
        setattr(confidence, name, tables[name])
    best = [best_of(each) for _, each, _ in found]
    gone = fitted(
        [confidence.gone_features(chance, row) for chance, row in best],
        [truth.state == "gone" for truth, _, _ in found],
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
