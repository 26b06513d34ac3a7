"""Weights, gradients and optimizer state: bytes per parameter, sharded or not.

Four customs count the same training differently, so every figure names its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from readerkit.estimate.checks import check_amount, check_choice, check_count
from readerkit.estimate.quantity import Number, Quantity, divide

ZERO = "Rajbhandari et al. 1910.02054"
MEGATRON = "Megatron-LM, docs/source/api-guide/dist_optimizer.md"


@dataclass(frozen=True, slots=True)
class Precision:
    """Bytes that training keeps for one parameter."""

    weight: int
    gradient: int
    optimizer: int
    """Whatever a ZeRO stage 1 shards: moments, a master copy, fp32 gradients."""
    master: int
    """How much of that is the master copy, made before the first step."""
    says: str
    source: str

    @property
    def total(self) -> int:
        """All of them, unsharded."""
        return self.weight + self.gradient + self.optimizer

    @property
    def activation(self) -> int:
        """An element of an activation, which is computed in the weights' type."""
        return int(self.weight)

    def named(self) -> Precision:
        """Return the same bytes, under names for formulas."""
        symbols = {
            "weight": ("w", "bytes of a weight"),
            "gradient": ("g", "bytes of its gradient"),
            "optimizer": ("o", "bytes of its optimizer state"),
        }
        sizes = {
            name: Quantity.given(symbol, getattr(self, name), means)
            for name, (symbol, means) in symbols.items()
        }
        return replace(self, **sizes)


PRECISIONS = {
    "mixed-16": Precision(
        2,
        2,
        12,
        4,
        "16-bit weights and gradients; fp32 master, m and v",
        f"{ZERO}, 3.1",
    ),
    "mixed-18": Precision(
        2, 4, 12, 4, "bf16 weights, fp32 gradients; fp32 master, m and v", MEGATRON
    ),
    "mixed-20": Precision(
        2,
        2,
        16,
        4,
        "fp16 weights and gradients; fp32 gradients, master, m and v",
        MEGATRON,
    ),
    "fp32-16": Precision(
        4, 4, 8, 0, "everything fp32: weights, gradients, m, v", MEGATRON
    ),
    "mixed-12": Precision(
        2,
        2,
        8,
        0,
        "16-bit weights and gradients, fp32 m and v, no master copy",
        "a count",
    ),
    "adam8bit-10": Precision(
        2,
        2,
        6,
        4,
        "16-bit weights and gradients; fp32 master, one byte each for m and v",
        "Anthony et al., Transformer Math 101",
    ),
    "sgd-12": Precision(
        2,
        2,
        8,
        4,
        "16-bit weights and gradients; fp32 master and momentum",
        "Anthony et al., Transformer Math 101",
    ),
}
"""The number at the end of a name is its bytes per parameter, unsharded."""

STAGES = (0, 1, 2, 3)


def precision(name: str) -> Precision:
    """Return a convention by its name.

    Raises:
        EstimateError: no such convention.
    """
    return PRECISIONS[check_choice("precision", name, PRECISIONS)]


def bytes_per_param(*, convention: str = "mixed-16") -> int:
    """Return weight, gradient and optimizer bytes of one parameter, unsharded."""
    return precision(convention).total


def zero_bytes_per_param(
    *, stage: int, world_size: int, convention: str = "mixed-16"
) -> Number:
    """Return the bytes that one rank holds for each parameter under a ZeRO stage.

    Stage 0 is DDP; 1 shards the optimizer, 2 gradients too, 3 (FSDP) weights as well.
    Gathered weights and gradients in flight are not in it.

    Source: Rajbhandari et al. 1910.02054, section 5 and figure 1.
    """
    check_choice("ZeRO stage", str(stage), map(str, STAGES))
    ranks = check_count("world_size", world_size)
    kept = precision(convention)
    return sum(
        divide(size, ranks if stage >= sharded_from else 1)
        for size, sharded_from in (
            (kept.weight, 3),
            (kept.gradient, 2),
            (kept.optimizer, 1),
        )
    )


def model_state_bytes(
    *, params: Number, stage: int = 0, world_size: int = 1, convention: str = "mixed-16"
) -> Number:
    """Return the bytes of weights, gradients and optimizer state on one rank."""
    params = check_amount("params", params)
    each = zero_bytes_per_param(
        stage=stage, world_size=world_size, convention=convention
    )
    kept = precision(convention)
    if isinstance(each, int) or stage == 0:
        return params * each
    # Exact where the shards are: 12 N / 64 may be whole where 12 / 64 is not.
    parts = ((kept.weight, 3), (kept.gradient, 2), (kept.optimizer, 1))
    return sum(
        divide(params * size, world_size if stage >= sharded_from else 1)
        for size, sharded_from in parts
    )


def zero_max_params(
    *, memory_bytes: Number, stage: int, world_size: int, convention: str = "mixed-16"
) -> Number:
    """Return how many parameters' states fill a memory, with nothing else in it."""
    memory = check_amount("memory_bytes", memory_bytes)
    return memory / zero_bytes_per_param(
        stage=stage, world_size=world_size, convention=convention
    )


def fsdp_unsharded_bytes(
    *, unit_params: Number, units_in_flight: int = 2, weight_bytes: int = 2
) -> Number:
    """Return the gathered weights that stage 3 holds at once.

    A unit is what is wrapped together, a transformer layer as a rule. Two are in
    flight: the one that computes, and the one that is gathered meanwhile.

    Source: Zhao et al. 2304.11277, sections 3.2.1 and 3.4.2.
    """
    return (
        check_amount("unit_params", unit_params)
        * check_count("units_in_flight", units_in_flight)
        * check_count("weight_bytes", weight_bytes)
    )
