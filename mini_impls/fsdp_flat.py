"""The first FSDP: all parameters of a module in one flat tensor, cut without regard.

The flat parameter is what the optimizer sees: of the shard's size between steps, of the
whole size while its module runs, when the module's weights are views of it. Autograd
then fills one flat gradient, and one reduce-scatter sends it.

Follows:
- pytorch/pytorch: torch/distributed/fsdp/_flat_param.py
- pytorch/pytorch: torch/distributed/fsdp/_runtime_utils.py

Leaves out:
- `use_orig_params`, mixed precision, other sharding strategies, forward prefetch
- streams of its own: a collective is started early and waited for late instead
- modules that return anything but one tensor; frozen beside trained parameters in one
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Variable
from torch.autograd.graph import register_multi_grad_hook

# Letters: W world size, N elements of a module's parameters, P = N padded to W.


class ParamInfo(NamedTuple):
    """Where an original parameter was; `place` counts those of the flat one."""

    module: nn.Module
    attribute: str
    fqn: str
    place: int


# --- 1. flatten and shard ---


class FlatParamHandle:
    """Owns the flat parameter of one module."""

    def __init__(
        self, module: nn.Module, infos: list[ParamInfo], state: "FlatState"
    ) -> None:
        params: list[nn.Parameter] = []
        for info in infos:
            if info.place == len(params):  # not one that is tied to an earlier one
                params.append(info.module._parameters[info.attribute])  # type: ignore[arg-type]
        for kinds in ({p.dtype for p in params}, {p.requires_grad for p in params}):
            if len(kinds) != 1:
                raise ValueError(f"one flat parameter cannot be {len(kinds)}: {kinds}")
        self.param_infos = infos
        self.state = state
        self.shapes = [param.shape for param in params]
        self.numels = [param.numel() for param in params]
        world_size, rank = state.group.size(), state.group.rank()
        self.unpadded_size = sum(self.numels)
        self.sharded_size = -(-self.unpadded_size // world_size)
        self._full_param_padded = params[0].new_empty(
            self.sharded_size * world_size, requires_grad=False
        )
        flat = torch.cat([param.detach().reshape(-1) for param in params])
        padded = flat.new_zeros(self.sharded_size * world_size)
        padded[: len(flat)] = flat
        self._local_shard = padded.view(world_size, -1)[rank].clone()
        self.flat_param = nn.Parameter(self._local_shard, params[0].requires_grad)
        # The originals leave the module: what stands in their place are views.
        for info in infos:
            del info.module._parameters[info.attribute]
        module.register_parameter("_flat_param", self.flat_param)
        if self.flat_param.requires_grad:
            self.flat_param.register_post_accumulate_grad_hook(self.post_backward)
        self._saved_grad_shard: Tensor | None = None
        self._all_gather: dist.Work | None = None
        self._post_forward_index: int | None = None
        self._needs_pre_backward_unshard = False
        self._in_backward = False
        self.is_unsharded = False
        self.reshard()

    # --- 2. unshard and reshard ---

    def unshard(self) -> None:
        """Start the all-gather, unless it is under way or done."""
        if self.is_unsharded or self._all_gather is not None:
            return
        self._full_param_padded.untyped_storage().resize_(
            self._full_param_padded.nbytes
        )
        self._all_gather = dist.all_gather_single(
            self._full_param_padded,
            self._local_shard,
            group=self.state.group,
            async_op=True,
        )

    def wait_for_unshard(self) -> None:
        """Wait, and let the flat parameter be the whole one, (P) less the padding."""
        if self._all_gather is None:
            return
        self._all_gather.wait()
        self._all_gather = None
        self.is_unsharded = True
        self.flat_param.data = self._full_param_padded[: self.unpadded_size]

    def use_unsharded_views(self) -> None:
        """Set each weight to a view that autograd follows to the flat parameter."""
        views = self.get_unflat_views(self.flat_param)
        for info in self.param_infos:
            setattr(info.module, info.attribute, views[info.place])

    def get_unflat_views(self, flat: Tensor) -> list[Tensor]:
        """Cut a flat tensor, (N), into the shapes of the parameters."""
        pieces = flat.split(self.numels)
        return [p.view(shape) for p, shape in zip(pieces, self.shapes, strict=True)]

    def reshard(self) -> None:
        """Let the flat parameter be the shard, (P/W), and free the whole one.

        Its memory alone goes: what autograd saved in forward refers to it, and finds
        it filled again in backward.
        """
        self.flat_param.data = self._local_shard
        self._full_param_padded.untyped_storage().resize_(0)
        self.is_unsharded = False

    # --- 3. around forward and backward ---

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
            self._post_forward_index = len(self.state.exec_order)
            self.state.exec_order.append(self)
            self._needs_pre_backward_unshard = True
            output.register_hook(self.pre_backward)

    def pre_backward(self, grad: Tensor) -> None:
        """Gather again, and start on the handle that ran before this one."""
        self.state.queue_post_backward_final_callback()
        self._in_backward = True
        self.unshard()
        self.wait_for_unshard()
        self.prepare_gradient_for_backward()
        self._needs_pre_backward_unshard = False
        if self._post_forward_index:
            target = self.state.exec_order[self._post_forward_index - 1]
            if target._needs_pre_backward_unshard:
                target.unshard()

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

    def accumulate_sharded_grad(self, sharded_grad: Tensor) -> None:
        """Keep the mean gradient of the shard until backward is over."""
        if self._saved_grad_shard is not None:
            sharded_grad += self._saved_grad_shard
        self._saved_grad_shard = sharded_grad

    def prepare_gradient_for_backward(self) -> None:
        """Put what earlier microbatches have sent by: it has the size of a shard.

        What `no_sync` has kept is whole, and autograd adds to it where it is.
        """
        grad = self.flat_param.grad
        if grad is not None and len(grad) != self.unpadded_size:
            self._saved_grad_shard, self.flat_param.grad = grad, None

    def prepare_gradient_for_optim(self) -> None:
        """Hand the shard's gradient to the optimizer."""
        if self._saved_grad_shard is not None:
            self.flat_param.grad = self._saved_grad_shard
            self._saved_grad_shard = None


