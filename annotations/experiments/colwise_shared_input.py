"""Collectives of three column-parallel layers that read one plain tensor."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import ColwiseParallel as Column
from torch.distributed.tensor.parallel import PrepareModuleInput, parallelize_module
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
mesh = init_device_mesh("cpu", (2,))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (torch.nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        return self.q(x) + self.k(x) + self.v(x)


def count(layout, is_prepared):
    """What forward sends, and what forward and backward send."""
    block = PrepareModuleInput(input_layouts=layout, desired_input_layouts=Replicate())
    own = Column() if is_prepared else Column(input_layouts=layout)
    plan = ({"": block} if is_prepared else {}) | dict.fromkeys("qkv", own)
    model = parallelize_module(Block(), mesh, plan)
    with CommDebugMode() as comm:
        output = model(torch.ones(2, 4, requires_grad=True))
        forward = comm.get_total_counts()
        output.sum().backward()
    return forward, comm.get_total_counts()


print("alone =", count(Replicate(), False)[1])
print("prepared =", count(Replicate(), True)[1])
print("gathers =", [count(Shard(0), is_prepared)[0] for is_prepared in (False, True)])
