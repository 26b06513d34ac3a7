"""Elements that a step of each kind of AdamW makes in one operation, of 8 x 100."""

import json

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

RANKS = 1


class Watch(TorchDispatchMode):
    """The largest result of one operation that is a memory of its own."""

    largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        given = {id(leaf) for leaf in tree_leaves((args, kwargs))}
        new = [t for t in tree_leaves(result) if id(t) not in given]
        new = [t for t in new if isinstance(t, torch.Tensor) and t._base is None]
        self.largest = max(self.largest, sum(t.numel() for t in new))
        return result


found = {}
for kind in ("foreach", "fused", "for-loop"):
    params = [torch.nn.Parameter(torch.ones(100)) for _ in range(8)]
    options = {"foreach": kind == "foreach", "fused": kind == "fused"}
    optimizer = torch.optim.AdamW(params, **options)
    for _ in range(2):
        for param in params:
            param.grad = torch.ones(100)
        with Watch() as watch:
            optimizer.step()
    found[kind] = watch.largest
print("largest =", json.dumps(found))
