"""Fully sharded data parallelism: each rank keeps a slice of the rows of every tensor.

A module that is named forms a group, whose parameters travel together:

    forward    gather | run | free
    backward   gather | run | free, reduce-scatter the gradients

First just so, by hooks of the module; then each gather starts while the group before
it runs.

Follows:
- pytorch/pytorch: torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py
- pytorch/pytorch: torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py
- pytorch/pytorch: torch/distributed/fsdp/_fully_shard/_fsdp_state.py

Leaves out:
- how one parameter is cut and filled: `fsdp_param.py`
- which parameters form a group, and what else a training asks for: `fsdp_options.py`
- streams of its own: a collective is started early and waited for late instead
- a reduce-scatter that goes on from one backward into the next (`is_last_backward`)
- parameters that only some ranks use: what the ranks send would not belong together
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Function, Variable

from mini_impls.fsdp_param import FSDPParam

# Letters: W world size, S elements of all shards of a group, padded to equal sizes.

# --- 1. gather, run, free, scatter ---


class FSDPParamGroup:
    """The parameters of one module, gathered by one call and reduced by one."""

    def __init__(
        self, fsdp_params: list[FSDPParam], state: "FSDPState", reshard: bool
    ) -> None:
        self.fsdp_params, self.state = fsdp_params, state
        self.reshard_after_forward = reshard
        self.is_unsharded = self.is_post_backward = False
        self._all_gather_result: tuple[Tensor, dist.Work | None] | None = None
        self._gathered_version = 0

    def pre_forward(self, module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Gather, and mark where backward will end."""
        self.unshard()
        self.wait_for_unshard()
        needs_grad = [isinstance(arg, Tensor) and arg.requires_grad for arg in args]
        if torch.is_grad_enabled() and any(needs_grad):
            mark = RegisterPostBackwardFunction.apply
            args = mark(self, *args)  # type: ignore[no-untyped-call]
        return args

    def post_forward(self, module: nn.Module, args: Any, output: Tensor) -> None:
        """Free, and mark where backward will begin."""
        # A checkpoint that runs forward again within backward needs them next.
        if not is_bw() and (self.reshard_after_forward or not torch.is_grad_enabled()):
            self.reshard()
        if output.requires_grad:
            output.register_hook(self.pre_backward)

    def pre_backward(self, grad: Tensor) -> None:
        """Gather again."""
        self.state.queue_root_post_backward()
        self.is_post_backward = False
        self.unshard()
        self.wait_for_unshard()

    def post_backward(self) -> None:
        """Take the gradients, free the parameters, start the reduce-scatter."""
        self.is_post_backward = True
        for fsdp_param in self.fsdp_params:
            fsdp_param.accumulate_unsharded_grad()
        self.reshard()
        if self.state.reduce_grads:
            self.state.start_reduce_scatter(self.fsdp_params)

    def finish_backward(self) -> None:
        """Do what no hook did: be ready for the next forward."""
        # Where no input needs a gradient, as for the root's tokens, no mark is set.
        if not self.is_post_backward:
            self.post_backward()
        self.is_post_backward = False
        self.wait_for_unshard()  # gathered ahead and not used: stale after a step
        self.reshard()

    def unshard(self) -> None:
        """Start the all-gather, unless it is under way or done."""
        # Every write to a shard, such as an optimizer's, raises its version.
        version = sum(p._sharded_param_data._version for p in self.fsdp_params)
        if self._all_gather_result is not None or self.is_unsharded:
            if version == self._gathered_version:
                return
            self.wait_for_unshard()  # kept without a backward, and now stale
        self._gathered_version = version
        group, work = self.state.group, None
        inputs = [fsdp_param.all_gather_input() for fsdp_param in self.fsdp_params]
        output = all_gather_input = torch.cat(inputs)  # (S)
        if group.size() > 1:
            output = output.new_empty(group.size() * len(all_gather_input))  # (W S)
            work = dist.all_gather_single(
                output, all_gather_input, group=group, async_op=True
            )  # (S) to (W S)
        self._all_gather_result = (output, work)

    def wait_for_unshard(self) -> None:
        """Wait, and deal the columns of (W, S) out to the parameters."""
        if self._all_gather_result is None:
            return
        output, work = self._all_gather_result
        self._all_gather_result = None
        if work is not None:
            work.wait()
        sizes = [p.padded_sharded_size.numel() for p in self.fsdp_params]
        pieces = output.view(self.state.group.size(), -1).split(sizes, dim=1)
        for fsdp_param, piece in zip(self.fsdp_params, pieces, strict=True):
            fsdp_param.to_unsharded(piece)  # (W, C ...)
        self.is_unsharded = True

    def reshard(self) -> None:
        """Free the whole parameters."""
        for fsdp_param in self.fsdp_params:
            fsdp_param.to_sharded()
        self.is_unsharded = False


