"""Fully sharded data parallelism: each rank keeps a slice of the rows of every tensor.

A module that is named forms a group. Its parameters are gathered by one all-gather
before its forward and again before its backward, and its gradients leave by one
reduce-scatter after it. What no name covers is replicated, gradients averaged.

Follows:
- pytorch/pytorch: torch/distributed/fsdp/_fully_shard/_fsdp_param.py
- pytorch/pytorch: torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py
- pytorch/pytorch: torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py
- pytorch/pytorch: torch/distributed/fsdp/_fully_shard/_fsdp_state.py

Leaves out:
- DTensor, meshes of two dimensions, offload, dimensions other than the first
- streams of its own: a collective is started early and waited for late instead
- a reduce-scatter that goes on from one backward into the next (`is_last_backward`)
- modules that take or return anything but positional arguments and one tensor
- parameters that only some ranks use: what the ranks send would not belong together
- models without memory yet (`meta`), `unshard` called by hand, an order of prefetch
  other than that of `modules`: what is named and does not run is gathered in vain
- the scaling that fp16 gradients need; saving, loading, clipping: `fsdp_state.py`
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Variable

# Letters: W world size, R rows of a parameter (its first dimension), C = ceil(R/W).


class Owner(NamedTuple):
    """A place in the model that holds a parameter; a tied one has several."""

    module: nn.Module
    attribute: str
    fqn: str


# --- 1. one parameter: its shard, and all of it while its group is unsharded ---


class FSDPParam:
    """Rows [rank C, (rank+1) C) of a parameter; the last ranks may have fewer."""

    def __init__(
        self,
        param: nn.Parameter,
        owners: list[Owner],
        group: dist.ProcessGroup,
        compute_dtype: torch.dtype | None,
    ) -> None:
        if param.dim() == 0:
            raise ValueError(f"{owners[0].fqn} has 0 dimensions; sharding needs 1")
        self.owners = owners
        self.orig_size = param.size()
        self.compute_dtype = compute_dtype or param.dtype
        rank, world_size = group.rank(), group.size()
        rows = -(-param.size(0) // world_size)
        self.padded_sharded_size = torch.Size([rows, *param.shape[1:]])  # (C, ...)
        mine = param.detach()[rank * rows : (rank + 1) * rows]
        # Zeros up to C rows: all ranks must send equally much.
        padded = param.new_zeros(self.padded_sharded_size, requires_grad=False)
        padded[: len(mine)] = mine
        self._sharded_param_data = padded.view(-1)
        self.sharded_param = nn.Parameter(padded[: len(mine)], param.requires_grad)
        self.all_gather_output = torch.empty(
            padded.numel() * world_size, dtype=self.compute_dtype, device=param.device
        )
        whole = self.all_gather_output.data.view(-1, *param.shape[1:])[: len(param)]
        self.unsharded_param = nn.Parameter(whole, param.requires_grad)
        self.unsharded_accumulated_grad: Tensor | None = None
        self.to_sharded()

    def all_gather_input(self) -> Tensor:
        """Return what this rank sends: the fp32 master rows, cast to compute."""
        return self._sharded_param_data.to(self.compute_dtype)

    def to_unsharded(self, gathered: Tensor) -> None:
        """Fill the whole parameter from (W, C ...) and let the model see it."""
        self.all_gather_output.untyped_storage().resize_(self.all_gather_output.nbytes)
        self.all_gather_output.view(gathered.shape).copy_(gathered)
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

    def accumulate_unsharded_grad(self, reduce_dtype: torch.dtype | None) -> None:
        """Take what backward made, and add it in the dtype that will be reduced."""
        grad, self.unsharded_param.grad = self.unsharded_param.grad, None
        if grad is not None:
            grad = grad.to(reduce_dtype or grad.dtype)
            if self.unsharded_accumulated_grad is not None:
                grad += self.unsharded_accumulated_grad
            self.unsharded_accumulated_grad = grad

    def full(self, group: dist.ProcessGroup) -> Tensor:
        """Gather the whole parameter from the master shards."""
        data = self._sharded_param_data
        output = data.new_empty(group.size() * data.numel())
        dist.all_gather_single(output, data, group=group)
        return output.view(-1, *self.orig_size[1:])[: self.orig_size[0]]


# --- 2. a group: the parameters that travel together ---


class FSDPParamGroup:
    """Gathers and frees the parameters of one module, and reduces their gradients."""

    def __init__(
        self, fsdp_params: list[FSDPParam], state: "FSDPState", reshard: bool
    ) -> None:
        dtypes = {fsdp_param.sharded_param.dtype for fsdp_param in fsdp_params}
        if len(dtypes) > 1:
            raise ValueError(f"a group must have 1 dtype, got {len(dtypes)}: {dtypes}")
        self.fsdp_params = fsdp_params
        self.state = state
        self.reshard_after_forward = reshard
        self.next_group: FSDPParamGroup | None = None
        self.is_unsharded = False
        self._all_gather_result: tuple[Tensor, dist.Work | None] | None = None
        self._gathered_version = 0
        self._post_forward_indices: list[int] = []
        self._training_state: Literal["idle", "pre_backward", "post_backward"] = "idle"

    def unshard(self) -> None:
        """Start the all-gather, unless it is under way or done."""
        # Every write to a shard, such as an optimizer's, raises its version.
        version = sum(p._sharded_param_data._version for p in self.fsdp_params)
        if self._all_gather_result is not None or self.is_unsharded:
            if self._gathered_version == version:
                return
            self.wait_for_unshard()  # gathered, kept without a backward, now stale
        self._gathered_version = version
        group = self.state.group
        inputs = [fsdp_param.all_gather_input() for fsdp_param in self.fsdp_params]
        output = all_gather_input = torch.cat(inputs)
        work = None
        if group.size() > 1:
            output = all_gather_input.new_empty(group.size() * all_gather_input.numel())
            work = dist.all_gather_single(
                output, all_gather_input, group=group, async_op=True
            )
        self._all_gather_result = (output, work)

    def wait_for_unshard(self) -> None:
        """Wait, and deal the columns of (W, all shards) out to the parameters."""
        if self._all_gather_result is None:
            return
        output, work = self._all_gather_result
        self._all_gather_result = None
        if work is not None:
            work.wait()
        sizes = [p.padded_sharded_size.numel() for p in self.fsdp_params]
        pieces = output.view(self.state.group.size(), -1).split(sizes, dim=1)
        for fsdp_param, piece in zip(self.fsdp_params, pieces, strict=True):
            fsdp_param.to_unsharded(piece)
        self.is_unsharded = True

    def reshard(self) -> None:
        """Free the whole parameters."""
        for fsdp_param in self.fsdp_params:
            fsdp_param.to_sharded()
        self.is_unsharded = False

    # --- 3. around forward and backward ---
    #
    #   forward    gather 0 | run 0, gather 1 | run 1, gather 2 | ...
    #   backward   ... | run 1, gather 0 | run 0, reduce-scatter 1 | reduce-scatter 0

    def pre_forward(self, module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Gather, start on the group after, and mark where backward will end."""
        self.state.check_no_backward_was_cut_short()
        self.unshard()
        self.wait_for_unshard()
        # A checkpoint runs forward again within backward, which goes the other way.
        if self.state.prefetch and self.next_group is not None and not is_bw():
            self.next_group.unshard()
        args = tuple(_cast_fp_tensor(arg, self.state.compute_dtype) for arg in args)
        needs_grad = [isinstance(arg, Tensor) and arg.requires_grad for arg in args]
        if torch.is_grad_enabled() and any(needs_grad):
            mark = RegisterPostBackwardFunction.apply
            args = mark(self, *args)  # type: ignore[no-untyped-call]
        return args

    def post_forward(self, module: nn.Module, args: Any, output: Tensor) -> Tensor:
        """Free, and mark where backward will begin."""
        casted: Tensor = _cast_fp_tensor(output, self.state.output_dtype)
        # A checkpoint that runs forward again within backward needs the parameters
        # next, and has no part in the order of the forward.
        again = is_bw()
        if not again and (self.reshard_after_forward or not torch.is_grad_enabled()):
            self.reshard()
        if output.requires_grad:
            if not again:
                self._post_forward_indices.append(len(self.state.post_forward_order))
                self.state.post_forward_order.append(self)
            output.register_hook(self.pre_backward)
        return casted

    def pre_backward(self, grad: Tensor) -> None:
        """Gather again, and start on the group that ran before this one."""
        self.state.queue_root_post_backward()
        self._training_state = "pre_backward"
        self.unshard()
        self.wait_for_unshard()
        if not self._post_forward_indices:
            return  # a second backward through one forward: the order is forgotten
        index = self._post_forward_indices.pop()
        if self.state.prefetch and index > 0:
            self.state.post_forward_order[index - 1].unshard()

    def post_backward(self) -> None:
        """Take the gradients, free the parameters, start the reduce-scatter."""
        self._training_state = "post_backward"
        for fsdp_param in self.fsdp_params:
            fsdp_param.accumulate_unsharded_grad(self.state.reduce_dtype)
        self.reshard()
        if not self.state.reduce_grads:
            return  # whole gradients stay, and the next microbatch adds to them
        used, copies = [], []
        for fsdp_param in self.fsdp_params:
            grad = fsdp_param.unsharded_accumulated_grad
            if grad is None:
                continue
            fsdp_param.unsharded_accumulated_grad = None
            rows = self.state.group.size() * fsdp_param.padded_sharded_size[0]
            padded = grad.new_zeros(rows, *grad.shape[1:])
            padded[: len(grad)] = grad
            used.append(fsdp_param)
            copies.append(padded.view(self.state.group.size(), -1))  # (W, C ...)
        if used:
            self.state.start_reduce_scatter(used, torch.cat(copies, dim=1).view(-1))


