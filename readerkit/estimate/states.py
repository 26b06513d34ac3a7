"""Weights, gradients and optimizer state: bytes per parameter, sharded or not.

Four customs count the same training differently, so every figure names its own.
"""

from __future__ import annotations

from typing import NamedTuple

from readerkit.estimate.checks import check_amount, check_choice
from readerkit.estimate.closed_form import ClosedForm, checked
from readerkit.estimate.quantity import Number, divide, named_sizes
from readerkit.estimate.sizes import PRECISION

ZERO = "Rajbhandari et al. 1910.02054"
MEGATRON = "Megatron-LM, docs/user-guide/features/dist_optimizer.md"


class Offload(NamedTuple):
    """Which states are not on the GPU, and where they are."""

    place: str
    takes: tuple[str, ...]
    """Of ``weights``, ``gradients`` and ``optimizer``."""
    stage: int
    """The ZeRO stage that it needs."""
    source: str


_OFFLOADED = "Ren et al. 2101.06840, section 3"
_INFINITY = "Rajbhandari et al. 2104.07857, section 5.1"
_UPDATED = ("gradients", "optimizer")
_ALL = ("weights", *_UPDATED)
OFFLOAD = {
    "none": Offload("GPU", (), 0, ""),
    "optimizer-cpu": Offload("CPU", _UPDATED, 1, _OFFLOADED),
    "optimizer-nvme": Offload("NVMe", _UPDATED, 3, _INFINITY),
    "states-cpu": Offload("CPU", _ALL, 3, _INFINITY),
    "states-nvme": Offload("NVMe", _ALL, 3, _INFINITY),
}
"""Gradients go with the optimizer that takes them, as they are made."""


class Precision(NamedTuple):
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
        """An element of an activation: of the weights' type, and 16 bits at least."""
        return max(2, int(self.weight))

    @property
    def sharded(self) -> tuple[tuple[int, int], ...]:
        """Weight, gradient and optimizer, and the ZeRO stage from which each is cut."""
        return (self.weight, 3), (self.gradient, 2), (self.optimizer, 1)

    def named(self) -> Precision:
        """Return the same bytes, under names for formulas."""
        return self._replace(**named_sizes(self, PRECISION))


_MATH_101 = "Anthony et al., Transformer Math 101"
PRECISIONS = {
    name: Precision(*sizes, says, source)
    for name, sizes, source, says in (
        (
            *("mixed-16", (2, 2, 12, 4), f"{ZERO}, 3.1"),
            "16-bit weights and gradients; fp32 master, m and v",
        ),
        (
            *("mixed-18", (2, 4, 12, 4), MEGATRON),
            "bf16 weights, fp32 gradients; fp32 master, m and v",
        ),
        (
            *("mixed-20", (2, 2, 16, 4), MEGATRON),
            "fp16 weights and gradients; fp32 gradients, master, m and v",
        ),
        (
            *("fp32-16", (4, 4, 8, 0), MEGATRON),
            "everything fp32: weights, gradients, m, v",
        ),
        (
            *("mixed-12", (2, 2, 8, 0), "a count"),
            "16-bit weights and gradients, fp32 m and v, no master copy",
        ),
        (
            *("adam8bit-10", (2, 2, 6, 4), _MATH_101),
            "16-bit weights and gradients; fp32 master, one byte each for m and v",
        ),
        (
            *("sgd-12", (2, 2, 8, 4), _MATH_101),
            "16-bit weights and gradients; fp32 master and momentum",
        ),
        (
            *("fp8-13", (1, 4, 8, 4), "DeepSeek-V3 2412.19437, section 3.3.2"),
            "FP8 weights, fp32 gradients; fp32 master, bf16 m and v",
        ),
        (
            *("fp8lm-7", (1, 1, 5, 2), "Peng et al. 2310.18313, section 2.2"),
            "FP8 weights and gradients; fp16 master, FP8 m, fp16 v",
        ),
    )
}
"""The number at the end of a name is its bytes per parameter, unsharded."""

