"""What an attention that was imported by name sees under context_parallel."""

import json

import torch
import torch.distributed as dist
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.experimental._context_parallel import _attention as cp
from torch.nn.functional import scaled_dot_product_attention as by_name

RANKS = 2

dist.init_process_group("gloo")
mesh = dist.init_device_mesh("cpu", (2,))
torch.manual_seed(0)
whole = torch.randn(3, 1, 2, 16, 4)
expected = by_name(*whole, is_causal=True)
parts = [part.clone() for part in whole]
with context_parallel(mesh, buffers=parts, buffer_seq_dims=[2, 2, 2]):
    output = by_name(*parts, is_causal=True)
    result = cp.context_parallel_unshard(mesh, [output], [2])[0]
close = torch.isclose(result, expected, atol=1e-5).all(-1).all(1)
if dist.get_rank() == 0:
    print("tokens_right =", json.dumps(close[0].nonzero().flatten().tolist()))