class RegisterPostBackwardFunction(Function):
    """Identity on a module's inputs, whose backward runs when the module's is over."""

    @staticmethod
    def forward(ctx: Any, param_group: FSDPParamGroup, *inputs: Any) -> tuple[Any, ...]:
        """Pass the inputs on."""
        ctx.param_group = param_group
        return inputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        """Pass the gradients on."""
        ctx.param_group.post_backward()
        return (None, *grads)


def is_bw() -> bool:
    """Say whether autograd is running a backward in this thread."""
    return torch._C._current_graph_task_id() != -1


# --- 2. the same, each gather ahead of time ---
#
#   forward    gather 0 | run 0, gather 1 | run 1, gather 2 | ...
#   backward   ... | run 1, gather 0 | run 0, reduce-scatter 1 | reduce-scatter 0


class PrefetchingParamGroup(FSDPParamGroup):
    """Starts on the group that is next: by name in forward, then in reverse order."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.next_group: FSDPParamGroup | None = None
        self._post_forward_indices: list[int] = []

    def pre_forward(self, module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Gather, and start on the group after this one."""
        args = super().pre_forward(module, args)
        if self.next_group is not None and not is_bw():
            self.next_group.unshard()
        return args

    def post_forward(self, module: nn.Module, args: Any, output: Tensor) -> None:
        """Free, and note when this group ran: it may do so more than once."""
        super().post_forward(module, args, output)
        if output.requires_grad and not is_bw():
            self._post_forward_indices.append(len(self.state.post_forward_order))
            self.state.post_forward_order.append(self)

    def pre_backward(self, grad: Tensor) -> None:
        """Gather, and start on the group that ran before this one."""
        super().pre_backward(grad)
        # A second backward through one forward finds the order forgotten.
        index = self._post_forward_indices.pop() if self._post_forward_indices else 0
        if index > 0:
            self.state.post_forward_order[index - 1].unshard()

    def finish_backward(self) -> None:
        """Forget the order as well."""
        super().finish_backward()
        self._post_forward_indices.clear()


# --- 3. the whole model: what the groups share ---


class FSDPState:
    """The order of the step, and the reduce-scatter under way."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        self.group = group
        self.reduce_grads = True
        self.param_groups: dict[str, FSDPParamGroup] = {}
        """By module name, in the order of forward."""
        self.post_forward_order: list[FSDPParamGroup] = []
        self._reduce_scatter: tuple[Any, ...] | None = None
        self._callback_queued = False

    def start_reduce_scatter(self, fsdp_params: list[FSDPParam]) -> None:
        """Send row r of the gradients, (W, all shards) laid flat, to rank r."""
        world_size = self.group.size()
        pieces = [(p, p.reduce_scatter_input(world_size)) for p in fsdp_params]
        grads = {p: piece for p, piece in pieces if piece is not None}  # (W, C ...)
        if not grads:
            return
        output = packed = torch.cat(list(grads.values()), dim=1).view(-1)  # (W S)
        # One at a time: the input, a whole group's gradients, must live until its end.
        self.finish_reduce_scatter()
        work = None
        if world_size > 1:
            output = packed.new_empty(len(packed) // world_size)  # (S)
            op = dist.ReduceOp.AVG
            work = dist.reduce_scatter_single(
                output, packed, op=op, group=self.group, async_op=True
            )  # (W S) to (S)
        self._reduce_scatter = (list(grads), packed, output, work)

    def finish_reduce_scatter(self) -> None:
        """Wait, and add what arrived to the gradients of the shards."""
        if self._reduce_scatter is None:
            return
        fsdp_params, _, output, work = self._reduce_scatter
        self._reduce_scatter = None
        if work is not None:
            work.wait()
        sizes = [p.padded_sharded_size.numel() for p in fsdp_params]
        for fsdp_param, piece in zip(fsdp_params, output.split(sizes), strict=True):
            fsdp_param.add_sharded_grad(piece)  # (C ...)

    def queue_root_post_backward(self) -> None:
        """Have autograd call `_root_post_backward` at the end of this backward."""
        if not self._callback_queued:
            self._callback_queued = True
            Variable._execution_engine.queue_callback(self._root_post_backward)

    def _root_post_backward(self) -> None:
        self._callback_queued = False
        for param_group in self.param_groups.values():
            param_group.finish_backward()
        self.finish_reduce_scatter()
        self.post_forward_order.clear()


if __name__ == "__main__":
    from mini_impls.demos.fsdp import main

    raise SystemExit(main())
