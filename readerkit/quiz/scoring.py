"""What an answer is worth: every formula of the quiz, each with its source."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations

RETRY_FACTORS = (1.0, 0.5, 0.25)
"""What a right answer is worth on the first try, the second, the third."""

Z_95 = 1.959963984540054
"""Half-width of the central 95% of the normal distribution, in deviations."""


def choice_credit(chosen: int, right: int, wrongly: int, wrong: int) -> float:
    """Return t/C - w/W, never less than 0: t of C right ones, w of W wrong ones.

    Whoever names everything earns nothing, and who guesses each nearly so.
    Two of three right ones and nothing else: 2/3; all three and one of two others: 1/2.

    Source: Youden, Index for rating diagnostic tests, Cancer 3 (1950).
    """
    return max(0.0, chosen / right - wrongly / wrong)


def share_above_constant(right: int, total: int, constant: int) -> float:
    """Return the share of ``total`` beyond what one answer given for all is worth.

    Five of six cells where one word stands in three: (5 - 3)/(6 - 3).

    Source: the correction for chance of Cohen's kappa (1960), chance being a constant.
    """
    return max(0, right - constant) / (total - constant)


def order_credit(given: Sequence[int], valid: Iterable[Sequence[int]]) -> float:
    """Return 1 - 2d/D for the nearest valid order, and never less than 0.

    d counts the pairs that stand the wrong way round (Kendall's distance), D all pairs.
    A random order has half of them wrong, and is worth nothing. One swapped pair of
    neighbours among four items: 1 - 2/6.

    Source: Kendall, A New Measure of Rank Correlation, Biometrika 30 (1938).
    """
    pairs = len(given) * (len(given) - 1) // 2
    nearest = min(_inversions(given, order) for order in valid)
    return max(0.0, 1 - 2 * nearest / pairs)


def _inversions(given: Sequence[int], order: Sequence[int]) -> int:
    place = {item: index for index, item in enumerate(order)}
    return sum(place[a] > place[b] for a, b in combinations(given, 2))


def retry_points(credits: Sequence[float], costs: Sequence[float] = ()) -> float:
    """Return the points of a question from the credit of each try at it.

    A later try is worth less, and none of them ever lowers what was reached before:
    0.5 and then all of it gives max(0.5·1, 1·0.5) = 0.5. ``costs`` are the parts of
    its points that hints had cost before each try: all of it after a hint for 0.1
    gives 0.9.
    """
    last = RETRY_FACTORS[-1]
    factors = [*RETRY_FACTORS, *[last] * max(0, len(credits) - len(RETRY_FACTORS))]
    left = [*(1 - cost for cost in costs), *[1.0] * len(credits)]
    earned = map(math.prod, zip(credits, factors, left, strict=False))
    return max(earned, default=0.0)


def corrected_score(results: Sequence[tuple[bool | None, int | None]]) -> float | None:
    """Return (R - sum of 1/(k-1) over the wrong ones)/N for choice questions.

    ``results`` says for each whether it was right, None where it was left out, and how
    many answers k it offered.
    With one k for all of them this is (R - W/(k-1))/N: blind guessing scores 0 on
    average. Six of ten right with k = 4: (6 - 4/3)/10 = 0.467. None without questions.

    Source: Holzinger, On Scoring Multiple Response Tests (1924); Frary, NCME
        instructional module on formula scoring (1988).
    """
    if not results:
        return None
    right = sum(mark is True for mark, _ in results)
    lost = sum(1 / (k - 1) for mark, k in results if mark is False and k)
    return (right - lost) / len(results)


def wilson_interval(points: float, count: int) -> tuple[float, float]:
    """Return the 95% interval around ``points / count``; all of it where count is 0.

    Seven of ten: 0.397 to 0.892. Where points hold fractions of questions, it is a
    cautious stand-in, as partial credit varies less than right and wrong do.

    Source: Wilson, Probable Inference, JASA 22 (1927).
    """
    if not count:
        return 0.0, 1.0
    share, squared = points / count, Z_95**2
    middle = (share + squared / (2 * count)) / (1 + squared / count)
    spread = share * (1 - share) / count + squared / (4 * count**2)
    half = Z_95 * math.sqrt(spread) / (1 + squared / count)
    return max(0.0, middle - half), min(1.0, middle + half)
