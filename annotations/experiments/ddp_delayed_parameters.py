"""What a comm hook sees of DDP's delayed parameters."""

import json

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

RANKS = 2

seen = []


def erasing(state, bucket):
    seen.append(len(bucket.parameters()))
    future = torch.futures.Future()
    future.set_result(bucket.buffer() * 0)
    return future


dist.init_process_group("gloo")
layers = torch.nn.Sequential(*(torch.nn.Linear(1, 1, bias=False) for _ in range(2)))
for layer in layers:
    torch.nn.init.ones_(layer.weight)
hooked, delayed = (layer.weight for layer in layers)
model = DistributedDataParallel(
    layers,
    delay_all_reduce_named_params=[("1.weight", delayed)],
    param_to_hook_all_reduce=hooked,
)
model.register_comm_hook(None, erasing)
model(torch.ones(1, 1)).backward()
if dist.get_rank() == 0:
    print(f"seen = {json.dumps(seen)}\nhooked = {hooked.grad.item()}")
    print("delayed_is_erased =", json.dumps(delayed.grad.item() == 0))
dist.destroy_process_group()
