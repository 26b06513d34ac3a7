"""JSON of a book, which anyone may have written: not larger than such files are."""

from __future__ import annotations

import json
from typing import Any

MAX_BYTES = 20_000_000
"""A hundred times the largest that readerkit has written; read in a second."""


def load(text: str) -> Any:
    """Return the value that a text holds.

    Raises:
        ValueError: it is too large, nested too deep, or no JSON.
    """
    if len(text) > MAX_BYTES:
        raise ValueError(f"a file of more than {MAX_BYTES:,} bytes")
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("a file that is nested too deep") from None


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant}, which is no JSON")
