"""ZeRO stage 3: only its owner keeps a parameter; the others borrow it for a module.

The first two stages are those of `zero.py`, but for the broadcast after the update:
whoever needs a parameter next borrows it.

    forward    broadcast | run | free
    backward   broadcast | run | free, each gradient reduced to its owner

Follows:
- ZeRO (arXiv 1910.02054), sections 5.3 and 7.2.2 (stage 3, and what it sends)

Leaves out:
- parameters read from outside their module, unless `leaf_modules` names the reader's
  class; outputs in anything but tuples, lists and dictionaries
- gathering ahead of time, and parameters cut across ranks: `fsdp.py`
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Variable
from torch.utils._pytree import tree_leaves

from mini_impls.zero import Params, ZeroStage2


class ZeroStage3(ZeroStage2):
    """Stage 2, and only the owner keeps a parameter between two uses of its module."""

    def __init__(
        self,
        module: nn.Module,
        params: Params,
        optimizer_class: Callable[..., torch.optim.Optimizer],
        group: dist.ProcessGroup,
        *,
        leaf_modules: tuple[type[nn.Module], ...] = (nn.MultiheadAttention,),
        **defaults: Any,
    ) -> None:
        super().__init__(params, optimizer_class, group, **defaults)
        self.leaf_modules = leaf_modules
        self.unsharded = set(self.params)
        self._callback_queued = False
        for param in self.params:
            self._reshard(param)
        inside_leaf = {
            child
            for leaf in module.modules()
            if isinstance(leaf, leaf_modules)
            for child in leaf.modules()
            if child is not leaf
        }
        for submodule in module.modules():
            if submodule not in inside_leaf and list(self._params_of(submodule)):
                submodule.register_forward_pre_hook(self._pre_forward)
                submodule.register_forward_hook(self._post_forward)

    def _params_of(self, module: nn.Module) -> Iterator[nn.Parameter]:
        # A leaf borrows what its children hold too: it reads that without running them.
        return module.parameters(recurse=isinstance(module, self.leaf_modules))

    # --- 1. borrow a parameter, and give it back ---

    def _unshard(self, params: Iterable[nn.Parameter]) -> None:
        handles = []
        for param in params:
            if param in self.unsharded or param not in self.param_to_rank:
                continue
            owner = self.param_to_rank[param]
            if owner != self.rank:
                param.untyped_storage().resize_(param.nbytes)
            # whole; `.data`: autograd must not take this for a change of what it saved
            handle = dist.broadcast(
                param.data, group_src=owner, group=self.group, async_op=True
            )
            handles.append(handle)
            self.unsharded.add(param)
        for handle in handles:
            handle.wait()

    def _reshard(self, param: nn.Parameter) -> None:
        # The tensor stays, its memory goes: what autograd saved in forward refers to
        # this storage and finds it filled again in backward.
        if param in self.unsharded:
            self.unsharded.discard(param)
            if self.param_to_rank[param] != self.rank:
                param.untyped_storage().resize_(0)

    # --- 2. around a module ---

    def _pre_forward(self, module: nn.Module, *unused: Any) -> None:
        self._unshard(self._params_of(module))

    def _post_forward(self, module: nn.Module, args: Any, output: Any) -> None:
        for param in self._params_of(module):
            self._reshard(param)
        for leaf in tree_leaves(output):
            if isinstance(leaf, Tensor) and leaf.requires_grad:
                # its gradient comes before those of the module's own parameters
                leaf.register_hook(lambda grad: self._pre_backward(module))

    def _pre_backward(self, module: nn.Module) -> None:
        if not self._callback_queued:
            self._callback_queued = True
            Variable._execution_engine.queue_callback(self._post_backward)
        self._unshard(self._params_of(module))

    def _reduce_gradient(self, param: Tensor) -> None:
        super()._reduce_gradient(param)
        assert isinstance(param, nn.Parameter)
        self._reshard(param)

    def _post_backward(self) -> None:
        """Catch what no gradient has resharded: frozen parameters."""
        self._callback_queued = False
        for param in list(self.unsharded):
            self._reshard(param)

    # --- 3. around a step ---

    def _sync_params(self) -> None:
        """Do nothing: whoever needs a parameter next borrows it from its owner."""

    def full_parameters(self) -> dict[nn.Parameter, Tensor]:
        """Return a copy of every parameter; all ranks must call it."""
        self._unshard(self.params)
        copies = super().full_parameters()
        for param in self.params:
            self._reshard(param)
        return copies
