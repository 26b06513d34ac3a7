"""What minis with and without a fault are set to do, and what is measured of it.

One module per mini, imported inside a rank only, once the faulty copy of the mini,
if any, is in place.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # who only reads what faults there are needs no torch
    from mini_impls.launch import Rank

    Work = Callable[[Rank], dict[str, float]]


def get_module(work: str) -> str:
    """Return the module here that has a work: `ddp` of "ddp, a layer unused"."""
    return work.partition(",")[0]


def get_work(work: str) -> Work:
    """Return what a rank is to do; imports the mini.

    Raises:
        KeyError: its module has no such work.
    """
    module = importlib.import_module(f"{__name__}.{get_module(work)}")
    works: Mapping[str, Work] = module.WORKS
    return works[work]
