"""Gradient compression: what travels is smaller than the gradients it stands for.

First the plain way, sixteen bits instead of thirty-two. Then eight, which no sum on the
way can add up. Then two that send a part and keep what is missing for the next step:
the largest elements, and two thin matrices whose product is near the gradient.

Follows:
- pytorch/pytorch: torch/distributed/algorithms/ddp_comm_hooks/default_hooks.py
- pytorch/pytorch: torch/distributed/algorithms/ddp_comm_hooks/powerSGD_hook.py

Leaves out:
- buckets that leave during backward: `ddp.py`; here one leaves when backward is over
- matrices of one shape multiplied together, QR instead of Gram-Schmidt above rank 2
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Variable

# Dimension letters: S elements of a bucket, W ranks, K elements sent of S;
# a gradient of shape (N, M) is near P (N, R) times the transpose of Q (M, R).


class GradBucket:
    """Gradients of some parameters, each a view into one tensor."""

    def __init__(self, params: Sequence[nn.Parameter]) -> None:
        numels = [param.numel() for param in params]
        self.buffer = params[0].detach().new_zeros(sum(numels))  # (S)
        pieces = zip(params, self.buffer.split(numels), strict=True)  # (numel) each
        self.gradient_of = {param: piece.view_as(param) for param, piece in pieces}

    def take(self, param: nn.Parameter) -> None:
        """Move a `.grad` into the bucket, where it stays."""
        if param.grad is not None and param.grad is not self.gradient_of[param]:
            self.gradient_of[param].copy_(param.grad)
            param.grad = self.gradient_of[param]


Compressor = Callable[[GradBucket, dist.ProcessGroup], None]
"""Leaves in a bucket of local gradients what it makes of their mean over the group."""


# --- 1. plain: fewer bits for each element ---


def all_reduce(bucket: GradBucket, group: dist.ProcessGroup) -> None:
    """Send everything as it is."""
    bucket.buffer /= group.size()
    dist.all_reduce(bucket.buffer, group=group)  # (S)


def all_reduce_as(dtype: torch.dtype) -> Compressor:
    """Return what sends gradients in `dtype`, rounded, as each partial sum is."""

    def compress(bucket: GradBucket, group: dist.ProcessGroup) -> None:
        sent = bucket.buffer.to(dtype).div_(group.size())  # (S); float16 ends at 65504
        dist.all_reduce(sent, group=group)  # (S)
        bucket.buffer.copy_(sent)

    return compress


# --- 2. eight bits, which have a scale ---


def quantize(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return `x` as integers of 0 to 255, and what turns them back: scale and zero."""
    low, high = x.min().clamp(max=0.0), x.max().clamp(min=0.0)  # 0.0 has an integer
    scale = ((high - low) / 255).clamp(min=torch.finfo(torch.float32).eps)
    zero = -torch.round(low / scale).clamp(-255, 0)
    codes = torch.clamp(torch.round(x / scale) + zero, 0, 255).to(torch.uint8)
    return codes, torch.stack((scale, zero))  # (S) of 1 byte; (2)


def dequantize(codes: Tensor, scale_and_zero: Tensor) -> Tensor:
    """Return the numbers that the integers stand for."""
    scale, zero = scale_and_zero
    return torch.mul(codes.to(torch.float32) - zero, scale)  # (S)


def all_gather_uint8(bucket: GradBucket, group: dist.ProcessGroup) -> None:
    """Send one byte an element to everybody: what has two scales has no sum on the way.

    So a rank receives W - 1 buckets; of an all-reduce less than two, whatever W.
    """
    codes, scale_and_zero = quantize(bucket.buffer)  # (S), (2)
    scales = all_gather(scale_and_zero, group)  # W times (2)
    numbers = list(map(dequantize, all_gather(codes, group), scales))  # W times (S)
    bucket.buffer.copy_(torch.stack(numbers).mean(0))  # (S) of (W, S)


def all_gather(tensor: Tensor, group: dist.ProcessGroup) -> list[Tensor]:
    """Return every rank's tensor, in rank order."""
    everyone = [torch.empty_like(tensor) for _ in range(group.size())]
    dist.all_gather(everyone, tensor, group=group)  # W tensors of one shape
    return everyone


# --- 3. the largest elements, and error feedback ---


