"""Sees every collective of a step: what, how much, in which order, from which line.

A dispatch mode meets each call on its way into C++, whoever makes it: Python, autograd,
or the reducer inside torch's DDP. Waits are methods of the work that a call returns,
and are seen there. A barrier is a call that carries nothing.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch._library.custom_ops import OPDEFS
from torch._subclasses.fake_tensor import FakeTensor
from torch.distributed import _functional_collectives as funcol
from torch.utils._python_dispatch import TorchDispatchMode

from mini_impls.compare.ops import OPS, PRODUCTS
from mini_impls.compare.stacks import Stacks
from mini_impls.recorder import Wait, replaced_waits
from readerkit.content.vocabulary import Phase
from readerkit.evidence.record import Event, ExecutedLine

Work: Any = dist.Work


@dataclass
class _Call:
    """An event in the making."""

    phase: Phase
    op: str
    group: str
    tensors: list[Tensor]
    payload_bytes: int
    issue: int
    site: ExecutedLine | None
    stack: int
    peer: int | None
    reduction: str | None
    products_before: int
    gradients_ready: int | None
    wait: int | None = None
    wait_site: ExecutedLine | None = None
    products_at_wait: int | None = None
    gradients_at_wait: int | None = None

    def to_event(self) -> Event:
        hidden = None
        if self.products_at_wait is not None:
            hidden = self.products_at_wait - self.products_before
        return Event(
            phase=self.phase,
            op=self.op,
            group=self.group,
            dtype=str(self.tensors[0].dtype).removeprefix("torch."),
            payload_bytes=self.payload_bytes,
            issue=self.issue,
            wait=self.wait,
            site=self.site,
            stack=self.stack,
            wait_site=self.wait_site,
            peer=self.peer,
            reduction=self.reduction,
            products_before=self.products_before,
            products_hidden=hidden,
            gradients_ready=self.gradients_ready,
            gradients_at_wait=self.gradients_at_wait,
        )


class CollectiveTrace(TorchDispatchMode):
    """Records the collectives issued inside `with`; set `phase` as the step goes on."""

    def __init__(self, stacks: Stacks, groups: Mapping[str, str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.stacks = stacks
        self.groups = groups
        """Name of a process group to what it is for."""
        self.phase: Phase = "forward"
        self.gradients_ready: int | None = None
        self._marks: dict[int, Phase] = {}
        self._calls: list[_Call] = []
        self._events: tuple[Event, ...] = ()
        self._works: dict[int, tuple[Any, list[_Call]]] = {}
        self._batch: list[_Call] = []
        """Sends and receives that NCCL may start as one, with one work for all."""
        self._futures: dict[int, _Call] = {}
        self._order = 0
        self._products = 0

    def set_phase(self, phase: Phase, tensor: Tensor | None = None) -> None:
        """Enter a phase, or say which phase a tensor to be sent or received is of."""
        if tensor is None:
            self.phase = phase
        else:
            self._marks[_memory(tensor)] = phase

    def events(self) -> tuple[Event, ...]:
        """Return what was seen, in order of issue."""
        return self._events

    # --- 1. issues ---

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Note the call and let it pass."""
        if FakeTensor in types:
            return func(*args, **(kwargs or {}))  # shapes that DTensor tries out
        if any(kind not in (Tensor, torch.nn.Parameter) for kind in types):
            return NotImplemented  # a DTensor: what it does inside comes by here again
        name = func.__name__.split(".")[0]
        if func.namespace == "aten" and name in PRODUCTS:
            self._products += 1
        if func.namespace == "_c10d_functional" and name == "wait_tensor":
            self._note_wait(self._futures.pop(_memory(args[0]), None))
        call = None
        if (operator := OPDEFS.get(func._schema.name)) is not None:
            with self:  # an operator written in Python: see what it does inside
                return operator._init_fn(*args, **(kwargs or {}))
        if func.namespace in ("c10d", "_c10d_functional") and name in OPS:
            call = self._note_issue(OPS[name], func, args, kwargs or {})
        result = func(*args, **(kwargs or {}))
        if call is not None:
            self._note_result(call, result)
            if not _arguments(func, args, kwargs or {}).get("async_op", True):
                # Waited for once it returns; by Python on gloo, on NCCL in C++.
                self._note_wait(call)
        return result

    def _note_issue(
        self, op: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> _Call:
        named = _arguments(func, args, kwargs)
        # Input and output are the first two arguments, or there is only one of them.
        both = [found for arg in args[:2] if (found := _tensors(arg))]
        tensors = max(both, key=_nbytes)
        payload = 0 if op == "barrier" else _nbytes(tensors)
        size = named.get("group_size", 1)
        if func.namespace == "_c10d_functional" and op == "all_gather":
            payload *= size  # the output does not exist yet
        peer = next((named[n] for n in ("dst", "src", "root_rank") if n in named), None)
        if op == "all_to_all":
            peer = _only_destination(named.get("input_split_sizes") or ())
        call = _Call(
            phase=self._phase_of(tensors[0]),
            op=op,
            group=self._group_of(named),
            tensors=tensors,
            payload_bytes=payload,
            issue=self._tick(),
            site=self.stacks.site(sys._getframe(1)),
            stack=self.stacks.number(sys._getframe(1)),
            peer=peer,
            reduction=_reduction(named.get("reduce_op")),
            products_before=self._products,
            gradients_ready=self.gradients_ready,
        )
        self._calls.append(call)
        return call

    def _note_result(self, call: _Call, result: Any) -> None:
        last = result[-1] if isinstance(result, tuple) else result
        if isinstance(last, torch.ScriptObject):
            work = Work.unbox(last)
            # Held, so that the work keeps its one Python object, which is waited for.
            self._works[id(work)] = work, [call]
        if call.op in ("send", "recv"):
            self._batch.append(call)
        for tensor in _tensors(result):
            self._futures[_memory(tensor)] = call

    def _phase_of(self, tensor: Tensor) -> Phase:
        # One batch of a pipeline's sends and receives may be of both phases.
        return self._marks.pop(_memory(tensor), self.phase)

    def _group_of(self, named: Mapping[str, Any]) -> str:
        group = named.get("process_group", named.get("group_name"))
        if isinstance(group, torch.ScriptObject):
            group = cast(Any, dist.ProcessGroup).unbox(group)
        name = getattr(group, "group_name", group)
        return self.groups.get(name, f"group {name}")

    def _tick(self) -> int:
        self._order += 1
        return self._order - 1

    # --- 2. waits ---

    def _note_wait(self, call: _Call | None) -> None:
        if call is not None and call.wait is None:
            call.wait = self._tick()
            call.wait_site = self.stacks.site(sys._getframe(1))
            call.products_at_wait = self._products
            call.gradients_at_wait = self.gradients_ready

    @contextmanager
    def _seeing_waits(self) -> Iterator[None]:
        def noting(original: Wait) -> Wait:
            def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
                for call in self._works.get(id(work), (None, []))[1]:
                    self._note_wait(call)
                return original(work, *args, **kwargs)

            return wait

        wait_tensor: Any = funcol.wait_tensor

        def noting_wait_tensor(tensor: Tensor) -> Tensor:
            # Inside a mode's own handler this call would not come by the mode.
            self._note_wait(self._futures.pop(_memory(tensor), None))
            waited: Tensor = wait_tensor(tensor)
            return waited

        group: Any = dist.ProcessGroup
        start, end = group._start_coalescing, group._end_coalescing

        def noting_start(*args: Any) -> Any:
            self._batch.clear()
            return start(*args)

        def noting_end(*args: Any) -> Any:
            work = end(*args)
            self._works[id(work)] = work, list(self._batch)
            return work

        funcol.wait_tensor = noting_wait_tensor
        group._start_coalescing, group._end_coalescing = noting_start, noting_end
        try:
            with replaced_waits(noting):
                yield
        finally:
            funcol.wait_tensor = wait_tensor
            group._start_coalescing, group._end_coalescing = start, end

    @contextmanager
    def watching(self, watched: Iterable[Tensor]) -> Iterator[None]:
        """Trace; count the gradients of `watched` as backward computes them."""
        handles = []
        for leaf in watched:
            self.gradients_ready = 0
            hook: Any = leaf.register_hook
            handles.append(hook(self._count_gradient))
        try:
            with self._seeing_waits(), self:
                yield
        finally:
            for handle in handles:
                handle.remove()
            self._events = tuple(call.to_event() for call in self._calls)
            self._calls.clear()  # they hold the tensors that were sent
            self._works.clear()
            self._batch.clear()
            self._futures.clear()

    def _count_gradient(self, grad: Tensor) -> None:
        assert self.gradients_ready is not None
        self.gradients_ready += 1


def _arguments(func: Any, args: tuple[Any, ...], kwargs: Any) -> dict[str, Any]:
    """Return what an operator is called with, by name."""
    named = zip(func._schema.arguments, args, strict=False)
    return {**{argument.name: value for argument, value in named}, **kwargs}


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


def _only_destination(sizes: Sequence[int]) -> int | None:
    """Return to which rank an all-to-all sends all there is, where it is one rank."""
    full = [rank for rank, size in enumerate(sizes) if size]
    return full[0] if len(full) == 1 else None


def _nbytes(tensors: list[Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)


def _memory(tensor: Tensor) -> int:
    elem = getattr(tensor, "elem", tensor)  # what an AsyncCollectiveTensor wraps
    return int(elem.untyped_storage().data_ptr())


def _reduction(value: Any) -> str | None:
    if isinstance(value, torch.ScriptObject):
        red_op_type: Any = dist.ReduceOp.RedOpType
        value = red_op_type(cast(Any, value).op())
    if value is None:
        return None
    return str(value).rsplit(".", 1)[-1].lower()
