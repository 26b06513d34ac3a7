"""What PowerSGD makes of a gradient that has fewer directions than P has columns."""

import json

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powersgd
from torch.nn.parallel import DistributedDataParallel

from mini_impls.compression import CompressedDataParallel, PowerSGD

RANKS = 2
dist.init_process_group("gloo")
torch.manual_seed(7)
gradients = [torch.randn(30, rank) @ torch.randn(rank, 20) for rank in range(3)]
found = {"torch": [], "torch_epsilon": [], "mini": []}
for name, gradient in [(name, gradient) for name in found for gradient in gradients]:
    layer = torch.nn.Linear(20, 30, bias=False)
    if name == "mini":
        model = CompressedDataParallel(layer, dist.group.WORLD, PowerSGD(2))
    else:
        model = DistributedDataParallel(layer)
        state = powersgd.PowerSGDState(None, 2, start_powerSGD_iter=2)
        state.orthogonalization_epsilon = 1e-8 if name == "torch_epsilon" else 0
        model.register_comm_hook(state, powersgd.powerSGD_hook)
    for _ in range(3):  # the third is the first that is compressed
        layer.weight.grad = None
        (model(torch.eye(20)).T * gradient).sum().backward()
    off = (layer.weight.grad - gradient).abs().max() / gradient.abs().max().clamp(1)
    # How far off, rounding decides: it differs from processor to processor.
    is_as = "not a number" if off.isnan() else "off" if off > 0.01 else "exact"
    found[name].append(is_as)
if dist.get_rank() == 0:
    for name, each in found.items():
        print(name, "=", json.dumps(each))
dist.destroy_process_group()
