"""The scale of the loss: what float16 can hold of gradients, found by trying.

A gradient below 3e-8 is zero in float16, and from 65520 on it is inf. Multiplied by a
scale before backward, and divided by it in float32 after, small ones survive. How large
the scale may be, only overflows tell: each of them costs a step that is not made.

Follows:
- NVIDIA/Megatron-LM: megatron/core/optimizer/grad_scaler.py
- pytorch/pytorch: torch/amp/grad_scaler.py (what a hysteresis of 1 is)

Leaves out:
- several optimizers of one scaler, and scales set by hand, which torch's allows
- torch's guard: there a scale that would grow past float32 stays
"""

from typing import Any

import torch
from torch import Tensor

# --- 1. plain: one scale ---


class ConstantGradScaler:
    """Scales the loss by one number, whatever happens."""

    def __init__(self, initial_scale: float) -> None:
        if initial_scale <= 0:
            raise ValueError(f"a loss is scaled by a number above 0: {initial_scale}")
        self.scale = torch.tensor(initial_scale, dtype=torch.float32)  # ()

    @property
    def inv_scale(self) -> Tensor:
        """What takes the scale out of a gradient."""
        return self.scale.double().reciprocal().float()

    def update(self, found_inf: bool) -> None:
        """Learn whether the gradients of a step overflowed: here nothing follows."""


# --- 2. a scale that follows the overflows ---


class DynamicGradScaler(ConstantGradScaler):
    """Scales as far as gradients do not overflow, and tries more from time to time.

    A step without overflow does not give back the patience that one with it took
    (`hysteresis`): only growth does. With a hysteresis of 1 the scale moves as that of
    torch's GradScaler, which has no floor.
    """

    def __init__(
        self,
        initial_scale: float = 2.0**32,
        *,
        min_scale: float = 1.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 1000,
        hysteresis: int = 2,
    ) -> None:
        super().__init__(initial_scale)
        if not 0 < min_scale <= initial_scale:
            raise ValueError(f"{min_scale} is not between 0 and {initial_scale}")
        if not backoff_factor < 1 < growth_factor or backoff_factor <= 0:
            raise ValueError(f"{backoff_factor} < 1 < {growth_factor} does not hold")
        if growth_interval < 1 or hysteresis < 1:
            raise ValueError(
                f"{growth_interval} steps, {hysteresis} overflows: below 1"
            )
        self.min_scale = min_scale
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.hysteresis = hysteresis
        self.growth_tracker = 0
        """Steps since the scale grew or a step overflowed."""
        self.hysteresis_tracker = hysteresis
        """Overflows until the scale falls; at 0 or below each one lowers it."""

    def update(self, found_inf: bool) -> None:
        """Lower the scale after overflows, raise it after steps without one."""
        if found_inf:
            self.growth_tracker = 0
            self.hysteresis_tracker -= 1
            if self.hysteresis_tracker <= 0:
                lower = self.scale * self.backoff_factor
                self.scale = lower.clamp(min=self.min_scale)
            return
        self.growth_tracker += 1
        if self.growth_tracker == self.growth_interval:
            self.growth_tracker = 0
            self.hysteresis_tracker = self.hysteresis
            self.scale = self.scale * self.growth_factor

    def state_dict(self) -> dict[str, Any]:
        """Return what a run that goes on needs; the settings are the caller's."""
        return {
            "scale": self.scale,
            "growth_tracker": self.growth_tracker,
            "hysteresis_tracker": self.hysteresis_tracker,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where a run was saved."""
        self.scale = state["scale"]
        self.growth_tracker = state["growth_tracker"]
        self.hysteresis_tracker = state["hysteresis_tracker"]