WEIGHTS: dict[str, tuple[float, str]] = {
    "fp32": (4, "IEEE 754"),
    "bf16": (2, "a count"),
    "fp16": (2, "IEEE 754"),
    "fp8": (1, "Micikevicius et al. 2209.05433; one scale a tensor, left out"),
    "fp8-block": (
        1 + 4 / 128**2,
        "DeepSeek-V3 2412.19437, section 3.3.2: an fp32 scale for 128 × 128",
    ),
    "mxfp8": (1 + 1 / 32, "OCP Microscaling v1.0, table 1: a byte for 32"),
    "mxfp4": (1 / 2 + 1 / 32, "OCP Microscaling v1.0, table 1: a byte for 32"),
    "nvfp4": (1 / 2 + 1 / 16, "NVIDIA, NVFP4: a byte for 16"),
    "int8": (1, "a count; scales left out"),
    "int4": (1 / 2, "a count; scales left out"),
}
"""Formats of weights in inference: bytes of one with its share of a scale, and why."""

STAGES = (0, 1, 2, 3)


def precision(name: str) -> Precision:
    """Return a convention by its name.

    Raises:
        EstimateError: no such convention.
    """
    return PRECISIONS[check_choice("precision", name, PRECISIONS)]


def weight_bytes(name: str) -> float:
    """Return the bytes of a weight in a format.

    Raises:
        EstimateError: no such format.
    """
    return WEIGHTS[check_choice("format of weights", name, WEIGHTS)][0]


def bytes_per_param(*, convention: str = "mixed-16") -> int:
    """Return weight, gradient and optimizer bytes of one parameter, unsharded."""
    return precision(convention).total


@checked(stage=STAGES)
def model_state_bytes(
    *, params: Number, stage: int = 0, world_size: int = 1, convention: str = "mixed-16"
) -> Number:
    """Return the bytes of weights, gradients and optimizer state on one rank.

    Stage 0 is DDP; 1 shards the optimizer, 2 gradients too, 3 (FSDP) weights as well.
    Gathered weights and gradients in flight are not in it.

    Source: Rajbhandari et al. 1910.02054, section 5 and figure 1.
    """
    return sum(
        divide(params * size, world_size if stage >= sharded_from else 1)
        for size, sharded_from in precision(convention).sharded
    )


def zero_bytes_per_param(
    *, stage: int, world_size: int, convention: str = "mixed-16"
) -> Number:
    """Return the bytes that one rank holds for each parameter under a ZeRO stage."""
    return model_state_bytes(
        params=1, stage=stage, world_size=world_size, convention=convention
    )


def zero_max_params(
    *, memory_bytes: Number, stage: int, world_size: int, convention: str = "mixed-16"
) -> Number:
    """Return how many parameters' states fill a memory, with nothing else in it."""
    memory = check_amount("memory_bytes", memory_bytes)
    return memory / zero_bytes_per_param(
        stage=stage, world_size=world_size, convention=convention
    )


fsdp_unsharded_bytes = ClosedForm(
    "unit_params × units_in_flight × weight_bytes",
    whole="units_in_flight weight_bytes",
    units_in_flight=2,
    weight_bytes=2,
)
"""The gathered weights that stage 3 holds at once.

A unit is what is wrapped together, a transformer layer as a rule. Two are in flight:
the one that computes, and the one that is gathered meanwhile.

Source: Zhao et al. 2304.11277, sections 3.2.1 and 3.4.2.
"""


def idle_stages(stage: int, ranks: Number, of_experts: Number) -> list[str]:
    """Return that a stage of ZeRO has no ranks to shard over, and of what."""
    if not stage or 1 not in (ranks, of_experts):
        return []
    why = "nothing: dp × cp is 1"
    if ranks > 1:
        why = "no expert: dp × cp × tp is etp × ep"
    elif of_experts > 1:
        why = "experts alone: dp × cp is 1"
    return [f"ZeRO stage {stage} shards {why}"]
