"""What the answers say of each question: how many are right, how fast, who else is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import StatisticsError, correlation, median

from msgspec import Struct

from readerkit.quiz.history_rows import AnswerRow
from readerkit.quiz.report import outcomes, tries
from readerkit.quiz.scoring import wilson_interval
from readerkit.quiz.variant import WHOLE

MIN_ANSWERS = 5
"""Below it neither a share nor a time is told."""
MIN_PAIRS = 10
"""Answers with a rest of their quiz, below which no discrimination is told."""
MIN_REST = 3
"""Other questions of a quiz, below which their score says nothing."""


class ItemStatistics(Struct, frozen=True):
    """A question, as it was answered at first tries; None where too few were."""

    id: str
    answers: int
    right: float | None
    """The share that was right."""
    interval: tuple[float, float] | None
    """95%, around it."""
    seconds: float | None
    """The median of the answers that were not skipped."""
    discrimination: float | None
    """Point-biserial correlation of right with the score of the rest of the quiz."""
    pairs: int
    """Answers that it is of."""


def item_statistics(
    names: Iterable[str], answers: Iterable[AnswerRow]
) -> list[ItemStatistics]:
    """Return the statistics of questions, the least often right first.

    Source: Lord and Novick, Statistical Theories of Mental Test Scores (1968), 15.5:
        the item against the score without it.
    """
    rows = list(answers)
    first: dict[str, list[AnswerRow]] = {}
    for group in tries(rows):
        first.setdefault(group[0].question, []).append(group[0])
    points: dict[str, list[float]] = {}
    sessions: dict[str, list[AnswerRow]] = {}
    for each in rows:
        sessions.setdefault(each.session, []).append(each)
    for name, taken in sessions.items():
        points[name] = [each.points for each in outcomes(taken)]
    own = {
        (group[0].session, group[0].question): each.points
        for group, each in zip(tries(rows), outcomes(rows), strict=True)
    }
    found = [_of(name, first.get(name, []), points, own) for name in names]
    return sorted(
        found, key=lambda item: (item.right is None, item.right or 0, -item.answers)
    )


def _of(
    name: str,
    rows: list[AnswerRow],
    points: Mapping[str, list[float]],
    own: Mapping[tuple[str, str], float],
) -> ItemStatistics:
    count = len(rows)
    right = sum(row.credit >= WHOLE for row in rows)
    enough = count >= MIN_ANSWERS
    times = [row.seconds for row in rows if row.answer]
    pairs = [
        (
            float(row.credit >= WHOLE),
            (sum(points[row.session]) - own[row.session, name])
            / (len(points[row.session]) - 1),
        )
        for row in rows
        if len(points[row.session]) > MIN_REST
    ]
    return ItemStatistics(
        id=name,
        answers=count,
        right=right / count if enough else None,
        interval=wilson_interval(right, count) if enough else None,
        seconds=median(times) if len(times) >= MIN_ANSWERS else None,
        discrimination=_point_biserial(pairs),
        pairs=len(pairs),
    )


def _point_biserial(pairs: list[tuple[float, float]]) -> float | None:
    """Return Pearson's correlation; None of too few, or where one side never varies."""
    if len(pairs) < MIN_PAIRS:
        return None
    try:
        return round(correlation(*zip(*pairs, strict=True)), 3)
    except StatisticsError:
        return None