class RegisterPostBackwardFunction(torch.autograd.Function):
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


# --- 4. the whole model: what the groups share ---


class FSDPState:
    """The order of the step, the reduce-scatter under way, and what is replicated."""

    def __init__(
        self,
        group: dist.ProcessGroup,
        compute_dtype: torch.dtype | None,
        reduce_dtype: torch.dtype | None,
        output_dtype: torch.dtype | None,
        prefetch: bool,
    ) -> None:
        self.group = group
        self.compute_dtype = compute_dtype
        self.reduce_dtype = reduce_dtype
        self.output_dtype = output_dtype
        self.prefetch = prefetch
        self.reduce_grads = True
        self.param_groups: dict[str, FSDPParamGroup] = {}
        """By module name, in the order of forward."""
        self.replicated: list[nn.Parameter] = []
        self.post_forward_order: list[FSDPParamGroup] = []
        self._reduce_scatter: (
            tuple[list[FSDPParam], Tensor, Tensor, dist.Work | None] | None
        ) = None
        self._callback_queued = False

    def set_requires_gradient_sync(self, requires_gradient_sync: bool) -> None:
        """Say whether the next backward sends its gradients, or only adds them up.

        What is added up is whole: for fewer messages each rank holds W times as much.
        """
        self.reduce_grads = requires_gradient_sync

    def start_reduce_scatter(self, params: list[FSDPParam], grads: Tensor) -> None:
        """Send row r of the gradients, (W, all shards) laid flat, to rank r."""
        # One at a time: the input, a whole group's gradients, must live until its end.
        self.finish_reduce_scatter()
        output, work = grads, None
        if self.group.size() > 1:
            output = grads.new_empty(grads.numel() // self.group.size())
            op = dist.ReduceOp.AVG
            work = dist.reduce_scatter_single(
                output, grads, op=op, group=self.group, async_op=True
            )
        self._reduce_scatter = (params, grads, output, work)

    def finish_reduce_scatter(self) -> None:
        """Wait, and add what arrived to the gradients of the shards."""
        if self._reduce_scatter is None:
            return
        params, _, output, work = self._reduce_scatter
        self._reduce_scatter = None
        if work is not None:
            work.wait()
        sizes = [fsdp_param.padded_sharded_size.numel() for fsdp_param in params]
        for fsdp_param, piece in zip(params, output.split(sizes), strict=True):
            shard = fsdp_param.sharded_param
            grad = piece.view(fsdp_param.padded_sharded_size)[: len(shard)]
            grad = grad.to(shard.dtype)
            shard.grad = grad if shard.grad is None else shard.grad + grad

    def check_no_backward_was_cut_short(self) -> None:
        """Raise where a backward has begun, is not running, and has not ended."""
        if self._callback_queued and not is_bw():
            raise RuntimeError(
                "an earlier backward was cut short, with parameters gathered and "
                "gradients not sent: mend what it raised, and shard a new model"
            )

    def queue_root_post_backward(self) -> None:
        """Have autograd call `_root_post_backward` at the end of this backward."""
        if not self._callback_queued:
            self._callback_queued = True
            Variable._execution_engine.queue_callback(self._root_post_backward)

    def _root_post_backward(self) -> None:
        self._callback_queued = False
        for param_group in self.param_groups.values():
            # Where no input needs a gradient, as for the root's tokens, no mark is set.
            if param_group._training_state != "post_backward":
                param_group.post_backward()
            # What was gathered ahead and not used is stale once the optimizer steps.
            param_group.wait_for_unshard()
            param_group.reshard()
            param_group._post_forward_indices.clear()
            param_group._training_state = "idle"
        self.finish_reduce_scatter()
        self.post_forward_order.clear()
        for param in self.replicated if self.reduce_grads else ():
            if param.grad is not None and self.group.size() > 1:
                param.grad /= self.group.size()
                dist.all_reduce(param.grad, group=self.group)

    def full_parameters(self, model: nn.Module) -> dict[str, Tensor]:
        """Return all parameters and buffers whole, by original name, on every rank."""
        full = {name: t.detach().clone() for name, t in model.state_dict().items()}
        for param_group in self.param_groups.values():
            for fsdp_param in param_group.fsdp_params:
                tensor = fsdp_param.full(self.group)
                full.update({owner.fqn: tensor for owner in fsdp_param.owners})
        return full


def fully_shard(
    model: nn.Module,
    group: dist.ProcessGroup,
    *,
    modules: Sequence[str],
    reshard_after_forward: bool = True,
    compute_dtype: torch.dtype | None = None,
    reduce_dtype: torch.dtype | None = None,
    output_dtype: torch.dtype | None = None,
    prefetch: bool = True,
) -> FSDPState:
    """Shard the named modules of `model` in place; optimize `model.parameters()` after.

    A parameter goes with the innermost named module around it; `""`, the model itself,
    takes the rest, which is replicated otherwise. Names stand in the order of forward.
    Ranks must start with equal parameters.

    With `compute_dtype` named modules hand out that dtype. What is replicated keeps its
    own, so where it takes their outputs, set `output_dtype` to that one.
    """
    by_name = dict(model.named_modules())
    if unknown := [name for name in modules if name not in by_name]:
        raise ValueError(f"{len(unknown)} of {len(modules)} modules unknown: {unknown}")
    check_has_forward(by_name, modules)
    owners: dict[nn.Parameter, list[Owner]] = {}
    for prefix, module in by_name.items():
        for name, param in module._parameters.items():
            if param is not None:
                fqn = f"{prefix}.{name}".removeprefix(".")
                owners.setdefault(param, []).append(Owner(module, name, fqn))
    state = FSDPState(group, compute_dtype, reduce_dtype, output_dtype, prefetch)
    params_of: dict[str, list[FSDPParam]] = {name: [] for name in modules}
    for param, places in owners.items():
        around = [[n for n in modules if _contains(n, place.fqn)] for place in places]
        homes = {max(names, key=len, default=None) for names in around}
        if len(homes) > 1:
            fqns = [place.fqn for place in places]
            raise ValueError(f"tied {fqns} lie in {len(homes)} groups: {homes}")
        home = homes.pop()
        if home is None:
            state.replicated.append(param)
            if param.requires_grad:  # its backward may touch no sharded module at all
                param.register_post_accumulate_grad_hook(
                    lambda _: state.queue_root_post_backward()
                )
        else:
            params_of[home].append(FSDPParam(param, places, group, compute_dtype))
    previous = None
    for name, fsdp_params in params_of.items():
        if not fsdp_params:
            continue  # named modules within it hold them all
        # The root is last in forward and first in backward: to free it would be to
        # gather it again at once.
        reshard = reshard_after_forward and name != ""
        param_group = FSDPParamGroup(fsdp_params, state, reshard)
        state.param_groups[name] = param_group
        by_name[name].register_forward_pre_hook(param_group.pre_forward, prepend=True)
        by_name[name].register_forward_hook(param_group.post_forward)
        if previous is not None:
            previous.next_group = param_group
        previous = param_group
    return state


def check_has_forward(by_name: dict[str, nn.Module], modules: Sequence[str]) -> None:
    """Raise where a container is named: it is never called, so nothing would gather."""
    containers = [
        f"{name!r} is a {type(by_name[name]).__name__}"
        for name in modules
        if type(by_name[name]).forward is nn.Module.forward
    ]
    if containers:
        raise ValueError(
            f"{len(containers)} of {len(modules)} modules have no forward to gather "
            f"before: {', '.join(containers)}; name the modules inside"
        )


def is_bw() -> bool:
    """Say whether autograd is running a backward in this thread."""
    return torch._C._current_graph_task_id() != -1


def _contains(module: str, fqn: str) -> bool:
    return not module or fqn.startswith(module + ".")


def _cast_fp_tensor(value: Any, dtype: torch.dtype | None) -> Any:
    if dtype is not None and isinstance(value, Tensor) and value.is_floating_point():
        return value.to(dtype)
    return value


if __name__ == "__main__":
    from mini_impls.demos.fsdp import main

    raise SystemExit(main())
