"""The first FSDP: all parameters of a module in one flat tensor, cut without regard.

What `fsdp_flat_param.py` flattens, cuts and gathers is here gathered and freed around
each module, its gradient reduced behind backward:

    forward    gather | run | free
    backward   gather | run, gather of the module before | free, reduce-scatter

Autograd fills one flat gradient, and one reduce-scatter sends it.

Follows:
- pytorch/pytorch: torch/distributed/fsdp/_runtime_utils.py

Leaves out:
- sharding strategies other than this one, forward prefetch
- streams of its own: a collective is started early and waited for late instead
- modules that return anything but one tensor
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Variable
from torch.autograd.graph import register_multi_grad_hook

from mini_impls.fsdp_flat_param import (
    FlatParamHandle,
    ParamInfo,
    check_names,
    find_param_infos,
)

# Letters: W world size, N elements of a module's parameters, P = N padded to W.

# --- 1. gather, run, free, scatter ---


class FlatModule(FlatParamHandle):
    """One module, its flat parameter, and what happens before and after it runs."""

    def __init__(
        self, module: nn.Module, infos: list[ParamInfo], state: "FlatState"
    ) -> None:
        super().__init__(infos, state.group)
        self.state = state
        module.register_parameter("_flat_param", self.flat_param)
        if self.flat_param.requires_grad:
            self.flat_param.register_post_accumulate_grad_hook(self.post_backward)
        module.register_forward_pre_hook(self.pre_forward)
        module.register_forward_hook(self.post_forward)
        self._in_backward = False
        self.forget_order()

    def pre_forward(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """Gather, and give the module its weights."""
        self.state.check_no_backward_was_cut_short()
        self.unshard()
        self.wait_for_unshard()
        self.use_unsharded_views()
        if self.flat_param.requires_grad or not torch.is_grad_enabled():
            return
        # No gradient of a frozen one tells when backward is done with it: its inputs'.
        inputs = [a for a in args if isinstance(a, Tensor) and a.requires_grad]
        if inputs:
            register_multi_grad_hook(inputs, lambda grads: self.reshard())

    def post_forward(self, module: nn.Module, args: Any, output: Tensor) -> None:
        """Free, unless this is the root, which backward needs first."""
        if self._in_backward:
            return  # a checkpoint runs forward again, and needs the rest of backward
        if self is not self.state.root or not torch.is_grad_enabled():
            self.reshard()
        if output.requires_grad:
            self.note_order()
            output.register_hook(self.pre_backward)

    def pre_backward(self, grad: Tensor) -> None:
        """Gather again, and start on the module that ran before this one."""
        self.state.queue_post_backward_final_callback()
        self._in_backward = True
        self.unshard()
        self.wait_for_unshard()
        self.prepare_gradient_for_backward()
        self.prefetch()

    def post_backward(self, flat_param: Tensor) -> None:
        """Take the whole gradient, (N), free the parameter, start to reduce."""
        self._in_backward = False
        self.reshard()
        if not self.state.sync_gradients:
            return  # `.grad` stays whole, and the next microbatch adds to it
        assert flat_param.grad is not None
        unsharded_grad, flat_param.grad = flat_param.grad, None
        self.state.finish_reduce_grad()
        self.state.start_reduce_grad(self, unsharded_grad)

    # --- 2. in backward, each gather ahead of time ---

    def forget_order(self) -> None:
        """Be ready for the next forward."""
        self._post_forward_index: int | None = None
        self._needs_pre_backward_unshard = False

    def note_order(self) -> None:
        """Note when this module ran, and that backward will need it."""
        self._post_forward_index = len(self.state.exec_order)
        self.state.exec_order.append(self)
        self._needs_pre_backward_unshard = True

    def prefetch(self) -> None:
        """Start to gather what ran before this one, unless backward was there."""
        self._needs_pre_backward_unshard = False
        if self._post_forward_index:
            target = self.state.exec_order[self._post_forward_index - 1]
            if target._needs_pre_backward_unshard:
                target.unshard()


# --- 3. what the modules share ---


class FlatState:
    """What the handles share: their order, and the reduce-scatter under way."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        self.group = group
        self.handles: dict[str, FlatModule] = {}
        self.root: FlatModule | None = None
        self.exec_order: list[FlatModule] = []
        self._reduce: tuple[FlatParamHandle, Tensor, Tensor, dist.Work] | None = None
        self._post_backward_callback_queued = False
        self.sync_gradients = True
        # Divide by about the root of W before the sum and by the rest after it, so
        # that neither the terms nor the sum leave the range of a small dtype.
        world_size, factor = group.size(), 1
        while world_size % factor == 0 and world_size / factor > factor:
            factor *= 2
        self.gradient_predivide_factor = factor
        self.gradient_postdivide_factor = world_size / factor

    def start_reduce_grad(
        self, handle: FlatParamHandle, unsharded_grad: Tensor
    ) -> None:
        """Pad the gradient to (P) and send each rank its (P/W)."""
        padded = handle.pad(unsharded_grad)  # (P)
        padded /= self.gradient_predivide_factor
        new_sharded_grad = padded.new_empty(handle.sharded_size)  # (P/W)
        work = dist.reduce_scatter_single(
            new_sharded_grad, padded, group=self.group, async_op=True
        )  # (P) to (P/W)
        assert work is not None
        self._reduce = (handle, padded, new_sharded_grad, work)

    def finish_reduce_grad(self) -> None:
        """Wait for the reduce-scatter under way, if there is one."""
        if self._reduce is not None:
            handle, _, new_sharded_grad, work = self._reduce
            self._reduce = None
            work.wait()
            new_sharded_grad /= self.gradient_postdivide_factor
            handle.accumulate_sharded_grad(new_sharded_grad)

    def check_no_backward_was_cut_short(self) -> None:
        """Raise where a backward has begun, is not running, and has not ended."""
        is_running = torch._C._current_graph_task_id() != -1
        if self._post_backward_callback_queued and not is_running:
            raise RuntimeError(
                "an earlier backward was cut short, with parameters gathered and "
                "gradients not sent: mend what it raised, and shard a new model"
            )

    def queue_post_backward_final_callback(self) -> None:
        """Have autograd call `_post_backward_final_callback` when backward is over."""
        if not self._post_backward_callback_queued:
            self._post_backward_callback_queued = True
            Variable._execution_engine.queue_callback(
                self._post_backward_final_callback
            )

    def _post_backward_final_callback(self) -> None:
        self._post_backward_callback_queued = False
        self.finish_reduce_grad()
        self.exec_order.clear()
        for handle in self.handles.values():
            handle.wait_for_unshard()  # gathered ahead and not used: stale after a step
            handle.reshard()
            if self.sync_gradients:
                handle.prepare_gradient_for_optim()
            handle.forget_order()
            handle._in_backward = False

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Let gradients add up whole on each rank; the next backward sends their sum.

        Saves messages, and costs the memory that sharding gradients had saved.
        """
        self.sync_gradients = False
        try:
            yield
        finally:
            self.sync_gradients = True

    def full_parameters(self) -> dict[str, Tensor]:
        """Return every parameter whole, by its original name, on every rank."""
        full: dict[str, Tensor] = {}
        for handle in self.handles.values():
            full |= handle.full_parameters()
        return full


# --- 4. a whole model ---


def fully_shard_flat(
    model: nn.Module, group: dist.ProcessGroup, *, modules: Sequence[str]
) -> FlatState:
    """Flatten and shard each named module in place, and the rest as the root's.

    Optimize `model.parameters()` after it. Ranks must start with equal parameters.
    """
    by_name = dict(model.named_modules())
    check_names(by_name, modules)
    state = FlatState(group)
    for name, infos in find_param_infos(by_name, modules):
        state.handles[name] = FlatModule(by_name[name], infos, state)
    state.root = state.handles.get("")
    return state


if __name__ == "__main__":
    from mini_impls.demos.fsdp_flat import main

    raise SystemExit(main())
