"""Which rebuilt bucket is the small one under DDP_SET_LAST_BUCKET_CAP=1, in MiB."""

import json
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.nn.parallel.distributed import _BucketCapacityConfig

RANKS = 2

os.environ["DDP_SET_LAST_BUCKET_CAP"] = "1"
dist.init_process_group("gloo")
layers = [torch.nn.Linear(512, 512, bias=False) for _ in range(8)]
model = DistributedDataParallel(torch.nn.Sequential(*layers))
seen = []


def hook(state, bucket):
    seen[-1].append(bucket.buffer().nbytes >> 20)
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


model.register_comm_hook(None, hook)
for _ in range(2):
    seen.append([])
    model(torch.ones(1, 512)).sum().backward()
asked = {"nothing": (None, None), "cap": (25, None), "list": (None, [25])}
caps = {
    name: _BucketCapacityConfig.create(*given, False).first_bucket_bytes_cap
    for name, given in asked.items()
}
if dist.get_rank() == 0:
    print("first_caps =", json.dumps(caps))
    print("in_order_of_sending =", json.dumps(seen[1]))
    print("small_limit =", dist._DEFAULT_FIRST_BUCKET_BYTES)
dist.destroy_process_group()
