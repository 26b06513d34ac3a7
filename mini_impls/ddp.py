"""Data parallelism: every rank trains a whole copy on its own rows of the batch.

First the plain way, one all-reduce a parameter once backward is over. Then buckets: a
hook on every gradient starts the all-reduce of its bucket as soon as the bucket is
full, while backward goes on computing the gradients of earlier layers.

Follows:
- NVIDIA/Megatron-LM: megatron/core/distributed/distributed_data_parallel.py
- NVIDIA/Megatron-LM: megatron/core/distributed/param_and_grad_buffer.py
- pytorch/pytorch: torch/nn/parallel/distributed.py (whose hooks live in C++)

Leaves out:
- a distributed optimizer on top of the buckets: `zero.py`
- rebuilding buckets in the order in which gradients were seen to arrive
- buffers broadcast again before every forward, hooks that compress, sparse gradients
- checkpoints with `use_reentrant=True`, each a backward of its own within backward
- ranks whose shapes differ, or that have fewer batches (`Join`): this one hangs
"""

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Variable

MIB = 1024 * 1024

# --- 1. plain: all ranks start equal, and average each gradient after backward ---


def broadcast_params(module: nn.Module, group: dist.ProcessGroup) -> None:
    """Give every rank the parameters and buffers of the group's rank 0."""
    for tensor in chain(module.parameters(), module.buffers()):
        dist.broadcast(tensor.detach(), group_src=0, group=group)  # as it is


def all_reduce_gradients(module: nn.Module, group: dist.ProcessGroup) -> None:
    """Replace each gradient by its mean; ranks must have used the same parameters.

    One that lacks a gradient skips a call, and all calls after it are paired wrongly.
    """
    for param in module.parameters():
        if param.grad is not None:
            param.grad /= group.size()  # whole, in the parameter's own shape
            dist.all_reduce(param.grad, group=group)  # whole


# --- 2. bucket the gradients ---


class ParamAndGradBucket:
    """Some parameters and one tensor that holds all of their gradients."""

    def __init__(
        self, params: Sequence[nn.Parameter], gradient_scaling_factor: float
    ) -> None:
        self.params = list(params)
        numels = [param.numel() for param in params]
        self.grad_data = params[0].detach().new_zeros(sum(numels))  # (sum of numels)
        pieces = self.grad_data.split(numels)  # one (numel) for each parameter
        pairs = zip(params, pieces, strict=True)
        # Each gradient is a view: once it is written, it is in place to be sent.
        self.main_grad = {param: piece.view_as(param) for param, piece in pairs}
        self.gradient_scaling_factor = gradient_scaling_factor
        self.params_ready: set[nn.Parameter] = set()
        self.grad_reduce_handle: dist.Work | None = None

    def register_grad_ready(self, param: nn.Parameter) -> None:
        """Move the gradient into the bucket, where `.grad` stays."""
        if param.grad is not None and param.grad is not self.main_grad[param]:
            self.main_grad[param].copy_(param.grad)
            param.grad = self.main_grad[param]
        self.params_ready.add(param)

    def start_grad_sync(self, group: dist.ProcessGroup) -> None:
        """Start the sum; dividing first keeps its terms as small as a mean."""
        self.grad_data *= self.gradient_scaling_factor
        self.grad_reduce_handle = dist.all_reduce(
            self.grad_data, group=group, async_op=True
        )  # (sum of numels)

    def finish_grad_sync(self) -> None:
        """Wait for the sum."""
        assert self.grad_reduce_handle is not None
        self.grad_reduce_handle.wait()
        self.grad_reduce_handle = None
        self.params_ready.clear()


def assign_buckets(
    params: Sequence[nn.Parameter], *, first_bucket_bytes: int, bucket_bytes: int
) -> list[list[nn.Parameter]]:
    """Return the parameters in buckets, in the order in which they will be full.

    Backward runs from the last layer to the first, so the last parameters come first.
    A bucket closes once it has reached its size; the first is small so that the first
    all-reduce starts early. One bucket holds one dtype.
    """
    buckets: list[list[nn.Parameter]] = []
    filling: dict[torch.dtype, list[nn.Parameter]] = {}
    for param in reversed(params):
        bucket = [*filling.pop(param.dtype, []), param]
        limit = bucket_bytes if buckets else first_bucket_bytes
        if sum(p.nbytes for p in bucket) >= limit:
            buckets.append(bucket)
        else:
            filling[param.dtype] = bucket  # last of those that are not full
    return [*buckets, *filling.values()]


# --- 3. overlapped: all-reduce from the hooks of backward ---
#
#   backward    layer 2 | layer 1      | layer 0      | end
#   bucket 0            | all-reduce --------|        | wait
#   bucket 1                           | all-reduce --------| wait


