"""Gradients of a backward in `context_parallel`, and after it, by how it was cut."""

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.experimental._context_parallel import _attention as cp

RANKS = 2

dist.init_process_group("gloo")
NAME, CPU = "_scaled_dot_product_flash_attention", "_for_cpu"
aten, mesh = torch.ops.aten, dist.init_device_mesh("cpu", (2,))
cpu, back, flash = (getattr(aten, NAME + s) for s in (CPU, CPU + "_backward", ""))
rest = None, None, 0, 0, torch.ones(2).long(), torch.tensor(0), torch.empty(0)
lib = torch.library.Library("aten", "IMPL")  # the GPU's operators, by the CPU's kernels
lib.impl(NAME, lambda q, k, v, p=0, m=False, **_: (*cpu(q, k, v, p, m), *rest), "CPU")
lib.impl(NAME + "_backward", lambda *g, **_: back(*g[:6], 0.0, g[11]), "CPU")


def right(tokens, inside, lent=False):
    whole = [torch.randn(1, 2, tokens, 4, requires_grad=True) for _ in range(3)]
    cpu(*whole, 0.0, True)[0].square().sum().backward()
    parts = [part.detach().clone() for part in whole]
    with context_parallel(mesh, buffers=parts, buffer_seq_dims=[2, 2, 2]):
        own = [parts[i].clone().requires_grad_() for i in range(1 if lent else 3)]
        own += parts[len(own) :]
        qkv = [DTensor.from_local(part, mesh, [Shard(2)]) for part in own]
        loss = flash(*qkv, is_causal=True)[0].to_local().square().sum()
        loss.backward() if inside else None
    None if inside else loss.backward()
    grads = [part.grad for part in own if part.requires_grad]
    found = cp.context_parallel_unshard(mesh, grads, [2] * len(grads))
    off = [(f - p.grad).abs().max() for f, p in zip(found, whole, strict=False)]
    return bool(max(off) < 1e-4)


torch.manual_seed(0)
cases = right(16, True), right(16, False), right(14, False), right(14, False, True)
print("right =", str([*cases]).lower()) if dist.get_rank() == 0 else None
