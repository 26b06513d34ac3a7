"""Numbers as people read them, with their unit."""

from __future__ import annotations

from math import isfinite


def size(count: float) -> str:
    """Return bytes with a decimal unit.

    >>> size(65536)
    '65.5 kB'
    """
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            scaled = count / scale
            return f"{scaled:,.0f} {unit}" if scaled >= 1e3 else f"{scaled:.3g} {unit}"
    return f"{count:,.0f} B"


def number(value: float) -> str:
    """Return a number with as many digits as tell it apart from its neighbours.

    >>> number(2.9856958389282227), number(13), number(9.5e-07), number(float("nan"))
    ('2.985696', '13', '9.5e-07', 'nan')
    """
    if isinstance(value, int) or (isfinite(value) and value == int(value)):
        return f"{value:,.0f}"
    return f"{value:.7g}"
