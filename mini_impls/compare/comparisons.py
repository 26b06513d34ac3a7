"""The comparisons there are, by the mini that they are of.

Each is imported when it is asked for: an upstream can take a second to import.
"""

from importlib import import_module

from mini_impls.compare.sides import Comparison
from readerkit.app.mini_names import compared, one_of
from readerkit.wording.meant_name import choose

UPSTREAMS = {"fsdp1": "fsdp1", "fsdp2": "fully_shard"}
"""What people call an upstream."""

MINIS = compared()
"""Those with comparisons."""


def comparisons() -> tuple[Comparison, ...]:
    """Return all of them."""
    return tuple(each for mini in MINIS for each in of_mini(mini))


def of_mini(mini: str) -> tuple[Comparison, ...]:
    """Return those of a mini, which must be one of `MINIS`."""
    found: tuple[Comparison, ...]
    found = import_module(f"mini_impls.compare.{mini}").COMPARISONS
    return found


def find(mini: str, upstream: str | None = None) -> Comparison:
    """Return the comparison of a mini with an upstream, by default its first.

    Raises ReaderkitError where there is none; the message names them.
    """
    name = one_of(MINIS, mini)
    found = {each.upstream: each for each in of_mini(name)}
    if upstream is None:
        return next(iter(found.values()))
    return found[choose(f"upstream of {name}", upstream, found, aliases=UPSTREAMS)]