# --- 4. the whole model ---


class FlatState:
    """What the handles share: their order, and the reduce-scatter under way."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        self.group = group
        self.handles: dict[str, FlatParamHandle] = {}
        self.root: FlatParamHandle | None = None
        self.exec_order: list[FlatParamHandle] = []
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
        padded_size = handle.sharded_size * self.group.size()
        padded = unsharded_grad.new_zeros(padded_size)
        padded[: len(unsharded_grad)] = unsharded_grad
        padded /= self.gradient_predivide_factor
        new_sharded_grad = padded.new_empty(handle.sharded_size)
        work = dist.reduce_scatter_single(
            new_sharded_grad, padded, group=self.group, async_op=True
        )
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
            handle._post_forward_index = None
            handle._needs_pre_backward_unshard = False
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
        full = {}
        for handle in self.handles.values():
            flat = handle._local_shard.new_empty(
                handle.sharded_size * self.group.size()
            )
            dist.all_gather_single(flat, handle._local_shard, group=self.group)
            views = handle.get_unflat_views(flat[: handle.unpadded_size])
            full.update({info.fqn: views[info.place] for info in handle.param_infos})
        return full


def fully_shard_flat(
    model: nn.Module, group: dist.ProcessGroup, *, modules: Sequence[str]
) -> FlatState:
    """Flatten and shard each named module in place, and the rest as the root's.

    Optimize `model.parameters()` after it. Ranks must start with equal parameters.
    """
    by_name = dict(model.named_modules())
    if unknown := [name for name in modules if name not in by_name]:
        raise ValueError(f"{len(unknown)} of {len(modules)} modules unknown: {unknown}")
    # A container is never called, so nothing would gather what it holds.
    kinds = {name: type(by_name[name]) for name in modules}
    if containers := [
        f"{name!r} is a {kind.__name__}"
        for name, kind in kinds.items()
        if kind.forward is nn.Module.forward
    ]:
        raise ValueError(
            f"{len(containers)} of {len(kinds)} modules have no forward to gather "
            f"before: {', '.join(containers)}; name the modules inside"
        )
    state = FlatState(group)
    taken: dict[nn.Parameter, tuple[str, int]] = {}
    # The innermost module comes first, and leaves the rest to those around it. All
    # ranks need one order: a set of names has another in every process.
    for name in sorted(dict.fromkeys(["", *modules]), key=len, reverse=True):
        infos: list[ParamInfo] = []
        for prefix, submodule in by_name[name].named_modules(prefix=name):
            for attribute, param in submodule._parameters.items():
                if param is None or attribute == "_flat_param":
                    continue
                fqn = f"{prefix}.{attribute}".removeprefix(".")
                place = len({info.place for info in infos})
                home, place = taken.setdefault(param, (name, place))
                if home != name:
                    raise ValueError(f"{fqn} is tied to one of {home!r}: 2 handles")
                infos.append(ParamInfo(submodule, attribute, fqn, place))
        if infos:
            state.handles[name] = FlatParamHandle(by_name[name], infos, state)
            by_name[name].register_forward_pre_hook(state.handles[name].pre_forward)
            by_name[name].register_forward_hook(state.handles[name].post_forward)
    state.root = state.handles.get("")
    return state


if __name__ == "__main__":
    from mini_impls.demos.fsdp_flat import main

    raise SystemExit(main())
