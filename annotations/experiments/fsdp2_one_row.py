"""A (1, 8) parameter of FSDP2 on two ranks: what is stored, what is gathered."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard

RANKS = 2

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))


def refusal(module, **options):
    try:
        fully_shard(module, mesh=mesh, **options)(torch.ones(1, 2))
    except (AssertionError, NotImplementedError) as error:
        return f"{type(error).__name__}: {str(error).split(' but ')[0][:45].strip()}"


model = fully_shard(torch.nn.Linear(8, 1, bias=False), mesh=mesh)
param = model._get_fsdp_state()._fsdp_param_group.fsdp_params[0]
model(torch.ones(1, 8))
mine = [param.sharded_param.to_local().numel(), param._sharded_param_data.numel()]
both = [None, None]
dist.all_gather_object(both, mine)
odd = refusal(torch.nn.Linear(7, 2), shard_placement_fn=lambda p: Shard(p.ndim - 1))
layers = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2).bfloat16()
trained = refusal(torch.nn.Sequential(*layers))
if dist.get_rank() == 0:
    print("shards =", [shard for shard, _ in both])
    print("stored =", [stored for _, stored in both])
    print("gathered =", param.all_gather_outputs[0].numel())
    print("uneven_second_dimension =", json.dumps(odd))
    print("two_dtypes =", json.dumps(trained))
dist.destroy_process_group()
