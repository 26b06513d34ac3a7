"""What a model and a training ask of `fsdp.py`: groups, dtypes, microbatches, refusals.

Which parameters form a group, the tied and the uncovered among them; other dtypes for
compute, reduction and outputs; what must not go wrong silently. It stands around the
group's own hooks, and around the end of backward.

Follows:
- pytorch/pytorch: torch/distributed/fsdp/_fully_shard/_fully_shard.py
- pytorch/pytorch: torch/distributed/fsdp/_fully_shard/_fsdp_init.py
- pytorch/pytorch: torch/distributed/fsdp/_fully_shard/_fsdp_state.py

Leaves out:
- modules that take or return anything but positional arguments and one tensor
- models without memory yet (`meta`), `unshard` called by hand, an order of prefetch
  other than that of `modules`: what is named and does not run is gathered in vain
- the scaling that fp16 gradients need; saving, loading, clipping: `fsdp_state.py`
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from mini_impls.fsdp import FSDPParamGroup, FSDPState, PrefetchingParamGroup, is_bw
from mini_impls.fsdp_param import FSDPParam, Owner

# --- 1. which parameters form a group ---


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
) -> "FSDPModelState":
    """Shard the named modules of `model` in place; optimize `model.parameters()` after.

    A parameter goes with the innermost named module around it; `""`, the model itself,
    takes the rest, which is replicated otherwise. Names stand in the order of forward.
    Ranks must start with equal parameters.

    With `compute_dtype` named modules hand out that dtype. What is replicated keeps its
    own, so where it takes their outputs, set `output_dtype` to that one.
    """
    by_name = dict(model.named_modules())
    check_names(by_name, modules)
    state = FSDPModelState(group, prefetch)
    params_of: dict[str, list[FSDPParam]] = {name: [] for name in modules}
    for param, owners in find_owners(by_name).items():
        home = find_home(owners, modules)
        if home is None:
            state.replicate(param)
            continue
        fsdp_param = FSDPParam(param, owners, group, compute_dtype, reduce_dtype)
        params_of[home].append(fsdp_param)
    for name, fsdp_params in params_of.items():
        if not fsdp_params:
            continue  # named modules within it hold them all
        check_dtypes(fsdp_params)
        # The root is last in forward and first in backward: to free it would be to
        # gather it again at once.
        reshard = reshard_after_forward and name != ""
        param_group = state.add_group(name, fsdp_params, reshard)
        module = by_name[name]
        module.register_forward_pre_hook(param_group.pre_forward, prepend=True)
        module.register_forward_hook(param_group.post_forward)
        add_options(module, state, compute_dtype, output_dtype)
    return state


def find_owners(by_name: dict[str, nn.Module]) -> dict[nn.Parameter, list[Owner]]:
    """Return the places of each parameter; a tied one has several."""
    owners: dict[nn.Parameter, list[Owner]] = {}
    for prefix, module in by_name.items():
        for name, param in module._parameters.items():
            if param is not None:
                fqn = f"{prefix}.{name}".removeprefix(".")
                owners.setdefault(param, []).append(Owner(module, name, fqn))
    return owners


def find_home(owners: list[Owner], modules: Sequence[str]) -> str | None:
    """Return the innermost named module around a parameter, if there is one."""
    around = [
        [name for name in modules if not name or owner.fqn.startswith(name + ".")]
        for owner in owners
    ]
    homes = {max(names, key=len, default=None) for names in around}
    if len(homes) > 1:
        fqns = [owner.fqn for owner in owners]
        raise ValueError(f"tied {fqns} lie in {len(homes)} groups: {homes}")
    return homes.pop()


def check_names(by_name: dict[str, nn.Module], modules: Sequence[str]) -> None:
    """Raise ValueError where a name is none, or that of a container."""
    if unknown := [name for name in modules if name not in by_name]:
        raise ValueError(f"{len(unknown)} of {len(modules)} modules unknown: {unknown}")
    # A container is never called, so nothing would gather what it holds.
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


def check_dtypes(fsdp_params: list[FSDPParam]) -> None:
    """Raise ValueError where one call would have to send several dtypes."""
    dtypes = {fsdp_param.sharded_param.dtype for fsdp_param in fsdp_params}
    if len(dtypes) > 1:
        raise ValueError(f"a group must have 1 dtype, got {len(dtypes)}: {dtypes}")


# --- 2. around a group: a backward that broke off, dtypes ---


def add_options(
    module: nn.Module,
    state: FSDPState,
    compute_dtype: torch.dtype | None,
    output_dtype: torch.dtype | None,
) -> None:
    """Run hooks of our own before a group gathers, and after it frees."""

    def before(module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        if state._callback_queued and not is_bw():
            raise RuntimeError(
                "an earlier backward was cut short, with parameters gathered and "
                "gradients not sent: mend what it raised, and shard a new model"
            )
        return tuple(_cast_fp_tensor(arg, compute_dtype) for arg in args)

    def after(module: nn.Module, args: Any, output: Tensor) -> Tensor:
        casted: Tensor = _cast_fp_tensor(output, output_dtype)
        return casted

    module.register_forward_pre_hook(before, prepend=True)
    module.register_forward_hook(after)


def _cast_fp_tensor(value: Any, dtype: torch.dtype | None) -> Any:
    if dtype is not None and isinstance(value, Tensor) and value.is_floating_point():
        return value.to(dtype)
    return value


# --- 3. around the model: what no name covers, microbatches, the whole again ---


class FSDPModelState(FSDPState):
    """Averages the gradients of what is replicated, when backward is over."""

    def __init__(self, group: dist.ProcessGroup, prefetch: bool) -> None:
        super().__init__(group)
        self.prefetch = prefetch
        self.replicated: list[nn.Parameter] = []

    def add_group(
        self, name: str, fsdp_params: list[FSDPParam], reshard: bool
    ) -> FSDPParamGroup:
        """Return a group that runs after those before it."""
        if not self.prefetch:
            self.param_groups[name] = FSDPParamGroup(fsdp_params, self, reshard)
            return self.param_groups[name]
        param_group = PrefetchingParamGroup(fsdp_params, self, reshard)
        last = next(reversed(self.param_groups.values()), None)
        if isinstance(last, PrefetchingParamGroup):
            last.next_group = param_group
        self.param_groups[name] = param_group
        return param_group

    def replicate(self, param: nn.Parameter) -> None:
        """Leave a parameter whole on every rank."""
        self.replicated.append(param)
        if param.requires_grad:  # its backward may touch no sharded module at all
            param.register_post_accumulate_grad_hook(
                lambda _: self.queue_root_post_backward()
            )

    def _root_post_backward(self) -> None:
        super()._root_post_backward()
        if not self.reduce_grads or self.group.size() == 1:
            return
        for param in self.replicated:
            if param.grad is not None:
                param.grad /= self.group.size()
                dist.all_reduce(param.grad, group=self.group)  # whole

    def set_requires_gradient_sync(self, requires_gradient_sync: bool) -> None:
        """Say whether the next backward sends its gradients, or only adds them up.

        What is added up is whole: for fewer messages each rank holds W times as much.
        """
        self.reduce_grads = requires_gradient_sync

    def full_parameters(self, model: nn.Module) -> dict[str, Tensor]:
        """Return all parameters and buffers whole, by original name, on every rank."""
        full = {name: t.detach().clone() for name, t in model.state_dict().items()}
        for param_group in self.param_groups.values():
            for fsdp_param in param_group.fsdp_params:
                tensor = fsdp_param.full(self.group)
                full.update({owner.fqn: tensor for owner in fsdp_param.owners})
        return full
