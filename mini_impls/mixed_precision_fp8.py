"""FP8, emulated: what eight bits make of a product, with a scale for what they hold.

No product here is made in eight bits. Its two operands are rounded to what FP8 holds,
and multiplied in float32: the rounding is that of a GPU, its speed and memory are not.
Scales come in three ways: of the tensor as it is, of the steps before, and of blocks.

Follows:
- NVIDIA/TransformerEngine: transformer_engine/pytorch/quantization.py
  (`_default_sf_compute`, `reduce_and_update_fp8_tensors`)
- NVIDIA/TransformerEngine: transformer_engine/common/recipe/__init__.py
- NVIDIA/TransformerEngine:
  transformer_engine/pytorch/custom_recipes/quantization_current_scaling.py

Leaves out:
- casts and products of eight bits, copies of weights in eight bits, attention in them
- a backward whose amaxes are reduced by themselves; here one call takes all of a step
- a second rounding of what backward reads, along its own blocks; E4M3 for gradients,
  the default of upstream's recipes of blocks; MXFP8's scales of eight bits, for which
  powers of two in float32 stand
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.nn import functional as F

# Dimension letters: B rows of an input, all its other dimensions together; K columns of
# it; N outputs; H steps of a history.

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
"""4 bits of exponent and 3 of mantissa, for forward; 5 and 2, for backward."""


# --- 1. plain: a tensor, its scale, eight bits ---


def compute_scale(amax: Tensor, fp8_max: float, previous: Tensor) -> Tensor:
    """Return what takes numbers of up to `amax` to the end of what FP8 holds.

    Where there is no telling (nothing but zeros, an overflow) it stays as it was.
    """
    scale = fp8_max / amax
    can_tell = (amax > 0) & torch.isfinite(amax)
    # A quotient too large for float32 is float32's largest number.
    return torch.where(can_tell, scale, previous).clamp(
        max=torch.finfo(torch.float32).max
    )


def scale_now(amax: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the same for a tensor at hand; what has an overflow becomes nan by it."""
    # A number over a tensor would be its reciprocal times the number: rounded twice.
    scale = torch.full_like(amax, torch.finfo(dtype).max) / amax
    scale = scale.clamp(max=torch.finfo(torch.float32).max)
    return torch.where(amax == 0, 1.0, scale)


def round_to_power_of_2(scale: Tensor) -> Tensor:
    """Return the next power of two that is not larger: only exponents change then."""
    power = torch.ldexp(torch.ones_like(scale), torch.frexp(scale).exponent - 1)
    return torch.where(scale > 0, power, scale)


def emulate(x: Tensor, scale: Tensor, dtype: torch.dtype) -> Tensor:
    """Return `x` as FP8 holds it under this scale, in float32.

    What the scale takes past the end becomes the largest number there is: a stale
    scale cuts off, and what is small beside the largest becomes zero.
    """
    end = torch.finfo(dtype).max  # 448, or 57344
    held = (x.float() * scale).clamp(-end, end).to(dtype)
    return held.float() / scale


# --- 2. where scales come from ---


