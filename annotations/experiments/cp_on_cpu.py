"""What attention does on a CPU under context_parallel, causal and without a mask."""

import json
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.experimental import context_parallel
from torch.nn.attention import SDPBackend, sdpa_kernel

RANKS = 2

dist.init_process_group("gloo")
mesh = dist.init_device_mesh("cpu", (2,))


def run(how, backward=False, **options):
    """Return what the call raises, or what it sends."""
    parts = [torch.randn(1, 2, 8, 4) for _ in range(3)]
    with context_parallel(mesh, buffers=parts, buffer_seq_dims=[2, 2, 2]), how:
        try:
            with CommDebugMode() as sent:
                qkv = [part * torch.ones(4, requires_grad=backward) for part in parts]
                out = torch.nn.functional.scaled_dot_product_attention(*qkv, **options)
            if backward:
                out.sum().backward()
        except Exception as error:
            return type(error).__name__
    return {str(op).split(".")[-1]: n for op, n in sent.get_comm_counts().items()}


seen = {
    "default": run(nullcontext(), is_causal=True),
    "plain": run(sdpa_kernel(SDPBackend.MATH), is_causal=True),
    "plain_without_mask": run(sdpa_kernel(SDPBackend.MATH), backward=True),
}
if dist.get_rank() == 0:
    print("\n".join(f"{name} = {json.dumps(what)}" for name, what in seen.items()))
