"""The comparisons there are."""

from mini_impls.compare import (
    collectives,
    ddp,
    fsdp,
    fsdp_flat,
    fsdp_state,
    pipeline,
    sequence_parallel,
    tensor_parallel,
    zero,
    zero_fully_shard,
)
from mini_impls.compare.sides import Comparison

ALIASES = {"tp": "tensor_parallel", "sp": "sequence_parallel", "pp": "pipeline"}

COMPARISONS: tuple[Comparison, ...] = (
    *ddp.COMPARISONS,
    *fsdp.COMPARISONS,
    *fsdp_flat.COMPARISONS,
    *fsdp_state.COMPARISONS,
    *tensor_parallel.COMPARISONS,
    *sequence_parallel.COMPARISONS,
    *pipeline.COMPARISONS,
    *zero.COMPARISONS,
    *zero_fully_shard.COMPARISONS,
    *collectives.COMPARISONS,
)


def find(mini: str, upstream: str | None = None) -> Comparison:
    """Return the comparison of a mini with an upstream, by default its first.

    Raises ValueError where there is none; the message names those there are.
    """
    name = ALIASES.get(mini, mini)
    found = {c.upstream: c for c in COMPARISONS if c.mini == name}
    if not found:
        minis = ", ".join(dict.fromkeys(c.mini for c in COMPARISONS))
        raise ValueError(f"no mini {mini!r} is compared; there are {minis}")
    if upstream is None:
        return next(iter(found.values()))
    if upstream not in found:
        names = ", ".join(found)
        raise ValueError(f"{name} is not compared with {upstream!r}, but with {names}")
    return found[upstream]