class DistributedDataParallel(nn.Module):
    """Wraps `module`: after `backward()` every `.grad` is the mean over the group."""

    def __init__(
        self,
        module: nn.Module,
        group: dist.ProcessGroup,
        *,
        bucket_cap_mb: float = 25.0,
        first_bucket_mb: float = 1.0,
        find_unused_parameters: bool = False,
    ) -> None:
        super().__init__()
        self.module, self.group = module, group
        self.find_unused_parameters = find_unused_parameters
        self.is_last_microbatch = True
        # A tied weight comes once; a frozen one has nothing to send.
        named = module.named_parameters()
        self.param_to_name = {p: name for name, p in named if p.requires_grad}
        if not self.param_to_name:
            raise ValueError("0 of the module's parameters require a gradient")
        buckets = assign_buckets(
            list(self.param_to_name),
            first_bucket_bytes=int(min(first_bucket_mb, bucket_cap_mb) * MIB),
            bucket_bytes=int(bucket_cap_mb * MIB),
        )
        self.buckets = [ParamAndGradBucket(b, 1.0 / group.size()) for b in buckets]
        self.num_params_ready = self.next_bucket = 0
        broadcast_params(module, group)
        for bucket in self.buckets:
            hook = self._make_backward_post_hook(bucket)
            for param in bucket.params:
                param.register_post_accumulate_grad_hook(hook)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the wrapped module."""
        if torch.is_grad_enabled() and self.num_params_ready:
            # Nothing would tell the next backward when it is over.
            raise RuntimeError(
                f"an earlier backward was cut short, with {self.num_params_ready} "
                f"gradients ready and {self.next_bucket} of {len(self.buckets)} "
                "buckets sent: mend what it raised, and wrap the module again"
            )
        return self.module(*args, **kwargs)

    def _make_backward_post_hook(
        self, bucket: ParamAndGradBucket
    ) -> Callable[[Tensor], None]:
        """Return what autograd calls each time a gradient has been added to `.grad`."""

        def hook(param: Tensor) -> None:
            if not self.is_last_microbatch:
                return
            if self.num_params_ready == 0:  # the first of this backward
                Variable._execution_engine.queue_callback(self.finish_grad_sync)
            self.num_params_ready += 1
            assert isinstance(param, nn.Parameter)
            if param in bucket.params_ready:
                raise RuntimeError(
                    f"{self.param_to_name[param]} was ready already: an earlier "
                    "backward was cut short, or this one has come by twice"
                )
            bucket.register_grad_ready(param)
            self.start_grad_sync()

        return hook

    def start_grad_sync(self) -> None:
        """Send the buckets that are full, in bucket order.

        Gradients may arrive in another order on another rank. Collectives have no
        names: the n-th call here meets the n-th call there, so the order is fixed.
        """
        while self.next_bucket < len(self.buckets):
            bucket = self.buckets[self.next_bucket]
            if len(bucket.params_ready) < len(bucket.params):
                return
            bucket.start_grad_sync(self.group)
            self.next_bucket += 1

    def finish_grad_sync(self) -> None:
        """Send what is left and wait for all; autograd calls this after backward."""
        unused = self._find_unused()
        self.start_grad_sync()
        if self.find_unused_parameters:
            used_anywhere = self._all_reduce_used_map(unused)
        for bucket in self.buckets:
            bucket.finish_grad_sync()
        for param, mean in unused.items():
            param.grad = mean if used_anywhere[param] else None
        self.num_params_ready = self.next_bucket = 0

    # --- 4. unused parameters ---

    def _find_unused(self) -> dict[nn.Parameter, Tensor]:
        """Fill the buckets up; return where the unused parameters find their mean."""
        buckets = self.buckets
        late = [(b, p) for b in buckets for p in b.params if p not in b.params_ready]
        unused = {p: bucket.main_grad[p] for bucket, p in late if p.grad is None}
        if unused and not self.find_unused_parameters:
            names = ", ".join(self.param_to_name[param] for param in unused)
            raise RuntimeError(
                f"{len(unused)} of {len(self.param_to_name)} parameters had no "
                f"gradient: {names}; pass find_unused_parameters=True"
            )
        for grad in unused.values():
            grad.zero_()
        for bucket, param in late:
            bucket.register_grad_ready(param)
        return unused

    def _all_reduce_used_map(self, unused: Container[Tensor]) -> dict[Tensor, int]:
        """Return how many ranks used each parameter.

        Without a gradient here, a parameter gets the mean of the others; without one
        anywhere, it keeps none, so that the optimizer leaves it alone. Every rank
        sends its map, and after all its buckets: elsewhere they may have left already.
        """
        used = [param not in unused for param in self.param_to_name]
        used_map = self.buckets[0].grad_data.new_tensor(used, dtype=torch.int32)
        dist.all_reduce(used_map, group=self.group)  # (parameters)
        return dict(zip(self.param_to_name, used_map.tolist(), strict=True))

    # --- 5. gradient accumulation ---

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Let gradients add up locally; the first backward outside sends their sum."""
        self.is_last_microbatch = False
        try:
            yield
        finally:
            self.is_last_microbatch = True


if __name__ == "__main__":
    from mini_impls.demos.ddp import main

    raise SystemExit(main())