class TopK:
    """Sends the share of elements that are largest in size; the rest waits a step."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.error: Tensor | None = None  # (S), what this rank has not sent yet

    def __call__(self, bucket: GradBucket, group: dist.ProcessGroup) -> None:
        """Send (index, value) pairs: ranks choose other elements, so nothing adds up.

        What is kept back joins the next gradient, or it would never be trained.
        """
        if self.error is not None:
            bucket.buffer += self.error
        k = max(1, int(self.share * bucket.buffer.numel()))
        indices = bucket.buffer.abs().topk(k).indices  # (K)
        values = bucket.buffer[indices]  # (K)
        self.error = bucket.buffer.index_fill(0, indices, 0.0)  # (S)
        sent = zip(all_gather(indices, group), all_gather(values, group), strict=True)
        bucket.buffer.zero_()
        for theirs, numbers in sent:  # W times (K) of 8 bytes, (K) of 4
            bucket.buffer.index_add_(0, theirs, numbers, alpha=1 / group.size())


# --- 4. PowerSGD: two thin matrices, which do add up ---


def orthogonalize(matrix: Tensor) -> None:
    """Make the columns of `matrix` (N, R) orthonormal in place (Gram-Schmidt).

    A column that the earlier ones make up, but for rounding, becomes zeros.
    """
    rounding = 10 * torch.finfo(matrix.dtype).eps * matrix.norm(dim=0)  # (R)
    for i in range(matrix.size(1)):
        column, rest = matrix[:, i : i + 1], matrix[:, i + 1 :]  # (N, 1), (N, R-1-i)
        length = column.norm()
        column /= torch.where(length > rounding[i], length, torch.inf)
        rest -= (column * rest).sum(0, keepdim=True) * column


class PowerSGD:
    """Sends P = G Q and Q = G^T P of each matrix G, a power iteration over the steps.

    Both are linear in G: the ranks' P add up to the P of their summed gradient.
    """

    def __init__(self, rank: int = 1, *, start_iter: int = 2, seed: int = 0) -> None:
        if rank < 1:
            raise ValueError(f"a matrix P has at least 1 column, not {rank}")
        self.rank, self.start_iter = rank, start_iter
        self.random = torch.Generator().manual_seed(seed)  # the same on each rank
        self.iter = 0
        self.error: Tensor | None = None  # (S)
        self.qs: list[Tensor] = []  # each (M, R); the next step starts where one ended

    def __call__(self, bucket: GradBucket, group: dist.ProcessGroup) -> None:
        """Send the first steps' gradients whole, then thin."""
        self.iter += 1
        if self.iter <= self.start_iter:  # while gradients change the fastest
            all_reduce(bucket, group)
            return
        if self.error is not None:
            bucket.buffer += self.error
        before = bucket.buffer.clone()  # (S)
        gradients = bucket.gradient_of.values()
        matrices = [g.flatten(1) if g.dim() > 1 else g.view(-1, 1) for g in gradients]
        whole = [matrix for matrix in matrices if not self.is_worth_it(matrix)]
        for gradient, total in zip(whole, sum_together(whole, group), strict=True):
            gradient.copy_(total / group.size())  # (N, M)
        self.reduce_thin([m for m in matrices if self.is_worth_it(m)], group)
        self.error = before - bucket.buffer  # of this rank, from what all agreed on

    def is_worth_it(self, matrix: Tensor) -> bool:
        """Say whether P and Q together have less than half of its elements."""
        n, m = matrix.shape
        return (n + m) * min(n, m, self.rank) * 2 < n * m

    def reduce_thin(self, matrices: list[Tensor], group: dist.ProcessGroup) -> None:
        """Replace each matrix (N, M) by the product of the ranks' P and mean Q."""
        self.qs = self.qs or self.draw_qs(matrices)
        for q in self.qs:
            orthogonalize(q)
        ps = [matrix @ q for matrix, q in zip(matrices, self.qs, strict=True)]  # (N, R)
        ps = sum_together(ps, group)  # no mean: orthogonalizing takes the scale
        for p in ps:
            orthogonalize(p)
        qs = [matrix.T @ p for matrix, p in zip(matrices, ps, strict=True)]  # (M, R)
        self.qs = [q.div_(group.size()) for q in sum_together(qs, group)]  # (M, R)
        for matrix, p, q in zip(matrices, ps, self.qs, strict=True):
            torch.matmul(p, q.T, out=matrix)  # (N, M)

    def draw_qs(self, matrices: list[Tensor]) -> list[Tensor]:
        """Return where the power iteration of each starts, the same on each rank."""
        shapes = [(g.size(1), min(*g.shape, self.rank)) for g in matrices]  # (M, R)
        draws = [torch.randn(shape, generator=self.random) for shape in shapes]
        return [q.to(matrices[0]) for q in draws]


def sum_together(tensors: list[Tensor], group: dist.ProcessGroup) -> list[Tensor]:
    """Return the sums over the group, which take one call (none for no tensor)."""
    if not tensors:
        return []
    together = torch.cat([tensor.flatten() for tensor in tensors])  # (all elements)
    dist.all_reduce(together, group=group)  # (all elements)
    pieces = together.split([tensor.numel() for tensor in tensors])  # (numel) each
    return [p.view_as(tensor) for p, tensor in zip(pieces, tensors, strict=True)]


# --- 5. what calls a compressor: the end of each backward ---


class CompressedDataParallel(nn.Module):
    """Wraps `module`: after `backward()` each `.grad` is what the compressor left."""

    def __init__(
        self, module: nn.Module, group: dist.ProcessGroup, compress: Compressor
    ) -> None:
        super().__init__()
        self.module, self.group, self.compress = module, group, compress
        self.arrived: list[nn.Parameter] = []
        self.bucket: GradBucket | None = None
        for param in module.parameters():
            dist.broadcast(param.detach(), group_src=0, group=group)  # whole
            if param.requires_grad:
                param.register_post_accumulate_grad_hook(self._hook)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the wrapped module."""
        self.arrived.clear()  # of a backward that was cut short
        return self.module(*args, **kwargs)

    def _hook(self, param: nn.Parameter) -> None:
        if not self.arrived:
            Variable._execution_engine.queue_callback(self._finish)
        self.arrived.append(param)
        if self.bucket is not None:
            self.bucket.take(param)

    def _finish(self) -> None:
        arrived, self.arrived = self.arrived, []
        if self.bucket is None:  # in the order in which the first gradients arrived
            self.bucket = GradBucket(arrived)
            for param in arrived:
                self.bucket.take(param)
        if missing := len(self.bucket.gradient_of) - len(arrived):
            raise RuntimeError(f"{missing} parameters had no gradient this time")
        with torch.no_grad():
            self.compress(self.bucket, self.group)


if __name__ == "__main__":
    from mini_impls.demos.compression import main

    raise SystemExit(main())
