"""Mixed precision: a model in 16 bits, whose sums and updates are made in 32.

First the model alone in 16 bits. Then what that loses comes back: gradients add up in
float32, a scale keeps them within what float16 can hold, and the optimizer updates
main weights, of which the model's are rounded copies.
`mixed_precision_scaler.py` decides the scale.

Follows:
- NVIDIA/Megatron-LM: megatron/core/transformer/module.py (`Float16Module`)
- NVIDIA/Megatron-LM: megatron/core/optimizer/optimizer.py (`MixedPrecisionOptimizer`,
  `Float16OptimizerWithFloat16Params`)
- NVIDIA/Megatron-LM: megatron/core/distributed/distributed_data_parallel.py and
  param_and_grad_buffer.py (`main_grad`)

Leaves out:
- `torch.autocast`, which chooses a dtype for each operation; here a model has one
- gradients that add up and travel in 16 bits, the default of Megatron's core
- buckets that leave during backward: `ddp.py`; optimizer state cut up: `zero.py`
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from mini_impls.mixed_precision_scaler import ConstantGradScaler
from mini_impls.model import Batch, compute_loss

# Dimension letters: S elements of all gradients together. A number in brackets after a
# line is its shape; () is a single number.

HALF = (torch.float16, torch.bfloat16)
"""float16 goes from 6e-8 to 65504; bfloat16 has the exponents of float32."""


# --- 1. plain: everything in 16 bits ---


class Float16Module(nn.Module):
    """Wraps `module`, which computes in `dtype`; what it returns is float32.

    An optimizer of these weights alone loses every update of less than half a step:
    just below 1.0 that is 2e-3 in bfloat16.
    """

    def __init__(self, module: nn.Module, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        self.module = module.to(dtype)

    def forward(self, *inputs: Tensor) -> Tensor:
        """Call the module with inputs in its dtype; integers stay what they are."""
        halves = [x.to(self.dtype) if x.is_floating_point() else x for x in inputs]
        outputs: Tensor = self.module(*halves)
        return outputs.float()


# --- 2. gradients: computed in 16 bits, added up in 32 ---


class MainGrads:
    """Adds each `.grad` of `params` to a float32 `main_grad`, and frees it.

    With a group, `finish_grad_sync` leaves the mean over its ranks.
    """

    def __init__(
        self, params: Iterable[nn.Parameter], group: dist.ProcessGroup | None = None
    ) -> None:
        self.group = group
        trained = [param for param in params if param.requires_grad]
        numels = [param.numel() for param in trained]
        device = trained[0].device
        self.grad_data = torch.zeros(sum(numels), device=device)  # (S)
        pieces = zip(trained, self.grad_data.split(numels), strict=True)  # (numel)
        self.main_grad = {param: piece.view_as(param) for param, piece in pieces}
        for param in trained:
            param.register_post_accumulate_grad_hook(self._hook)

    def _hook(self, param: Tensor) -> None:
        assert isinstance(param, nn.Parameter) and param.grad is not None
        self.main_grad[param].add_(param.grad)
        param.grad = None

    def zero_grad_buffer(self) -> None:
        """Let what backwards add up start at zero."""
        self.grad_data.zero_()

    def finish_grad_sync(self) -> None:
        """Replace the sums of this rank by the mean over the group, after backward.

        An overflow anywhere is one everywhere: inf and nan outlive every sum.
        """
        if self.group is not None:
            self.grad_data *= 1 / self.group.size()
            dist.all_reduce(self.grad_data, group=self.group)  # (S)


# --- 3. main weights, and a step that may be skipped ---


class Float16Optimizer:
    """Has `optimizer` update float32 copies, and rounds them into the model.

    `grad_stats_group` holds the ranks that have different parameters, as those of
    tensor or pipeline parallelism do; all of them skip a step or none does.
    `duplicates` are parameters here that another of these ranks counts in the norm.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        main_grads: MainGrads,
        grad_scaler: ConstantGradScaler | None = None,
        grad_stats_group: dist.ProcessGroup | None = None,
        *,
        clip_grad: float = 0.0,
        duplicates: Collection[nn.Parameter] = (),
    ) -> None:
        self.optimizer = optimizer
        self.main_grads = main_grads
        self.grad_scaler = grad_scaler
        self.grad_stats_group = grad_stats_group
        self.clip_grad = clip_grad
        self.duplicates = set(duplicates)
        self.main_params: dict[nn.Parameter, Tensor] = {}
        for param_group in optimizer.param_groups:
            for i, param in enumerate(param_group["params"]):
                if param in main_grads.main_grad:  # one that is trained
                    is_half = param.dtype in HALF
                    main = param.detach().clone().float() if is_half else param
                    self.main_params[param] = param_group["params"][i] = main
        is_float16 = any(p.dtype is torch.float16 for p in self.main_params)
        if grad_scaler is None and is_float16:
            raise ValueError("float16 expects a grad scaler")

    def scale_loss(self, loss: Tensor) -> Tensor:
        """Return what backward starts from: small gradients are no longer zero."""
        scaler = self.grad_scaler
        return loss if scaler is None else scaler.scale.to(loss.device) * loss

    def zero_grad(self) -> None:
        """Begin a step, without what the last one added up.

        A float32 parameter is its own main weight: left in `.grad`, its sum would be
        added to itself.
        """
        self.optimizer.zero_grad()
        self.main_grads.zero_grad_buffer()

    @torch.no_grad()
    def step(self) -> tuple[bool, float | None]:
        """Return whether an update was made, and the norm of the gradients if so.

        The norm is 0.0 where nothing is clipped, which nobody computes then.
        """
        if self.prepare_grads():
            return False, None
        grad_norm = self.clip_grad_norm() if self.clip_grad > 0 else 0.0
        self.optimizer.step()
        for param, main in self.main_params.items():
            if main is not param:
                param.copy_(main)  # rounded to the nearest
        return True, grad_norm

    def prepare_grads(self) -> bool:
        """Hand the gradients over, without their scale; say whether one overflowed."""
        for param, main in self.main_params.items():
            main.grad = self.main_grads.main_grad[param]
        if self.grad_scaler is None:
            return False
        found_inf = self._unscale_main_grads_and_check_for_nan(self.grad_scaler)
        self.grad_scaler.update(found_inf)
        return found_inf

    def _unscale_main_grads_and_check_for_nan(self, scaler: ConstantGradScaler) -> bool:
        device = self.main_grads.grad_data.device
        found_inf, inv_scale = (
            torch.zeros(1, device=device),
            scaler.inv_scale.to(device),
        )
        for grad in self.grads():
            found_inf += (~torch.isfinite(grad)).any()  # (1)
            grad *= inv_scale
        self._all_reduce(found_inf, dist.ReduceOp.MAX)  # (1)
        return found_inf.item() > 0

    def clip_grad_norm(self) -> float:
        """Shorten the gradients to `clip_grad`; return how long they were."""
        norms = [grad.norm() for grad in self.grads(self.duplicates)]
        if not norms:  # another rank counts all that is here
            norms = [self.main_grads.grad_data.new_zeros(())]
        squared = torch.stack(norms).norm().reshape(1) ** 2  # (1)
        self._all_reduce(squared, dist.ReduceOp.SUM)  # (1)
        total_norm: float = squared.item() ** 0.5
        clip_coeff = self.clip_grad / (total_norm + 1e-6)
        if clip_coeff < 1:
            for grad in self.grads():
                grad *= clip_coeff
        return total_norm

    def grads(self, but: Collection[nn.Parameter] = ()) -> list[Tensor]:
        """Return the gradients of the main weights, but those of some parameters."""
        mains = [main for param, main in self.main_params.items() if param not in but]
        return [main.grad for main in mains if main.grad is not None]

    def _all_reduce(self, number: Tensor, op: Any) -> None:
        if self.grad_stats_group is not None:
            dist.all_reduce(number, op=op, group=self.grad_stats_group)  # (1)


# --- 4. a step of training ---


def train_step(
    model: nn.Module, optimizer: Float16Optimizer, microbatches: Sequence[Batch]
) -> tuple[float, bool, float | None]:
    """Take one step; return its loss on this rank, and what `step` returned."""
    optimizer.zero_grad()
    loss_sum = 0.0
    for tokens, labels in microbatches:
        loss = compute_loss(model(tokens), labels) / len(microbatches)
        optimizer.scale_loss(loss).backward()
        loss_sum += loss.item()
    optimizer.main_grads.finish_grad_sync()
    return loss_sum, *optimizer.step()


if __name__ == "__main__":
    from mini_impls.demos.mixed_precision import main

    raise SystemExit(main())
