"""Weights on the host as well: a rank's rows of each parameter come when they run.

The host keeps this rank's rows of all parameters, their gradients and the optimizer's
state. The device has the weights of the module that runs, gathered from all ranks.

    forward    rows in | gather | run | free
    backward   rows in | gather | run | free, reduce-scatter | gradient rows out

Follows:
- pytorch/pytorch: torch/distributed/fsdp/_fully_shard/_fsdp_param.py,
  _fsdp_collectives.py (`CPUOffloadPolicy`)
- ZeRO-Infinity (arXiv 2104.07857), section 5.1

Leaves out:
- gathers ahead of time, a root that stays gathered, dtypes, recomputation, containers
  named as modules: `fsdp.py`
- a backward that is cut short, a module that runs more than once in a step, parameters
  that some ranks use and others do not
- NVMe, tiles of one parameter
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Variable

from mini_impls.offload import Copy, HostLink

# Letters: W world size; R rows of a parameter (its first dimension), C = ceil(R/W);
# S elements of one rank's rows of all parameters of a unit, padded to equal sizes.

Owner = tuple[nn.Module, str]
"""A module, and the name under which it holds a parameter."""

# --- 1. one module's parameters: rows on the host, whole while it runs ---


class OffloadedUnit:
    """Rows of a module's parameters, this rank's, in one piece of host memory."""

    def __init__(
        self,
        owners: dict[nn.Parameter, list[Owner]],
        group: dist.ProcessGroup,
        link: HostLink,
    ) -> None:
        self.owners, self.group, self.link = list(owners.values()), group, link
        rank, self.world_size = group.rank(), group.size()
        params = [param.detach() for param in owners]
        rows = [-(-len(param) // self.world_size) for param in params]  # C of each
        pairs = list(zip(params, rows, strict=True))
        self.sizes = [c * (p.numel() // len(p)) for p, c in pairs]
        self.host = params[0].new_zeros(sum(self.sizes), device="cpu")  # (S)
        self.wholes, self.shards = list[nn.Parameter](), list[nn.Parameter]()
        self.gathered: list[Tensor] = []
        """The memory of the whole ones, (W C, ...) each."""
        pieces = zip(owners, rows, self.host.split(self.sizes), strict=True)  # (C ...)
        for param, c, piece in pieces:
            mine = param.detach()[rank * c : (rank + 1) * c]  # (C or fewer, ...)
            shard = piece.view(c, *param.shape[1:])[: len(mine)]  # (C or fewer, ...)
            shard.copy_(mine)
            self.shards.append(nn.Parameter(shard, param.requires_grad))
            padded = mine.new_empty(self.world_size * c, *param.shape[1:])  # (W C, ...)
            self.gathered.append(padded)
            # `.data`: autograd must not take a refill for a change of what it saved.
            whole = padded.data[: len(param)]  # (R, ...)
            self.wholes.append(nn.Parameter(whole, param.requires_grad))
        self.fetched: Copy | None = None
        self.fetched_version = -1
        self.is_unsharded = False
        self.leaving: list[tuple[list[nn.Parameter], Copy]] = []
        self.reshard()

    def fetch(self) -> None:
        """Start to copy the rows to the device, unless they are there or on the way."""
        if self.is_unsharded:
            return
        # An update of a shard writes to this memory, and raises its version.
        if self.fetched is None or self.fetched_version != self.host._version:
            self.fetched = self.link.start(self.host, "to device")  # (S)
            self.fetched_version = self.host._version

    def unshard(self) -> None:
        """Gather the whole parameters and let the module see them."""
        if self.is_unsharded:
            return
        self.fetch()
        assert self.fetched is not None
        rows, self.fetched = self.fetched.wait(), None
        gathered = rows.new_empty(self.world_size * len(rows))  # (W S)
        dist.all_gather_single(gathered, rows, group=self.group)  # (S) to (W S)
        columns = gathered.view(self.world_size, -1).split(self.sizes, dim=1)
        for padded, column in zip(self.gathered, columns, strict=True):
            padded.untyped_storage().resize_(padded.nbytes)
            padded.view(column.shape).copy_(column)  # (W, C ...)
        self._show(self.wholes)
        self.is_unsharded = True

    def reshard(self) -> None:
        """Let the module see the rows, and free the whole.

        The tensors stay and their memory goes: what autograd saved refers to it.
        """
        self._show(self.shards)
        for padded in self.gathered:
            padded.untyped_storage().resize_(0)
        self.is_unsharded = False

    def _show(self, params: Sequence[nn.Parameter]) -> None:
        for owners, param in zip(self.owners, params, strict=True):
            for module, name in owners:
                setattr(module, name, param)

    # --- 2. its gradients: reduced on the devices, kept on the host ---

    def reduce_gradients(self) -> None:
        """Make means of them, and send this rank's rows to the host."""
        both = zip(self.wholes, self.shards, strict=True)
        pairs = [(whole, shard) for whole, shard in both if whole.grad is not None]
        if not pairs:
            return
        packed = torch.cat([self._padded(whole) for whole, _ in pairs], dim=1)
        rows = packed.new_empty(packed.size(1))  # (S)
        op = dist.ReduceOp.AVG
        packed = packed.view(-1)  # (W S)
        dist.reduce_scatter_single(rows, packed, op=op, group=self.group)  # to (S)
        copy = self.link.start(rows, "to host")  # (S)
        self.leaving.append(([shard for _, shard in pairs], copy))

    def _padded(self, whole: nn.Parameter) -> Tensor:
        """Return a gradient with rows added, (W, C ...), and drop it."""
        grad, whole.grad = whole.grad, None
        assert grad is not None
        rows = -(-len(grad) // self.world_size) * self.world_size
        padded = grad.new_zeros(rows, *grad.shape[1:])  # (W C, ...)
        padded[: len(grad)] = grad  # (R, ...) of (W C, ...)
        return padded.view(self.world_size, -1)  # (W, C ...)

    def finish_gradients(self) -> None:
        """Add what has arrived to the gradients that the optimizer reads."""
        size_of = dict(zip(self.shards, self.sizes, strict=True))
        for shards, copy in self.leaving:
            pieces = copy.wait().split([size_of[shard] for shard in shards])  # (C ...)
            for shard, piece in zip(shards, pieces, strict=True):
                grad = piece[: shard.numel()].view_as(shard)  # (C or fewer, ...)
                shard.grad = grad if shard.grad is None else shard.grad + grad
        self.leaving.clear()


# --- 3. a whole model: who comes next ---


class OffloadedModel:
    """Hooks of a model whose named modules are units; `""`, the model, has the rest.

    Optimize `model.parameters()` after it: they are on the host. Names stand in the
    order of forward. With `prefetch`, rows travel while the unit before theirs runs.
    """

    def __init__(
        self,
        model: nn.Module,
        group: dist.ProcessGroup,
        link: HostLink,
        *,
        modules: Sequence[str],
        prefetch: bool = True,
    ) -> None:
        by_name = dict(model.named_modules())
        if unknown := [name for name in modules if name not in by_name]:
            raise ValueError(f"{len(unknown)} modules unknown: {', '.join(unknown)}")
        self.prefetch, self._callback_queued = prefetch, False
        self.units: list[OffloadedUnit] = []
        for name, owners in find_owners(by_name, modules):
            self._add(name, by_name[name], OffloadedUnit(owners, group, link))

    def _add(self, name: str, module: nn.Module, unit: OffloadedUnit) -> None:
        index, is_root = len(self.units), name == ""
        self.units.append(unit)
        missing: set[Tensor] = set()

        def pre_forward(module: nn.Module, args: Any) -> None:
            unit.unshard()
            if self.prefetch and index + 1 < len(self.units):
                self.units[index + 1].fetch()

        def post_forward(module: nn.Module, args: Any, output: Tensor) -> None:
            unit.reshard()
            if output.requires_grad:
                output.register_hook(pre_backward)

        def pre_backward(grad: Tensor) -> None:
            if not self._callback_queued:
                self._callback_queued = True
                Variable._execution_engine.queue_callback(self._post_backward)
            unit.unshard()
            missing.update(p for p in unit.wholes if p.requires_grad)
            if self.prefetch and (index or is_root):
                self.units[index - 1].fetch()  # before the root, the last one

        def got_gradient(param: Tensor) -> None:
            missing.discard(param)
            if not missing and not is_root:  # the root's tokens end last
                unit.reshard()
                unit.reduce_gradients()

        module.register_forward_pre_hook(pre_forward)
        module.register_forward_hook(post_forward)
        for whole in unit.wholes:
            if whole.requires_grad:
                whole.register_post_accumulate_grad_hook(got_gradient)

    def _post_backward(self) -> None:
        """Take what no hook has: the root's, and units with an unused parameter."""
        self._callback_queued = False
        for unit in self.units:
            unit.reshard()
            unit.reduce_gradients()
        for unit in self.units:
            unit.finish_gradients()


def find_owners(
    by_name: dict[str, nn.Module], modules: Sequence[str]
) -> Iterator[tuple[str, dict[nn.Parameter, list[Owner]]]]:
    """Yield each name with the parameters whose innermost named module it is.

    Raises:
        ValueError: a parameter in no named module, or tied over two.
    """
    found: dict[str, dict[nn.Parameter, list[Owner]]] = {name: {} for name in modules}
    home_of: dict[nn.Parameter, str] = {}
    for prefix, module in by_name.items():
        around = [n for n in modules if not n or f"{prefix}.".startswith(f"{n}.")]
        for name, param in module._parameters.items():
            if param is None:
                continue
            if not around:
                raise ValueError(f"{prefix}.{name} is in none of the modules named")
            home = max(around, key=len)
            if home_of.setdefault(param, home) != home:
                raise ValueError(f"{prefix}.{name} is tied over two units")
            found[home].setdefault(param, []).append((module, name))
    yield from ((name, owners) for name, owners in found.items() if owners)
