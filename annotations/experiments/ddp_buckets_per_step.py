"""MiB of the buckets that a comm hook sees in four steps, by the kind of graph."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

RANKS = 2

dist.init_process_group("gloo")


def buckets(**options):
    """Bytes of each bucket, step by step, of eight weights of 1 MiB."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(512, 512, bias=False) for _ in range(8)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers), **options)
    seen = []

    def hook(state, bucket):
        seen[-1].append(bucket.buffer().nbytes >> 20)
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    model.register_comm_hook(None, hook)
    for _ in range(4):
        seen.append([])
        model(torch.ones(1, 512)).sum().backward()
    return seen


default, static = buckets(), buckets(static_graph=True)
unused = buckets(find_unused_parameters=True)
both = buckets(find_unused_parameters=True, static_graph=True)
capped = buckets(bucket_cap_mb=25)
if dist.get_rank() == 0:
    print(f"default = {default}\nstatic_graph = {static}")
    print(f"find_unused_parameters = {unused}\nbucket_cap_mb_25 = {capped}")
    print(f"unused_of_a_static_graph = {both}")
dist.destroy_process_group()
