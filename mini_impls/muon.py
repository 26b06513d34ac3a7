"""Muon: an optimizer that needs whole matrices, on ranks that share its state.

The update of a matrix is its momentum with every singular value brought near one: no
rank can make it from some of the rows. First one process. Then two ways to keep one
copy of the state:

    rows of each     gather each momentum | orthogonalize it on all ranks | keep my rows
    whole tensors    orthogonalize mine | gather what all owners changed, in one call

Follows:
- pytorch/pytorch: torch/optim/_muon.py
- NVIDIA/Megatron-LM: megatron/core/optimizer/layer_wise_optimizer.py

Leaves out:
- matrices that tensor parallelism cuts; query, key and value apart: `muon_split.py`
- which matrices are Muon's: who builds the optimizers leaves AdamW the embeddings, the
  output layer and the vectors
- groups of experts, main weights in float32 (`mixed_precision.py`), checkpoints
- rows that are gathered for forward and backward: `fsdp.py`
- gradients that leave while backward goes on: `ddp.py`
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

# Letters: M x N a matrix, W world size, C = ceil(M/W) rows of a rank, S elements of the
# parameters of one owner, L of the owner with most.

DEFAULT_NS = (3.4445, -4.7750, 2.0315)


# --- 1. Newton-Schulz: singular values to one, by products alone ---


def zeropower_via_newtonschulz(grad: Tensor, ns_steps: int = 5) -> Tensor:
    """Return U S V^T of `grad` with S near one, (M, N) in bfloat16.

    Each step takes every singular value s to a s + b s^3 + c s^5, which lets small ones
    grow fast and leaves large ones only near one: five take those of 0.005 and more to
    0.68 and more, and none beyond 1.21.
    """
    a, b, c = DEFAULT_NS
    x = grad.bfloat16()
    if grad.size(0) > grad.size(1):
        x = x.T  # the smaller of the two Gram matrices
    x = x / x.norm().clamp(min=1e-7)  # no singular value above one
    for _ in range(ns_steps):
        gram = x @ x.T
        gram_update = torch.addmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.addmm(x, gram_update, x, beta=a)
    return x.T if grad.size(0) > grad.size(1) else x


def adjust_lr(lr: float, shape: torch.Size) -> float:
    """Return the rate at which entries of (M, N) move by some lr / sqrt(N)."""
    return lr * math.sqrt(max(1, shape[0] / shape[1]))


# --- 2. plain: one process, or every rank with all of the state ---


class Muon(torch.optim.Optimizer):
    """Momentum, made orthogonal; bit by bit what torch's Muon does in float32."""

    def __init__(
        self,
        params: Iterable[nn.Parameter] | Iterable[dict[str, Any]],
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
    ) -> None:
        options = {"weight_decay": weight_decay, "momentum": momentum}
        super().__init__(params, {"lr": lr, "nesterov": nesterov, **options})
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(f"Muon is for matrices, got {tuple(p.shape)}")

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]  # takes no closure
        """Update all parameters that have a gradient."""
        for group in self.param_groups:
            lr, momentum = group["lr"], group["momentum"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                if not self.state[p]:
                    self.state[p]["momentum_buffer"] = torch.zeros_like(p.grad)
                buf = self.state[p]["momentum_buffer"]
                buf.lerp_(p.grad, 1 - momentum)
                update = p.grad.lerp(buf, momentum) if group["nesterov"] else buf
                update = self.orthogonalize(p, update)
                p.mul_(1 - lr * group["weight_decay"])
                p.add_(update, alpha=-adjust_lr(lr, self.get_shape(p)))

    def orthogonalize(self, p: nn.Parameter, grad: Tensor) -> Tensor:
        """Return the update of `p` from its momentum."""
        return zeropower_via_newtonschulz(grad)

    def get_shape(self, p: nn.Parameter) -> torch.Size:
        """Return the shape of the matrix that `p` is, or is of."""
        return p.shape


# --- 3. rows of each: gathered where they are needed ---


class RowsMuon(Muon):
    """`params` are this rank's rows of matrices: rows [rank C, rank C + C), if so many.

    `num_rows` says of each parameter how many rows M all ranks have of it together.
    All ranks have a gradient of it, or none has.
    """

    def __init__(
        self,
        params: Iterable[nn.Parameter],
        group: dist.ProcessGroup,
        num_rows: Mapping[nn.Parameter, int],
        **defaults: Any,
    ) -> None:
        super().__init__(params, **defaults)
        self.group, self.num_rows = group, num_rows

    def orthogonalize(self, p: nn.Parameter, grad: Tensor) -> Tensor:
        """Gather the momentum, and keep this rank's rows of what comes of it.

        It is cast before it is sent: Newton-Schulz begins with that.
        """
        rank, world_size = self.group.rank(), self.group.size()
        rows = -(-self.num_rows[p] // world_size)
        mine = grad.new_zeros(rows, grad.size(1), dtype=torch.bfloat16)  # (C, N)
        mine[: len(grad)] = grad  # (C or fewer, N) of (C, N)
        whole = mine.new_empty(world_size * rows, grad.size(1))  # (W C, N)
        dist.all_gather_single(whole, mine, group=self.group)  # (C, N) to (W C, N)
        update = zeropower_via_newtonschulz(whole[: self.num_rows[p]])  # (M, N)
        return update[rank * rows :][: len(grad)]  # (C or fewer, N)

    def get_shape(self, p: nn.Parameter) -> torch.Size:
        """Return the shape with the rows of all ranks."""
        return torch.Size([self.num_rows[p], p.size(1)])


# --- 4. whole tensors: dealt out by size, to and fro ---


def all_reduce_gradients(params: Sequence[nn.Parameter], group: Any) -> None:
    """Replace each gradient by the mean of all ranks, as data parallelism does.

    A rank that did not use a parameter adds nothing to the sum.
    """
    params = [p for p in params if p.requires_grad]
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in params]
    flat = torch.cat([grad.flatten() / group.size() for grad in grads])
    dist.all_reduce(flat, group=group)  # (all elements), once
    for p, mean in zip(params, flat.split([p.numel() for p in params]), strict=True):
        p.grad = mean.view_as(p).to(p.dtype)  # in its own shape


class LayerWiseDistributedOptimizer:
    """Runs optimizers, each rank on the parameters it owns, and gathers what changed.

    Any optimizer will do: what has an owner is whole. It must be built before the first
    step. Gradients are means already; only the owner reads them.
    """

    def __init__(
        self,
        optimizers: Sequence[torch.optim.Optimizer],
        group: dist.ProcessGroup,
        *,
        clip_grad: float = 0.0,
    ) -> None:
        self.optimizers, self.group, self.clip_grad = optimizers, group, clip_grad
        self.param_groups = [g for each in optimizers for g in each.param_groups]
        self.params_list: list[list[nn.Parameter]] = []
        """Of each rank, what it owns."""
        self.shard_params()

    def shard_params(self) -> None:
        """Deal all parameters out, the smallest first: 0 1 2, then 2 1 0, and again."""
        ranks = list(range(self.group.size()))
        loop = ranks + ranks[::-1]
        self.params_list = [[] for _ in ranks]
        params = [p for group in self.param_groups for p in group["params"]]
        for i, p in enumerate(sorted(params, key=Tensor.numel)):
            self.params_list[loop[i % len(loop)]].append(p)
        for group in self.param_groups:
            # By identity: `in` would compare numbers.
            there = set(group["params"])
            mine = self.params_list[self.group.rank()]
            group["params"] = [p for p in mine if p in there]

    @torch.no_grad()
    def step(self) -> float:
        """Update what this rank owns, gather the rest; return the gradients' norm."""
        grad_norm = self.get_grad_norm()
        clip_coeff = self.clip_grad / (grad_norm + 1e-6)
        if self.clip_grad > 0 and clip_coeff < 1:
            for grad in self.owned_grads():
                grad *= clip_coeff
        for optimizer in self.optimizers:
            optimizer.step()
        self.allgather_params()
        return grad_norm

    def owned_grads(self) -> list[Tensor]:
        """Return the gradients that this rank's optimizers read."""
        owned = [p for group in self.param_groups for p in group["params"]]
        return [p.grad for p in owned if p.grad is not None]

    def get_grad_norm(self) -> float:
        """Return the norm of all gradients: each owner adds its own, squared."""
        device = next(p.device for params in self.params_list for p in params)
        norms = [grad.float().norm() for grad in self.owned_grads()]
        if not norms:  # a rank that owns nothing
            norms = [torch.zeros((), device=device)]
        total = torch.stack(norms).norm().reshape(1) ** 2  # (1)
        dist.all_reduce(total, group=self.group)  # (1)
        grad_norm: float = total.item() ** 0.5
        return grad_norm

    def allgather_params(self) -> None:
        """Send what each owner updated, its tensors laid end to end, to all ranks."""
        dtypes = dict.fromkeys(p.dtype for params in self.params_list for p in params)
        for dtype in dtypes:
            shares = [[p for p in ps if p.dtype == dtype] for ps in self.params_list]
            self._allgather(shares)

    def _allgather(self, shares: Sequence[Sequence[nn.Parameter]]) -> None:
        sizes = [sum(p.numel() for p in params) for params in shares]
        mine = [p.flatten() for p in shares[self.group.rank()]]  # (numel) each
        like = next(p for params in shares for p in params)
        # Shares differ in size, and gloo gathers equal parts: all are as long as the
        # longest. Of what is added nothing is read.
        src = like.new_empty(max(sizes))  # (L)
        src[: sizes[self.group.rank()]] = torch.cat([*mine, like.new_empty(0)])  # (S)
        output = like.new_empty(self.group.size(), max(sizes))  # (W, L)
        dist.all_gather_single(output.view(-1), src, group=self.group)  # (L) to (W L)
        for rank, params in enumerate(shares):
            pieces = output[rank, : sizes[rank]].split([p.numel() for p in params])
            for p, piece in zip(params, pieces, strict=True):
                if rank != self.group.rank():
                    p.copy_(piece.view_as(p))  # in its own shape


if __name__ == "__main__":
    from mini_impls.demos.muon import main

    raise SystemExit(main())
