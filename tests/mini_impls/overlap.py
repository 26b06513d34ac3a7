"""What hides behind what: products between the start of a call and the wait for it."""

from collections import Counter
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
    """A work that notes when it is first waited for."""

    def __init__(self, work, note):
        self.work, self.note = work, note

    def wait(self):
        if self.note is not None:
            self.note()
        self.note = None
        return self.work.wait()


class Overlap(TorchDispatchMode):
    """Counts, of the calls that return a handle, those with a product before the wait.

    `most` says how many of one kind were under way at once.
    """

    def __init__(self):
        super().__init__()
        self.products = 0
        self.calls, self.hidden = Counter(), Counter()
        self.under_way, self.most = Counter(), Counter()
        self.patches = [
            patch.object(dist, name, self.watched(name, getattr(dist, name)))
            for name in ASYNC
        ]

    def watched(self, name, real):
        def call(*args, **kwargs):
            work = real(*args, **kwargs)
            if work is None:
                return None
            before = self.products
            self.calls[name] += 1
            self.under_way[name] += 1
            self.most[name] = max(self.most[name], self.under_way[name])

            def wait():
                self.under_way[name] -= 1
                self.hidden[name] += self.products > before

            return Handle(work, wait)

        return call

    def __enter__(self):
        for each in self.patches:
            each.start()
        return super().__enter__()

    def __exit__(self, *error):
        for each in self.patches:
            each.stop()
        return super().__exit__(*error)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.products += func.__name__.split(".")[0] in PRODUCTS
        return func(*args, **(kwargs or {}))

    def summary(self):
        return {
            name: (self.hidden[name], count, self.most[name])
            for name, count in sorted(self.calls.items())
        }
