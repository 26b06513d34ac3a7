"""How FSDP2's order for prefetching grows where no backward follows."""

import tracemalloc

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
for mode in (torch.inference_mode, torch.no_grad):
    model = torch.nn.Sequential(*(torch.nn.Linear(1, 1) for _ in range(3)))
    for layer in (*model, model):
        fully_shard(layer, mesh=init_device_mesh("cpu", (2,)))
    state, lengths = model[0]._get_fsdp_state(), []
    for _ in range(5):
        mode()(model)(torch.ones(1, 1))
        lengths.append(len(state._comm_ctx.post_forward_order))
    print(mode.__name__, "=", lengths)
model.reset_iter_state()
print("after_reset =", len(state._comm_ctx.post_forward_order))
tracemalloc.start()
before = tracemalloc.take_snapshot()
for _ in range(100_000):
    state._fsdp_param_groups[0]._record_post_forward()
grown = tracemalloc.take_snapshot().compare_to(before, "filename")
print("bytes_per_entry =", round(sum(s.size_diff for s in grown) / 100_000))
