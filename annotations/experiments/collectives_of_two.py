"""What two ranks hold after each collective, of what they gave: rank after rank."""

import json

import torch
import torch.distributed as dist

RANKS = 2

dist.init_process_group("gloo")
rank, group = dist.get_rank(), dist.group.WORLD
mine = torch.tensor([10.0 + rank, 20.0 + rank])


def show(name, tensor):
    held = [None, None]
    dist.all_gather_object(held, tensor.tolist())
    if rank == 0:
        print(name, "=", json.dumps(held))


show("given", mine)
broadcast, total, gathered = mine.clone(), mine.clone(), torch.empty(4)
part, swapped = torch.empty(1), torch.empty(2)
dist.broadcast(broadcast, 0)
dist.all_reduce(total)
dist.all_gather_single(gathered, mine)
dist.reduce_scatter_single(part, mine.clone())
dist.all_to_all_single(swapped, mine)
show("broadcast", broadcast)
show("all_reduce", total)
show("all_gather", gathered)
show("reduce_scatter", part)
show("all_to_all", swapped)
broken = torch.tensor([1.0, float("nan") if rank else 1.0])
dist.all_reduce(broken)
show("is_nan_after_one_rank_had_one", broken.isnan())
dist.destroy_process_group()
