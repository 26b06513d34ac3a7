"""Which of four elements the mini sends of a gradient that stays the same."""

import json

import torch
import torch.distributed as dist

from mini_impls.compression import GradBucket, TopK

RANKS = 2
UPSTREAMS = ["minis"]

dist.init_process_group("gloo")
gradient, sent, gather = torch.tensor([4.0, 3.0, 2.0, 1.0]), [], dist.all_gather


def noted(outputs, tensor, group=None):
    sent.append([str(tensor.dtype), tensor.numel()])
    gather(outputs, tensor, group=group)


dist.all_gather = noted
for name, keeps in {"kept": True, "forgotten": False}.items():
    bucket, compress, chosen = (
        GradBucket([torch.nn.Parameter(gradient)]),
        TopK(0.25),
        [],
    )
    for _ in range(7):
        bucket.buffer.copy_(gradient)
        compress(bucket, dist.group.WORLD)
        compress.error = compress.error if keeps else None
        chosen.append(bucket.buffer.nonzero().flatten().tolist())
    if dist.get_rank() == 0:
        print(f"{name} =", json.dumps(chosen))
if dist.get_rank() == 0:
    print("sent =", json.dumps(sent[:2]))
dist.destroy_process_group()
