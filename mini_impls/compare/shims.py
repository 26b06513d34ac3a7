"""The one place for what Megatron needs where there is no GPU, each with its reason.

Nothing of Megatron is edited: torch is told to answer differently while Megatron runs.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from readerkit.evidence.record import Shim

CPU = torch.device("cpu")


@contextmanager
def _replaced(name: str, function: Callable[..., Any]) -> Iterator[None]:
    original = getattr(torch.cuda, name)
    setattr(torch.cuda, name, function)
    try:
        yield
    finally:
        setattr(torch.cuda, name, original)


class _CudaIsCpu(TorchFunctionMode):
    """Rewrites `device='cuda'` in every call into torch."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Call with the device that is there."""
        kwargs = dict(kwargs or {})
        if "device" in kwargs and "cuda" in str(kwargs["device"]):
            kwargs["device"] = CPU
        return func(*args, **kwargs)


_SHIMS: dict[str, tuple[str, Callable[[], AbstractContextManager[Any]]]] = {
    "current_device": (
        "torch.cuda.current_device() answers with the CPU: Megatron allocates its "
        "buffers on the current CUDA device",
        lambda: _replaced("current_device", lambda: CPU),
    ),
    "synchronize": (
        "torch.cuda.synchronize() does nothing: Megatron's pipeline waits for the "
        "device after batched sends and receives",
        lambda: _replaced("synchronize", lambda *args: None),
    ),
    "cuda_is_cpu": (
        "device='cuda' means the CPU: Megatron's pipeline allocates receive buffers "
        "and counters by that name",
        _CudaIsCpu,
    ),
}


ALL = tuple(_SHIMS)


def describe(names: Iterable[str]) -> tuple[Shim, ...]:
    """Return what a record says of these shims."""
    return tuple(Shim(name, _SHIMS[name][0]) for name in names)


@contextmanager
def applied(names: Iterable[str], device: torch.device) -> Iterator[None]:
    """Apply shims inside `with`; on a GPU none is needed."""
    with ExitStack() as stack:
        for name in names if device.type == "cpu" else ():
            stack.enter_context(_SHIMS[name][1]())
        yield