class Scaling(Protocol):
    """Gives the scale of one tensor: the inputs of a layer, its weights, a gradient."""

    def scale(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """Return what `x` (B, K) is multiplied by: one number, or one an element."""


class CurrentScaling:
    """The largest element of the tensor at hand decides: it is read twice."""

    def scale(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """Return one scale, ()."""
        return scale_now(x.abs().amax().float(), dtype)


class BlockScaling:
    """Each block of some rows and columns has a scale, which is a power of two.

    An outlier then costs its block alone: 1 x 128 for inputs and gradients, 128 x 128
    for weights; MXFP8 has 1 x 32 for all.
    """

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns

    def scale(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """Return each element's, (B, K); blocks at the ends may be smaller."""
        b, k = x.shape
        padded = F.pad(x.abs().float(), (0, -k % self.columns, 0, -b % self.rows))
        blocks = padded.unflatten(1, (-1, self.columns)).unflatten(0, (-1, self.rows))
        amax = blocks.amax(dim=(1, 3))  # (B / rows, K / columns)
        scale = round_to_power_of_2(scale_now(amax, dtype))
        of_rows = scale.repeat_interleave(self.rows, 0)  # (B or more, K / columns)
        return of_rows.repeat_interleave(self.columns, 1)[:b, :k]  # (B, K)


class DelayedScaling:
    """The largest element of the last steps decides: the tensor is read once.

    All ranks of a group agree on it, if `reduce_and_update` is given one.
    """

    def __init__(self, history_len: int = 1024) -> None:
        self.amax_history = torch.zeros(history_len)  # (H), this step's at 0
        self.current = torch.ones(())
        self.fp8_max = 1.0

    def scale(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """Return the scale that earlier steps left, (); note this one's amax."""
        self.fp8_max = torch.finfo(dtype).max
        self.amax_history = self.amax_history.to(x.device)
        self.current = self.current.to(x.device)
        amax = x.detach().abs().amax().float()  # ()
        self.amax_history[0] = torch.maximum(self.amax_history[0], amax)
        return self.current

    def update(self) -> None:
        """End a step: the largest of the history makes the next scale."""
        amax = self.amax_history.amax()  # ()
        self.current = compute_scale(amax, self.fp8_max, self.current)
        self.amax_history = self.amax_history.roll(-1)  # (H)
        self.amax_history[0] = 0.0


def reduce_and_update(
    scalings: Sequence[DelayedScaling], group: dist.ProcessGroup | None = None
) -> None:
    """End a step of all tensors: their amaxes travel together, in one call.

    Ranks whose scales differed would round one weight to two numbers.
    """
    if group is not None:
        amaxes = torch.stack([scaling.amax_history[0] for scaling in scalings])
        dist.all_reduce(amaxes, op=dist.ReduceOp.MAX, group=group)  # (scalings)
        for scaling, amax in zip(scalings, amaxes, strict=True):
            scaling.amax_history[0] = amax
    for scaling in scalings:
        scaling.update()


# --- 3. a layer whose three products are of such operands ---


class EmulatedFp8Product(torch.autograd.Function):
    """x W^T, and backward dy W and dy^T x, each of operands rounded to FP8."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, weight: Tensor, scaling: Any) -> Tensor:
        """(B, K) times (N, K) -> (B, N)."""
        x = emulate(x, scaling[0].scale(x, E4M3), E4M3)
        weight = emulate(weight, scaling[1].scale(weight, E4M3), E4M3)
        ctx.save_for_backward(x, weight)
        ctx.scaling = scaling  # type: ignore[attr-defined]
        return x @ weight.T

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        """(B, N) -> (B, K), (N, K)."""
        x, weight = ctx.saved_tensors
        grad = emulate(grad, ctx.scaling[2].scale(grad, E5M2), E5M2)
        return grad @ weight, grad.T @ x, None


class EmulatedFp8Linear(nn.Module):
    """A linear layer whose bias is added in float32; its parameters stay as they are.

    `scalings` are those of its input, its weight, and the gradient of its output.
    """

    def __init__(self, linear: nn.Linear, scalings: tuple[Scaling, ...]) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight, linear.bias
        self.scalings = scalings

    def forward(self, x: Tensor) -> Tensor:
        """(..., K) -> (..., N)."""
        rows = x.reshape(-1, x.size(-1))  # (B, K)
        product: Any = EmulatedFp8Product
        out: Tensor = product.apply(rows, self.weight, self.scalings)  # (B, N)
        out = out.view(*x.shape[:-1], -1)  # (..., N)
        return out if self.bias is None else out + self.bias


def emulate_fp8(
    layers: nn.Module, make: Callable[[], tuple[Scaling, ...]]
) -> list[Scaling]:
    """Put every linear layer below `layers` into FP8; return the scalings of all."""
    found: list[Scaling] = []
    for parent in list(layers.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear):
                layer = EmulatedFp8Linear(child, make())
                setattr(parent, name, layer)
                found += layer.scalings
    return found
