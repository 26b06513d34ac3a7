"""What DDP's identity on the outputs does for a head that the loss leaves out."""

import json

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

RANKS = 2


class Heads(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.used = torch.nn.Linear(1, 1, bias=False)
        self.unused = torch.nn.Linear(1, 1, bias=False)

    def forward(self, inputs):
        self.made = self.used(inputs)
        return self.made, self.unused(inputs)


dist.init_process_group("gloo")
for name in ("plain", "find_unused_parameters", "static_graph"):
    options = {} if name == "plain" else {name: True}
    model = DistributedDataParallel(Heads(), **options)
    gradients = []
    try:
        for _ in range(4):
            model.zero_grad()
            output = model(torch.full((1, 1), 1.0 + 2 * dist.get_rank()))[0]
            output.sum().backward()
            gradients.append(model.module.used.weight.grad.item())
    except RuntimeError:
        gradients.append("RuntimeError")
    if dist.get_rank() == 0:
        copied = output.data_ptr() != model.module.made.data_ptr()
        print(f"{name} = {json.dumps(gradients)}\n{name}_copied = {json.dumps(copied)}")
dist.destroy_process_group()
