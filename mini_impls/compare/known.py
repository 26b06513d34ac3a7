"""The comparisons there are, by the mini that they are of.

Each is imported when it is asked for: an upstream can take a second to import.
"""

from importlib import import_module

from mini_impls.compare.sides import Comparison
from readerkit.app.mini_names import one_of
from readerkit.wording.meant_name import choose

UPSTREAMS = {"fsdp1": "fsdp1", "fsdp2": "fully_shard"}
"""What people call an upstream."""

MODULES = {
    "ddp": ("ddp",),
    "fsdp": ("fsdp",),
    "fsdp_flat": ("fsdp_flat",),
    "fsdp_state": ("fsdp_state",),
    "tensor_parallel": ("tensor_parallel",),
    "sequence_parallel": ("sequence_parallel",),
    "pipeline": ("pipeline",),
    "zero": ("zero", "zero_fully_shard"),
    "collectives": ("collectives",),
}
"""From a mini to where its comparisons are, beside this file."""


def comparisons() -> tuple[Comparison, ...]:
    """Return all of them."""
    return tuple(each for mini in MODULES for each in of_mini(mini))


def of_mini(mini: str) -> tuple[Comparison, ...]:
    """Return those of a mini, which must be one of `MODULES`."""
    found: list[Comparison] = []
    for module in MODULES[mini]:
        found += import_module(f"mini_impls.compare.{module}").COMPARISONS
    return tuple(found)


def find(mini: str, upstream: str | None = None) -> Comparison:
    """Return the comparison of a mini with an upstream, by default its first.

    Raises ReaderkitError where there is none; the message names them.
    """
    name = one_of(list(MODULES), mini)
    found = {each.upstream: each for each in of_mini(name)}
    if upstream is None:
        return next(iter(found.values()))
    return found[choose(f"upstream of {name}", upstream, found, aliases=UPSTREAMS)]
