"""What an evaluation between two steps does to FSDP2's prefetching in backward."""

import json

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.fsdp._fully_shard import _fsdp_param_group as groups
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
mesh, foreach_all_gather = init_device_mesh("cpu", (2,)), groups.foreach_all_gather


def show(root_keeps, most, *names):
    """Print what backward gathers, before and after an evaluation, and the peak."""
    model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(3)))
    for layer in (*model[: 3 - root_keeps], model):
        fully_shard(layer, mesh=mesh)
    states = [m._get_fsdp_state() for m in model.modules() if isinstance(m, FSDPModule)]
    gathers, whole = [], []

    def noting(params, *args):
        gathers.append(params[0]._param_fqn[0])
        held = [group for state in states for group in state._fsdp_param_groups]
        whole.append(1 + sum(group.is_unsharded for group in held))
        return foreach_all_gather(params, *args)

    groups.foreach_all_gather = noting
    for name in names:
        loss = model(torch.ones(1, 4)).sum()
        gathers.clear(), loss.backward()
        print(f"{name} = {json.dumps(gathers)}")
        torch.no_grad()(model)(torch.ones(1, 4))
    print(f"{most} = {max(whole)}")


show(0, "most_gathered", "clean", "after_an_evaluation")
show(1, "most_with_a_root", "clean_with_a_root", "with_a_root")
