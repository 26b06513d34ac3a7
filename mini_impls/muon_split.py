"""Muon where tensor parallelism has cut the matrices, and where one holds several.

A rank has some rows or some columns of a matrix. Three modes, from cheap to exact:

    blockwise      orthogonalize the part as if it were a matrix; nothing is sent
    duplicated     gather the matrix, orthogonalize it on all ranks, keep the part
    distributed    leave the parts; add up one Gram matrix in each step

And `linear_qkv` is three matrices in one parameter, group by group of heads.

Follows:
- NVIDIA/Megatron-LM: megatron/core/optimizer/muon.py (`TensorParallelMuon`)

Leaves out:
- experts, whose tensor-parallel group is another one
- coefficients that change from step to step, products of float32 in fewer bits
- data parallelism around it: `muon.py`
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn

from mini_impls.muon import DEFAULT_NS, Muon

# Letters: M x N a matrix, W ranks of the group, D hidden size, G query groups of this
# rank, H the width of a head, P heads of queries in a group.

Mode = Literal["blockwise", "duplicated", "distributed"]


# --- 1. the Gram matrix of what is cut is a sum over the ranks ---


def newton_schulz(
    x: Tensor, steps: int = 5, tp_group: dist.ProcessGroup | None = None
) -> Tensor:
    """Return `x` with singular values near one, in its own dtype.

    With a group, `x` (M, N/W) is this rank's columns of a matrix.
    """
    a, b, c = DEFAULT_NS
    squared = x.square().sum()
    if tp_group is not None:
        dist.all_reduce(squared, group=tp_group)  # ()
    x = x / squared.sqrt().clamp(min=1e-7)
    for _ in range(steps):
        gram = x @ x.T  # (M, M), a part of the sum
        if tp_group is not None:
            dist.all_reduce(gram, group=tp_group)  # (M, M)
        gram_update = torch.addmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.addmm(x, gram_update, x, beta=a)
    return x


# --- 2. the part of a matrix ---


def newton_schulz_tp(
    x: Tensor,
    tp_group: dist.ProcessGroup | None,
    partition_dim: int | None,
    mode: Mode,
    steps: int = 5,
) -> Tensor:
    """Return this rank's part of the orthogonalized matrix.

    `partition_dim` is the dimension that is cut, None where none is.
    """
    if tp_group is None or partition_dim is None:
        is_tall = x.size(0) > x.size(1)
        return newton_schulz(x.T, steps).T if is_tall else newton_schulz(x, steps)
    if mode == "distributed":
        # What is cut has to be the side that the products sum over, tall or not.
        part = x.T if partition_dim == 0 else x  # (N, M/W) or (M, N/W)
        part = newton_schulz(part, steps, tp_group)
        return part.T if partition_dim == 0 else part  # (M/W, N) or (M, N/W)
    parts = [torch.empty_like(x) for _ in range(tp_group.size())]
    dist.all_gather(parts, x.contiguous(), group=tp_group)  # to (M, N), in parts
    whole = torch.cat(parts, partition_dim)  # (M, N)
    whole = newton_schulz_tp(whole, None, None, mode, steps)
    return whole.chunk(tp_group.size(), partition_dim)[tp_group.rank()]  # 1/W, as x


def get_muon_scale_factor(size_out: int, size_in: int) -> float:
    """Return what brings the update of (M, N) to entries of one size for all shapes."""
    return float(max(size_out, size_in) ** 0.5)


# --- 3. the optimizer ---


class TensorParallelMuon(Muon):
    """Muon on parts of matrices; `partition_dims` says of each which side was cut.

    `qkv` are parameters of rows [queries | key | value], for each group of heads;
    `qkv_split_shapes` are the rows of the three in a group.
    """

    def __init__(
        self,
        params: Iterable[nn.Parameter],
        tp_group: dist.ProcessGroup | None = None,
        partition_dims: Mapping[nn.Parameter, int] | None = None,
        *,
        mode: Mode = "blockwise",
        qkv: Iterable[nn.Parameter] = (),
        qkv_split_shapes: tuple[int, int, int] = (0, 0, 0),
        **defaults: Any,
    ) -> None:
        super().__init__(params, **defaults)
        self.tp_group, self.partition_dims = tp_group, partition_dims or {}
        self.mode: Mode = mode
        self.qkv, self.qkv_split_shapes = set(qkv), qkv_split_shapes

    def scaled_orthogonalize_fn(
        self,
        grad: Tensor,
        tp_group: dist.ProcessGroup | None,
        partition_dim: int | None,
    ) -> Tensor:
        """Return the update of one matrix, scaled by the size it has when whole."""
        size = [grad.size(0), grad.size(1)]
        if tp_group is not None and partition_dim is not None:
            size[partition_dim] *= tp_group.size()
        update = newton_schulz_tp(grad, tp_group, partition_dim, self.mode)
        return update * get_muon_scale_factor(size[0], size[1])

    def orthogonalize(self, p: nn.Parameter, grad: Tensor) -> Tensor:
        """Return the update of `p`: of query, key and value each by itself."""
        partition_dim = self.partition_dims.get(p)
        if self.mode == "blockwise":
            partition_dim = None  # a part is a matrix, and as large as it is
        if p not in self.qkv:
            return self.scaled_orthogonalize_fn(grad, self.tp_group, partition_dim)

        def each(part: Tensor) -> Tensor:
            return self.scaled_orthogonalize_fn(part, self.tp_group, partition_dim)

        return split_qkv(grad, self.qkv_split_shapes, each)

    def get_shape(self, p: nn.Parameter) -> torch.Size:
        """Return a square: what the shape does to the rate is done above."""
        return torch.Size([1, 1])


def split_qkv(
    grad: Tensor, shapes: tuple[int, int, int], each: Callable[[Tensor], Tensor]
) -> Tensor:
    """Return `each` of all queries, all keys and all values, where they were.

    Shapes: grad (G (P + 2) H, D); the three are (G P H, D), (G H, D), (G H, D).
    """
    groups, width = grad.size(0) // sum(shapes), grad.size(1)
    parts = grad.view(groups, sum(shapes), width).split(shapes, dim=1)  # (G, P H, D) ..
    updates = [
        each(part.reshape(-1, width)).view(groups, -1, width)  # (G P H, D) and back
        for part in parts
    ]
    return torch.cat(updates, dim=1).view(grad.shape)  # (G (P + 2) H, D)
