"""When Python looks for cycles of garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Look for no cycles of garbage: for work that makes none, and much that stays."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@contextmanager
def kept() -> Iterator[None]:
    """Import inside this what stays: Python never looks through it.

    Torch has 300,000 objects in its modules. A look at them takes a fifth of a second:
    again and again while they grow, in each process that is forked, at the end of each.
    """
    with uncollected():
        yield
    gc.freeze()
