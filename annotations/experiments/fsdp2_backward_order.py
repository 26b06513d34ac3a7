"""What FSDP2 does around the backward of a block in the middle of three, in order."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.fsdp._fully_shard import _fsdp_param_group as groups

RANKS = 2
dist.init_process_group("gloo")
blocks = [torch.nn.Linear(8, 8, bias=False) for _ in range(3)]
model = torch.nn.Sequential(*blocks)
for each in (*blocks, model):
    fully_shard(each, mesh=init_device_mesh("cpu", (2,)))
seen = []


def traced(owner, name, what):
    real = getattr(owner, name)

    def call(of, *args, **kwargs):
        params = of if isinstance(of, list) else of.fsdp_params
        seen.extend([what] if params and params[0]._param_fqn == "1.weight" else [])
        return real(of, *args, **kwargs)

    setattr(owner, name, call)


blocks[1].register_full_backward_hook(lambda *_: seen.append("compute"))
loss = model(torch.ones(1, 8, requires_grad=True)).sum()
traced(groups.FSDPParamGroup, "wait_for_unshard", "wait")
traced(groups.FSDPParamGroup, "_backward_prefetch", "prefetch")
traced(groups.FSDPParamGroup, "reshard", "free")
traced(groups, "foreach_reduce", "reduce_scatter")
loss.backward()
if dist.get_rank() == 0:
    print("order =", json.dumps(seen))
dist.destroy_process_group()
