"""One parameter of `fsdp.py`: its shard, and all of it while its group is gathered.

The shard is what the model shows and the optimizer updates. The whole comes and goes,
perhaps in another dtype, and its gradient is reduced in a third one.

Follows:
- pytorch/pytorch: torch/distributed/fsdp/_fully_shard/_fsdp_param.py

Leaves out:
- DTensor, meshes of two dimensions, offload, dimensions other than the first
- the scaling that fp16 gradients need
"""

from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn

# Letters: W world size, R rows of a parameter (its first dimension), C = ceil(R/W).


class Owner(NamedTuple):
    """A place in the model that holds a parameter; a tied one has several."""

    module: nn.Module
    attribute: str
    fqn: str


class FSDPParam:
    """Rows [rank C, (rank+1) C) of a parameter; the last ranks may have fewer."""

    def __init__(
        self,
        param: nn.Parameter,
        owners: list[Owner],
        group: dist.ProcessGroup,
        compute_dtype: torch.dtype | None = None,
        reduce_dtype: torch.dtype | None = None,
    ) -> None:
        if param.dim() == 0:
            raise ValueError(f"{owners[0].fqn} has 0 dimensions; sharding needs 1")
        self.owners = owners
        self.orig_size = param.size()  # (R, ...)
        self.compute_dtype = compute_dtype or param.dtype
        self.reduce_dtype = reduce_dtype
        rank, world_size = group.rank(), group.size()
        rows = -(-param.size(0) // world_size)
        self.padded_sharded_size = torch.Size([rows, *param.shape[1:]])  # (C, ...)
        mine = param.detach()[rank * rows : (rank + 1) * rows]  # (C or fewer, ...)
        # Zeros up to C rows: all ranks must send equally much.
        padded = param.new_zeros(self.padded_sharded_size, requires_grad=False)
        padded[: len(mine)] = mine  # (C or fewer, ...) of (C, ...)
        self._sharded_param_data = padded.view(-1)  # (C ...)
        self.sharded_param = nn.Parameter(padded[: len(mine)], param.requires_grad)
        self.all_gather_output = torch.empty(
            padded.numel() * world_size, dtype=self.compute_dtype, device=param.device
        )  # (W C ...)
        whole = self.all_gather_output.data.view(-1, *param.shape[1:])  # (W C, ...)
        self.unsharded_param = nn.Parameter(whole[: len(param)], param.requires_grad)
        self.unsharded_accumulated_grad: Tensor | None = None
        self.to_sharded()

    # --- 1. the parameter: gathered, freed ---

    def all_gather_input(self) -> Tensor:
        """Return what this rank sends, (C ...): the master rows, cast to compute."""
        return self._sharded_param_data.to(self.compute_dtype)

    def to_unsharded(self, gathered: Tensor) -> None:
        """Fill the whole parameter from (W, C ...) and let the model see it."""
        self.all_gather_output.untyped_storage().resize_(self.all_gather_output.nbytes)
        self.all_gather_output.view(gathered.shape).copy_(gathered)  # (W, C ...)
        # The shard is what the model shows between steps, and what one may freeze.
        self.unsharded_param.requires_grad_(self.sharded_param.requires_grad)
        for owner in self.owners:
            setattr(owner.module, owner.attribute, self.unsharded_param)

    def to_sharded(self) -> None:
        """Let the model see the shard, and free the whole.

        The tensor stays and its memory goes: what autograd saved in forward refers to
        this memory, and finds it filled again in backward.
        """
        for owner in self.owners:
            setattr(owner.module, owner.attribute, self.sharded_param)
        self.all_gather_output.untyped_storage().resize_(0)

    # --- 2. the gradient: whole, then a shard ---

    def accumulate_unsharded_grad(self) -> None:
        """Take what backward made, (R, ...), and add it in the dtype to be reduced."""
        grad, self.unsharded_param.grad = self.unsharded_param.grad, None
        if grad is not None:
            grad = grad.to(self.reduce_dtype or grad.dtype)
            if self.unsharded_accumulated_grad is not None:
                grad += self.unsharded_accumulated_grad
            self.unsharded_accumulated_grad = grad

    def reduce_scatter_input(self, world_size: int) -> Tensor | None:
        """Return the gradient with rows added, (W, C ...), if there is one."""
        grad, self.unsharded_accumulated_grad = self.unsharded_accumulated_grad, None
        if grad is None:
            return None
        rows = world_size * self.padded_sharded_size[0]
        padded = grad.new_zeros(rows, *grad.shape[1:])  # (W C, ...)
        padded[: len(grad)] = grad  # (R, ...) of (W C, ...)
        return padded.view(world_size, -1)  # (W, C ...)

    def add_sharded_grad(self, reduced: Tensor) -> None:
        """Add what the reduce-scatter brought, (C ...), to the shard's gradient."""
        shard = self.sharded_param
        grad = reduced.view(self.padded_sharded_size)[: len(shard)]  # (C or fewer, ...)
        grad = grad.to(shard.dtype)
        shard.grad = grad if shard.grad is None else shard.grad + grad

    # --- 3. outside of a step ---

    def full(self, group: dist.ProcessGroup) -> Tensor:
        """Gather the whole parameter, (R, ...), from the master shards."""
        data = self._sharded_param_data
        output = data.new_empty(group.size() * data.numel())  # (W C ...)
        dist.all_gather_single(output, data, group=group)  # (C ...) to (W C ...)
        output = output.view(-1, *self.orig_size[1:])  # (W C, ...)
        return output[: self.orig_size[0]]  # (R, ...)
