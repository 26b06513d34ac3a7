"""Which operations keep a weight's memory once its `.data` is another tensor."""

import json

import torch
from torch.nn import functional

RANKS = 1
OPERATIONS = {
    "nothing": lambda x, w: x,
    "product_with_leaf": lambda x, w: x @ w,
    "elementwise": lambda x, w: x * w,
    "layer_norm": lambda x, w: functional.layer_norm(x, x.shape, w),
    "linear": functional.linear,
    "product_with_transpose": lambda x, w: x @ w.T,
}

held = {}
for name, run in OPERATIONS.items():
    weight = torch.nn.Parameter(torch.ones(8, 8))
    x = torch.ones(8, 8, requires_grad=True)
    graph, memory = run(x, weight), weight.data.untyped_storage()
    weight.data = torch.empty(0)  # how DeepSpeed's stage 3 frees a parameter
    held[name] = torch._C._storage_Use_Count(memory._cdata)
kept = [name for name, users in held.items() if users > held["nothing"]]
print("keeps =", json.dumps(kept))
