"""Which cases of a rule `make test` runs; `make slow` runs the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def quick_first(cases: Iterable[Any], quick: int = 1) -> list[Any]:
    """Return cases of which all but the first ones are marked slow."""
    cases = list(cases)
    return [*cases[:quick], *map(_slow, cases[quick:])]


def quick_each(cases: Iterable[Any], kind: Callable[[Any], object]) -> list[Any]:
    """Return cases of which the first of each kind is quick, the others are slow."""
    seen: set[object] = set()
    found = []
    for case in cases:
        found.append(_slow(case) if kind(case) in seen else case)
        seen.add(kind(case))
    return found


def quick_third(cases: Iterable[Any]) -> list[Any]:
    """Return cases of which each third is quick, from the first on; others are slow."""
    return [_slow(case) if at % 3 else case for at, case in enumerate(cases)]


def _slow(case: Any) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.slow)
