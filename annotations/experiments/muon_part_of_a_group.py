"""What TensorParallelMuon.orthogonalize makes of less than one group of heads."""

from types import SimpleNamespace

import torch
from megatron.core.optimizer.muon import TensorParallelMuon

UPSTREAMS = ["megatron"]

param = torch.nn.Parameter(torch.zeros(4, 6))
optimizer = SimpleNamespace(
    pg_collection=None,
    mode="blockwise",
    split_qkv=True,
    is_qkv_fn=lambda p: True,
    qkv_split_shapes=(4, 2, 2),
    scaled_orthogonalize_fn=lambda part, group, dim: part,
)
for name, rows in (("whole", 8), ("half", 4)):
    try:
        TensorParallelMuon.orthogonalize(optimizer, param, torch.ones(rows, 6))
        print(f'{name} = "split"')
    except RuntimeError as error:
        print(f'{name} = "{type(error).__name__}"')
