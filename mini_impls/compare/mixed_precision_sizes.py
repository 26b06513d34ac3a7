"""What both comparisons of mixed precision share: the scale's way, and what is kept."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mini_impls.compare.sides import Formula, Tolerance, adamw_state
from readerkit.content.vocabulary import Category

HALF = torch.float16
SCALE = 2.0**12
GROWTH = 16.0
"""A large stride, so that a short run grows past what float16 holds."""
INTERVAL = 2
OF_ONE_PROCESS = Tolerance(
    0.5, "one process in float32 makes every step, this skips what overflows"
)


def kept(params: Sequence[Tensor]) -> dict[Category, Formula]:
    """Return 2 bytes an element, 4 of its gradient, 4 of its main weight, moments."""
    numel = sum(param.numel() for param in params)
    moments = adamw_state(params)
    return {
        "parameters": Formula(2 * numel, f"2 B x {numel:,} parameters"),
        "gradients": Formula(4 * numel, f"4 B x {numel:,} gradients"),
        "optimizer state": Formula(
            4 * numel + moments.bytes,
            f"4 B x {numel:,} main weights + {moments.text}",
        ),
    }
