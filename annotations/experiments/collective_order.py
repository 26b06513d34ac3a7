"""What a rank sees when the other one skips an all-reduce, and when it swaps two."""

import json

import torch
import torch.distributed as dist

RANKS = 2

dist.init_process_group("gloo")
rank, store = dist.get_rank(), dist.distributed_c10d._get_default_store()
late = torch.ones(1)
if rank == 0:
    work = dist.all_reduce(late, async_op=True)
    store.wait(["the_other_went_on"])
    found = {"returned": True, "done": work.is_completed()}
    store.set("seen", "")
    work.wait()
    print("skipped =", json.dumps(found))
    print("once_it_came =", late.item())
else:
    store.set("the_other_went_on", "")
    store.wait(["seen"])
    dist.all_reduce(late)
first, second = torch.full((1,), 1.0 + rank), torch.full((1,), 10.0 + rank)
for tensor in (first, second) if rank == 0 else (second, first):
    dist.all_reduce(tensor)
if rank == 0:
    print("sums_if_in_order =", [3.0, 21.0])
    print("sums_if_swapped =", [first.item(), second.item()])
dist.destroy_process_group()
