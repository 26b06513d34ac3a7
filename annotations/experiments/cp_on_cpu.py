"""What context_parallel raises on a CPU, by default and with the plain kernel."""

import json
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental import context_parallel
from torch.nn.attention import SDPBackend, sdpa_kernel

RANKS = 2

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
for name, how in (("default", nullcontext()), ("plain", sdpa_kernel(SDPBackend.MATH))):
    parts = [torch.randn(1, 2, 8, 4) for _ in range(3)]
    raised = "nothing"
    with context_parallel(mesh, buffers=parts, buffer_seq_dims=[2, 2, 2]), how:
        try:
            torch.nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        except Exception as error:
            raised = type(error).__name__
    if dist.get_rank() == 0:
        print(name, "=", json.dumps(raised))
