"""What the minis are called, by themselves and by people."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from readerkit.errors import WrongUseError
from readerkit.wording.meant_name import choose

ALIASES = {
    "tp": "tensor_parallel",
    "sp": "sequence_parallel",
    "pp": "pipeline",
    "dp": "ddp",
    "fsdp1": "fsdp_flat",
    "fsdp2": "fsdp",
    "powersgd": "compression",
    "cp": "context_parallel",
    "zb": "zero_bubble",
    "moe": "experts",
    "amp": "mixed_precision",
    "ac": "recompute",
    "dcp": "checkpoint",
    "5d": "layout",
    "elastic": "recover",
}
"""What people call a mini, spelt as ``wording.meant_name`` compares names."""
SAYS = {
    "checkpoint": "sharded state: saved in the background, any layout loads it",
    "collectives": "all-reduce, all-gather, reduce-scatter ... made of sends",
    "compression": "gradients sent smaller: float16, 8 bits, top-k, PowerSGD",
    "context_parallel": "parts of each sequence: gathered keys, Ulysses, a ring",
    "ddp": "DDP: whole copies, gradients averaged in buckets",
    "experts": "mixture of experts: routing, load, dispatch, groups",
    "fsdp": "FSDP2 (fully_shard): each parameter sharded, ZeRO-3",
    "fsdp_flat": "FSDP1: flat parameters sharded, ZeRO-3",
    "fsdp_state": "FSDP2's state: clipping, saving, loading what is sharded",
    "inference": "generation with tensor parallelism and a cache",
    "layout": "all dimensions at once: tp x cp x dp x pp, and experts on ep",
    "mixed_precision": "bf16 and fp16, main weights, a loss scale; FP8 emulated",
    "muon": "Muon on sharded state: rows gathered, or owners of whole tensors",
    "offload": "optimizer, weights, activations on the host, fetched ahead of time",
    "pipeline": "pipeline parallelism: what the schedules order, run",
    "recompute": "activations run again: layers, parts, by hooks, by a policy",
    "recover": "a step run again, replicas compared, workers started again",
    "schedules": "the schedules alone: GPipe, 1F1B, interleaved (no torch)",
    "sequence_parallel": "activations sharded between layers",
    "tensor_parallel": "weights cut by column and by row",
    "zero": "ZeRO-1, 2, 3: optimizer, gradients, parameters sharded",
    "zero_bubble": "backward in two halves: ZB-H1, ZB-H2, ZB-V, DualPipe folded",
}
"""What each mini is, in the words that people know it by."""


def compared() -> list[str]:
    """Return the minis with comparisons: of each, a file of its name has them."""
    there = files("mini_impls.compare")
    return [name for name in SAYS if (there / f"{name}.py").is_file()]


def one_of(names: Sequence[str], mini: str) -> str:
    """Return the name that was meant, an alias spelt out.

    Raises:
        WrongUseError: it is none of them, and the message names them; or an option.
    """
    if mini.startswith("-"):
        raise WrongUseError(f"name a MINI before {mini}: one of {', '.join(names)}")
    return choose("mini", mini, names, aliases=ALIASES)


def listed_minis() -> str:
    """Return a line for each mini: its name, what it is, what else it is called."""
    also: dict[str, list[str]] = {}
    for alias, name in ALIASES.items():
        also.setdefault(name, []).append(alias)
    width = max(map(len, SAYS))
    return "\n".join(
        f"  {name:{width}}  {says}"
        + (f" (also {', '.join(also[name])})" if name in also else "")
        for name, says in SAYS.items()
    )
