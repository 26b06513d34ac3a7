"""ZeRO: stop keeping the same optimizer state, and the same gradients, on every rank.

Every parameter has an owner. Stage 1: only the owner keeps its optimizer state and
updates it. Stage 2: only the owner keeps its gradient.

    stage 1    backward | reduce all gradients | update mine | broadcast all parameters
    stage 2    backward, each gradient reduced to its owner | update mine | broadcast

Follows:
- pytorch/pytorch: torch/distributed/optim/zero_redundancy_optimizer.py (stage 1)
- ZeRO (arXiv 1910.02054), sections 5 and 7 (stage 2, and what both send)

Leaves out:
- stage 3, in which only the owner keeps the parameter itself: `zero_stage3.py`
- parameters cut across ranks (here one has one owner): `fsdp.py` cuts, and prefetches
- parameters that some ranks do not use, or use in another order
- gradients kept from one step to the next: `zero_grad()` stands between them
- state dictionaries of the whole optimizer, optimizers that look across parameters
- mixed precision: all is of one dtype, so that Adam's state is 8 bytes beside 4 of
  parameter and 4 of gradient in fp32, and the paper's 2 + 2 + 12 is nowhere to be seen
"""

from collections.abc import Callable, Iterable
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn

Params = Iterable[nn.Parameter] | Iterable[dict[str, Any]]
"""What a torch optimizer takes: parameters, or groups of them with options."""


# --- 1. stage 1: the optimizer state ---


class ZeroStage1(torch.optim.Optimizer):
    """Any `torch.optim` class, each rank running it on the parameters that it owns."""

    def __init__(
        self,
        params: Params,
        optimizer_class: Callable[..., torch.optim.Optimizer],
        group: dist.ProcessGroup,
        *,
        gradients: Literal["all_reduce", "reduce"] = "all_reduce",
        **defaults: Any,
    ) -> None:
        self.group = group
        self.rank, self.world_size = group.rank(), group.size()
        self.gradients = gradients
        # Adam has no state before its first step, so that this one costs nothing;
        # it fills in the defaults of every group, and schedulers may change them there.
        super().__init__(optimizer_class(params, **defaults).param_groups, defaults)
        self.params: list[nn.Parameter] = [
            param
            for param_group in self.param_groups
            for param in param_group["params"]
        ]
        if len(self.params) < self.world_size:
            raise ValueError(
                f"{len(self.params)} parameters cannot have {self.world_size} owners"
            )
        self.param_to_rank = self._partition_parameters()
        self.optim = optimizer_class(
            [
                {**param_group, "params": self._owned(param_group["params"])}
                for param_group in self.param_groups
            ],
            **defaults,
        )

    def _partition_parameters(self) -> dict[nn.Parameter, int]:
        """Give each parameter, the largest first, to the rank with least so far."""
        param_to_rank = {}
        sizes = [0] * self.world_size
        for param_group in self.param_groups:
            for param in sorted(param_group["params"], key=Tensor.numel, reverse=True):
                rank = sizes.index(min(sizes))
                param_to_rank[param] = rank
                sizes[rank] += param.numel()
        return param_to_rank

    def _owned(self, params: Iterable[nn.Parameter]) -> list[nn.Parameter]:
        return [param for param in params if self.param_to_rank[param] == self.rank]

    def step(self) -> None:  # type: ignore[override]  # takes no closure
        """Average the gradients, update the owned parameters, share them."""
        self._sync_gradients()
        self._local_step()
        self._sync_params()

    def _sync_gradients(self) -> None:
        # With `all_reduce`, as data parallelism does, everyone gets a mean that only
        # the owner reads, and the broadcast after it makes 1.5 times the bytes. Sent
        # to the owner alone, both together are the bytes of one all-reduce.
        for param in reversed(self.params):
            if param.grad is not None:
                param.grad /= self.world_size  # whole, in the parameter's own shape
                if self.gradients == "all_reduce":
                    dist.all_reduce(param.grad, group=self.group)  # whole
                else:
                    owner = self.param_to_rank[param]
                    dist.reduce(param.grad, group_dst=owner, group=self.group)  # whole

    def _local_step(self) -> None:
        # A scheduler has changed the exposed groups; the local optimizer must follow.
        pairs = zip(self.param_groups, self.optim.param_groups, strict=True)
        for exposed, local in pairs:
            local.update({key: exposed[key] for key in exposed if key != "params"})
        self.optim.step()

    def _sync_params(self) -> None:
        handles = [
            dist.broadcast(
                param.detach(), group_src=rank, group=self.group, async_op=True
            )  # whole, in its own shape
            for rank in range(self.world_size)
            for param, owner in self.param_to_rank.items()
            if owner == rank
        ]
        for handle in handles:
            handle.wait()

    def zero_grad(self) -> None:  # type: ignore[override]  # always to None
        """Drop all gradients."""
        for param in self.params:
            param.grad = None

    def state_dict(self) -> dict[str, Any]:
        """Refuse: a rank has the state of what it owns, and would save that alone."""
        raise RuntimeError(
            f"rank {self.rank} of {self.world_size} has a part of the optimizer state: "
            "save `optim.state_dict()` on every rank"
        )

    def full_parameters(self) -> dict[nn.Parameter, Tensor]:
        """Return a copy of every parameter; all ranks must call it."""
        return {param: param.detach().clone() for param in self.params}


# --- 2. stage 2: the gradients, reduced and dropped while backward goes on ---


class ZeroStage2(ZeroStage1):
    """Stage 1, and a gradient leaves for its owner as soon as it is computed."""

    def __init__(
        self,
        params: Params,
        optimizer_class: Callable[..., torch.optim.Optimizer],
        group: dist.ProcessGroup,
        **defaults: Any,
    ) -> None:
        super().__init__(params, optimizer_class, group, gradients="reduce", **defaults)
        self.main_grad: dict[nn.Parameter, Tensor] = {}
        """Mean gradients of the owned parameters, added up over microbatches."""
        self._in_flight: tuple[nn.Parameter, Tensor, dist.Work] | None = None
        for param in self.params:
            if param.requires_grad:
                param.register_post_accumulate_grad_hook(self._reduce_gradient)

    def _reduce_gradient(self, param: Tensor) -> None:
        assert isinstance(param, nn.Parameter) and param.grad is not None
        grad, param.grad = param.grad, None
        grad /= self.world_size  # whole, in the parameter's own shape
        owner = self.param_to_rank[param]
        handle = dist.reduce(grad, group_dst=owner, group=self.group, async_op=True)
        # One reduction travels while the next gradient is computed. Were none waited
        # for, all gradients would be alive at once, which is what stage 2 is to avoid.
        self._finish_reduction()
        self._in_flight = (param, grad, handle)

    def _finish_reduction(self) -> None:
        if self._in_flight is None:
            return
        param, grad, handle = self._in_flight
        handle.wait()
        if self.param_to_rank[param] == self.rank:
            accumulated = self.main_grad.get(param)
            self.main_grad[param] = grad if accumulated is None else accumulated + grad
        self._in_flight = None

    def _sync_gradients(self) -> None:
        self._finish_reduction()
        for param, grad in self.main_grad.items():
            param.grad = grad
        self.main_grad = {}

    def zero_grad(self) -> None:  # type: ignore[override]  # always to None
        """Drop all gradients, those that were reduced and not yet used too."""
        self._finish_reduction()
        self.main_grad = {}
        super().zero_grad()


if __name__ == "__main__":
    from mini_impls.demos.zero import main

    raise SystemExit(main())
