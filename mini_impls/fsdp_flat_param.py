"""The flat parameter of `fsdp_flat.py`: all parameters of a module, end to end, cut.

    parameters     | a a a a | b b b | c c c c |       N = 11
    flat, padded   | a a a a b b | b c c c c 0 |       P = 12, for two ranks

The cuts fall where they fall, within a parameter too. Between steps the flat parameter
is the shard; while its module runs it is the whole, and the weights are views of it.

Follows:
- pytorch/pytorch: torch/distributed/fsdp/_flat_param.py

Leaves out:
- `use_orig_params`, mixed precision, parameters on the CPU
- frozen beside trained parameters in one, and several dtypes
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn

# Letters: W world size, N elements of a module's parameters, P = N padded to W.


class ParamInfo(NamedTuple):
    """Where an original parameter was; `place` counts those of the flat one."""

    module: nn.Module
    attribute: str
    fqn: str
    place: int


class FlatParamHandle:
    """Owns the flat parameter of one module."""

    # --- 1. flatten and shard ---

    def __init__(self, infos: list[ParamInfo], group: dist.ProcessGroup) -> None:
        params: list[nn.Parameter] = []
        for info in infos:
            if info.place == len(params):  # not one that is tied to an earlier one
                params.append(info.module._parameters[info.attribute])  # type: ignore[arg-type]
        for kinds in ({p.dtype for p in params}, {p.requires_grad for p in params}):
            if len(kinds) != 1:
                raise ValueError(f"one flat parameter cannot be {len(kinds)}: {kinds}")
        self.param_infos, self.group = infos, group
        self.shapes = [param.shape for param in params]
        self.numels = [param.numel() for param in params]
        world_size, rank = group.size(), group.rank()
        self.unpadded_size = sum(self.numels)  # N
        self.sharded_size = -(-self.unpadded_size // world_size)  # P/W
        self._full_param_padded = params[0].new_empty(
            self.sharded_size * world_size, requires_grad=False
        )  # (P)
        flat = torch.cat([param.detach().reshape(-1) for param in params])  # (N)
        padded = flat.new_zeros(self.sharded_size * world_size)  # (P)
        padded[: len(flat)] = flat  # (N) of (P)
        self._local_shard = padded.view(world_size, -1)[rank].clone()  # (P/W)
        self.flat_param = nn.Parameter(self._local_shard, params[0].requires_grad)
        # The originals leave the module: what stands in their place are views.
        for info in infos:
            del info.module._parameters[info.attribute]
        self._saved_grad_shard: Tensor | None = None
        self._all_gather: dist.Work | None = None
        self.is_unsharded = False
        self.reshard()

    # --- 2. unshard and reshard ---

    def unshard(self) -> None:
        """Start the all-gather, unless it is under way or done."""
        if self.is_unsharded or self._all_gather is not None:
            return
        full = self._full_param_padded
        full.untyped_storage().resize_(full.nbytes)
        self._all_gather = dist.all_gather_single(
            full, self._local_shard, group=self.group, async_op=True
        )  # (P/W) to (P)

    def wait_for_unshard(self) -> None:
        """Wait, and let the flat parameter be the whole one, (P) less the padding."""
        if self._all_gather is None:
            return
        self._all_gather.wait()
        self._all_gather = None
        self.is_unsharded = True
        self.flat_param.data = self._full_param_padded[: self.unpadded_size]  # (N)

    def use_unsharded_views(self) -> None:
        """Set each weight to a view that autograd follows to the flat parameter."""
        views = self.get_unflat_views(self.flat_param)
        for info in self.param_infos:
            setattr(info.module, info.attribute, views[info.place])

    def get_unflat_views(self, flat: Tensor) -> list[Tensor]:
        """Cut a flat tensor, (N), into the shapes of the parameters."""
        pieces = flat.split(self.numels)  # one (numel) for each parameter
        return [p.view(shape) for p, shape in zip(pieces, self.shapes, strict=True)]

    def reshard(self) -> None:
        """Let the flat parameter be the shard, (P/W), and free the whole one.

        Its memory alone goes: what autograd saved in forward refers to it, and finds
        it filled again in backward.
        """
        self.flat_param.data = self._local_shard
        self._full_param_padded.untyped_storage().resize_(0)
        self.is_unsharded = False

    # --- 3. the gradient of a shard ---

    def pad(self, unsharded_grad: Tensor) -> Tensor:
        """Return a copy of the whole gradient, (N), with zeros up to (P)."""
        padded = unsharded_grad.new_zeros(self.sharded_size * self.group.size())  # (P)
        padded[: len(unsharded_grad)] = unsharded_grad  # (N) of (P)
        return padded

    def accumulate_sharded_grad(self, sharded_grad: Tensor) -> None:
        """Keep the mean gradient of the shard, (P/W), until backward is over."""
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

    # --- 4. outside of a step ---

    def full_parameters(self) -> dict[str, Tensor]:
        """Return the original parameters, gathered, by name; all ranks must call it."""
        flat = self._local_shard.new_empty(self.sharded_size * self.group.size())  # (P)
        dist.all_gather_single(flat, self._local_shard, group=self.group)  # to (P)
        views = self.get_unflat_views(flat[: self.unpadded_size])  # of (N)
        return {info.fqn: views[info.place] for info in self.param_infos}


# --- 5. which parameters are flattened together ---


def check_names(by_name: Mapping[str, nn.Module], modules: Sequence[str]) -> None:
    """Raise ValueError where a name is none, or that of a container."""
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


def find_param_infos(
    by_name: Mapping[str, nn.Module], modules: Sequence[str]
) -> Iterator[tuple[str, list[ParamInfo]]]:
    """Yield each module's name with its parameters, inner modules before outer ones.

    Those that were yielded must be flattened before the next are asked for: the
    innermost module comes first, and leaves the rest to those around it.
    """
    taken: dict[nn.Parameter, tuple[str, int]] = {}
    # All ranks need one order: a set of names has another in every process.
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
            yield name, infos
