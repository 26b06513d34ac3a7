"""What hides behind what: products between the start of a call and the wait for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode

ASYNC = (
    "all_reduce",
    "reduce",
    "broadcast",
    "all_gather_single",
    "reduce_scatter_single",
    "isend",
    "irecv",
)
PRODUCTS = ("mm", "addmm", "bmm")


class Handle:
    """A work that tells when it is first waited for."""

    def __init__(self, work: dist.Work, tell: Callable[[], None]) -> None:
        self.work = work
        self.tell: Callable[[], None] | None = tell

    def wait(self) -> bool:
        """Tell, and wait."""
        if self.tell is not None:
            self.tell()
        self.tell = None
        return self.work.wait()


class Overlap(TorchDispatchMode):
    """Counts calls that return a handle, and those with a product before the wait."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.products = 0
        self.calls: Counter[str] = Counter()
        self.hidden: Counter[str] = Counter()
        self.under_way: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        """Of each kind, how many were under way at once."""
        self.patches = [
            patch.object(dist, name, self.watched(name, getattr(dist, name)))
            for name in ASYNC
        ]

    def watched(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        """Return the call with its handle watched, if it returns one."""

        def call(*args: Any, **kwargs: Any) -> Handle | None:
            work = real(*args, **kwargs)
            if work is None:
                return None
            before = self.products
            self.calls[name] += 1
            self.under_way[name] += 1
            self.most[name] = max(self.most[name], self.under_way[name])

            def tell() -> None:
                self.under_way[name] -= 1
                self.hidden[name] += self.products > before

            return Handle(work, tell)

        return call

    def __enter__(self) -> Overlap:
        """Begin to watch."""
        for each in self.patches:
            each.start()
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        """Leave everything as it was."""
        for each in self.patches:
            each.stop()
        super().__exit__(*error)  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Count the products, and let every call pass."""
        self.products += func.__name__.split(".")[0] in PRODUCTS
        return func(*args, **(kwargs or {}))

    def summary(self) -> dict[str, tuple[int, int, int]]:
        """Return, of each kind, how many were hidden, were there, were most at once."""
        return {
            name: (self.hidden[name], count, self.most[name])
            for name, count in sorted(self.calls.items())
        }
