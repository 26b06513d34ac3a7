"""What the mini's eight bits make of the gradient of ddp_quantized, and send."""

import json

import torch
import torch.distributed as dist

from mini_impls.compression import GradBucket, all_gather_uint8

RANKS = 2
UPSTREAMS = ["minis"]

dist.init_process_group("gloo")
gathered, plain = [], dist.all_gather


def noted(outputs, tensor, group=None):
    gathered.append([str(tensor.dtype), tensor.numel()])
    plain(outputs, tensor, group=group)


dist.all_gather = noted
bucket = GradBucket([torch.nn.Parameter(torch.zeros(1024))])
bucket.buffer.fill_(1e-3)
bucket.buffer[0] = 1.0 + dist.get_rank()
all_gather_uint8(bucket, dist.group.WORLD)
if dist.get_rank() == 0:
    print("gathered =", json.dumps(gathered))
    print("kept =", bucket.buffer[:2].tolist())
dist.destroy_process_group()
