"""A bound that depends on the sizes of a run: ``2 * (world - 1)``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from readerkit.model.expression import (
    ExpressionError,
    calls_in,
    evaluate,
    names_in,
    parse_expression,
)

ANYTHING = "anything"
"""What values may be apart where they come out of memory that is not theirs."""
NAMES = (
    *("world", "rank", "layers", "microbatches", "chunks", "parameters"),
    *("tokens", "hidden", "vocabulary", "layer_bytes"),
)
"""Sizes of a run that a bound may speak of; ``parameters`` counts tensors, ``tokens``
are those of a rank's batch, ``layer_bytes`` the parameters of one layer."""
MAX_LENGTH = 80
_EXPECTED = f"a formula of numbers and the names {', '.join(NAMES)}"


@dataclass(frozen=True, slots=True)
class Count:
    """A bound as it was written."""

    text: str

    @classmethod
    def parse(cls, text: str) -> Count:
        """Return a bound that ``evaluate`` understands.

        Raises:
            ValueError: anything else than such an expression; says what was expected.
        """
        if len(text) > MAX_LENGTH:
            raise ValueError(f"at most {MAX_LENGTH} characters")
        count = cls(text)
        if text == ANYTHING:
            return count
        try:
            tree = parse_expression(text)
            known = names_in(tree) <= set(NAMES) and not calls_in(tree)
            count.evaluate(dict.fromkeys(NAMES, 1))
        except ExpressionError as error:
            raise ValueError(f"{_EXPECTED} ({error})") from None
        if not known:
            raise ValueError(_EXPECTED)
        return count

    def evaluate(self, sizes: Mapping[str, int]) -> int | float:
        """Return its value for a run.

        Raises:
            ExpressionError: an expression that ``parse`` would refuse.
        """
        return math.inf if self.text == ANYTHING else evaluate(self.text, sizes)
