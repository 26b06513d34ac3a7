"""The one place for what Megatron needs where there is no GPU, each with its reason.

Nothing of Megatron is edited: torch is told to answer differently while Megatron runs.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache, wraps
from importlib import import_module
from types import FunctionType
from typing import Any

import torch
import torch.distributed as dist
from torch.overrides import TorchFunctionMode

from readerkit.evidence.record import Shim

CPU = torch.device("cpu")


@contextmanager
def _replaced(
    name: str, function: Callable[..., Any], of: Any = torch.cuda
) -> Iterator[None]:
    original = getattr(of, name)
    setattr(of, name, function)
    try:
        yield
    finally:
        setattr(of, name, original)


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


class _Stream:
    """The one stream of a CPU: what is asked of it has happened."""

    def wait_stream(self, other: object) -> None:
        """Return at once."""

    def record_event(self) -> "_Stream":
        """Return what may be waited for."""
        return self

    def synchronize(self) -> None:
        """Return at once."""


@contextmanager
def _one_stream() -> Iterator[None]:
    only = _Stream()
    with (
        _replaced("Stream", lambda *args, **kwargs: only),
        _replaced("current_stream", lambda *args: only),
        _replaced("stream", lambda stream: nullcontext()),
    ):
        yield


@contextmanager
def _listed_splits() -> Iterator[None]:
    call = dist.all_to_all_single

    def listed(*args: Any, **kwargs: Any) -> Any:
        is_tensor = {k: isinstance(v, torch.Tensor) for k, v in kwargs.items()}
        lists = {k: v.tolist() if is_tensor[k] else v for k, v in kwargs.items()}
        return call(*args, **lists)

    with _replaced("all_to_all_single", listed, dist):
        yield


@contextmanager
def _cuda_types() -> Iterator[None]:
    of_tensor = torch.Tensor.type

    def named(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        found = of_tensor(self, *args, **kwargs)
        if not isinstance(found, str):
            return found  # the tensor in another type
        # Below a function mode torch looks the method up once more, and comes here.
        return f"torch.cuda.{found.removeprefix('torch.').removeprefix('cuda.')}"

    with _replaced("type", named, torch.Tensor):
        yield


@contextmanager
def _no_general_gemm() -> Iterator[None]:
    moe_utils: Any = import_module("megatron.core.transformer.moe.moe_utils")
    moe_utils.__dict__.setdefault("te_general_gemm", None)
    yield


_IS_EAGER = ContextVar("is_eager", default=False)


@contextmanager
def _eager() -> Iterator[None]:
    token = _IS_EAGER.set(True)
    try:
        with torch.compiler.set_stance("force_eager"):
            yield
    finally:
        _IS_EAGER.reset(token)


@contextmanager
def compiling_late() -> Iterator[None]:
    """Let torch.compile wait until what it was given is called.

    Megatron gives it functions when it is imported, and it would load its compiler for
    the first of them: a second, for functions that most comparisons never call.
    """
    compile_now: Any = torch.compile

    def compile_late(function: Any = None, **options: Any) -> Any:
        if not isinstance(function, FunctionType):
            return compile_now(function, **options)
        compiled = cache(lambda: compile_now(function, **options))

        @wraps(function)
        def late(*args: Any, **kwargs: Any) -> Any:
            run = function if _IS_EAGER.get() else compiled()
            return run(*args, **kwargs)

        return late

    with _replaced("compile", compile_late, torch):
        yield


@contextmanager
def _cpu_streams() -> Iterator[None]:
    """Let Megatron's tracker keep states of the CPU's generator."""
    random: Any = import_module("megatron.core.tensor_parallel.random")
    logger = logging.getLogger(random.__name__)
    replaced = (
        (random, "_get_cuda_rng_state", lambda **_: torch.get_rng_state()),
        (random, "_set_cuda_rng_state", lambda state, **_: torch.set_rng_state(state)),
        (torch.cuda, "get_rng_state", torch.get_rng_state),
        (torch.cuda, "manual_seed", torch.default_generator.manual_seed),
        (logger, "warning", lambda *_: None),
    )
    with ExitStack() as stack:
        for of, name, function in replaced:
            stack.enter_context(_replaced(name, function, of))
        yield


@contextmanager
def _padded_gather() -> Iterator[None]:
    """Let gloo gather parts of several sizes: ranks send as much as the longest."""
    call = dist.all_gather

    def padded(parts: list[torch.Tensor], part: torch.Tensor, group: Any = None) -> Any:
        longest = max(each.numel() for each in parts)
        sent = part.new_zeros(longest)
        sent[: part.numel()] = part
        received = part.new_empty(len(parts), longest)
        work = call(list(received), sent, group=group)
        for each, row in zip(parts, received, strict=True):
            each.copy_(row[: each.numel()])
        return work

    with _replaced("all_gather", padded, dist):
        yield


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
    "one_stream": (
        "torch.cuda has one stream, on which everything has happened: Megatron's "
        "all-to-all dispatcher copies sizes to the host on a stream of its own",
        _one_stream,
    ),
    "listed_splits": (
        "all_to_all_single takes sizes in a tensor: Megatron makes numbers of them "
        "while it copies them to the host, and on a CPU it copies nothing",
        _listed_splits,
    ),
    "cuda_types": (
        "tensor.type() names the type of a tensor on a GPU: by that name Megatron's "
        "optimizer tells parameters in 16 bits from others, and clips",
        _cuda_types,
    ),
    "cpu_streams": (
        "the CUDA generator is the CPU's, for Megatron's random streams too: they are "
        "states of it, and dropout on a CPU draws from no other. Megatron's warning "
        "that the CPU's has moved is not said",
        _cpu_streams,
    ),
    "no_general_gemm": (
        "moe_utils has te_general_gemm, None: Megatron's router asks for this name, "
        "which that module has only where Transformer Engine can be imported",
        _no_general_gemm,
    ),
    "eager": (
        "what torch.compile was given runs as it is written: Megatron compiles the "
        "count of a router's tokens",
        _eager,
    ),
    "padded_gather": (
        "all_gather takes parts of several sizes, filled up to the longest on the way: "
        "NCCL's takes them as they are, gloo's equal ones alone",
        _padded_gather,
    ),
}


ANYWHERE = ("no_general_gemm", "padded_gather")
"""Those that a GPU needs too: what is not installed, and what the mini does alike."""

ALL = ("current_device", "synchronize", "cuda_is_cpu", "one_stream", "listed_splits")
"""What an experiment on a CPU has: those that import nothing."""


def needed(names: Iterable[str], device_type: str) -> tuple[str, ...]:
    """Return which of these shims are applied on a device."""
    return tuple(n for n in names if device_type == "cpu" or n in ANYWHERE)


def describe(names: Iterable[str]) -> tuple[Shim, ...]:
    """Return what a record says of these shims."""
    return tuple(Shim(name, _SHIMS[name][0]) for name in names)


@contextmanager
def applied(names: Iterable[str], device: torch.device) -> Iterator[None]:
    """Apply inside `with` the shims that this device needs."""
    with ExitStack() as stack:
        for name in needed(names, device.type):
            stack.enter_context(_SHIMS[name][1]())
        yield
