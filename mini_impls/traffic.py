"""Counts what a mini really sends: each collective, its dtype and its bytes.

Follows:
- pytorch/pytorch: torch/distributed/tensor/debug/_comm_mode.py (which misses sends
  and receives)

Leaves out:
- call sites, order of waits, and the algorithm below a call: a ring moves other bytes
  than the payload counted here
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


@dataclass(frozen=True, slots=True)
class Call:
    """One collective or point-to-point call."""

    op: str
    dtype: torch.dtype
    payload_bytes: int
    """Bytes of the whole tensor: what an all-gather returns, a reduce-scatter takes."""


class CollectiveCounter(TorchDispatchMode):
    """Counts the collectives issued inside `with`, from the real calls."""

    names: Mapping[str, str] = {
        "allreduce_": "all_reduce",
        "allgather_": "all_gather",
        "_allgather_base_": "all_gather",
        "reduce_scatter_": "reduce_scatter",
        "_reduce_scatter_base_": "reduce_scatter",
        "broadcast_": "broadcast",
        "alltoall_": "all_to_all",
        "alltoall_base_": "all_to_all",
        "reduce_": "reduce",
        "gather_": "gather",
        "scatter_": "scatter",
        "send": "send",
        "recv_": "recv",
        "barrier": "barrier",
    }

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[Call] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Note the call and let it pass."""
        name = func.__name__.split(".")[0]
        if func.namespace == "c10d" and name in self.names:
            # The first two arguments hold the tensors, bare or in nested lists.
            both = [_tensors(arg) for arg in args[:2]]
            payload = max(sum(t.nbytes for t in tensors) for tensors in both)
            dtype = next(t.dtype for tensors in both for t in tensors)
            self.calls.append(Call(self.names[name], dtype, payload))
        return func(*args, **(kwargs or {}))

    def counts(self) -> dict[str, int]:
        """Return the number of calls of each operation."""
        return dict(Counter(call.op for call in self.calls))

    def payload_bytes(self) -> dict[str, int]:
        """Return the payload bytes of each operation."""
        total: Counter[str] = Counter()
        for call in self.calls:
            total[call.op] += call.payload_bytes
        return dict(total)

    def told(self) -> str:
        """Return the calls of each operation with their payload, as people read it."""
        payload = self.payload_bytes()
        each = (f"{n} {op} ({payload[op]:,} bytes)" for op, n in self.counts().items())
        return ", ".join(each) or "nothing"


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in _tensors(item)]
    return []
