"""What a checkpoint saved without collectives gives back in another layout."""

import json
import logging
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed import tensor as dt

RANKS = 2

logging.disable(logging.CRITICAL)
dist.init_process_group("gloo")
rank, mesh = dist.get_rank(), dt.init_device_mesh("cpu", (2,))
folders = [[tempfile.mkdtemp(), tempfile.mkdtemp()]]
dist.broadcast_object_list(folders)
layouts = {"rows": dt.Shard(0), "columns": dt.Shard(1), "whole": dt.Replicate()}
whole = torch.arange(1.0, 9.0).view(4, 2)
for folder, together in zip(folders[0], (True, False), strict=True):
    saved = {"w": dt.distribute_tensor(whole, mesh, [dt.Shard(0)])}
    dcp.save(saved, checkpoint_id=folder, use_collectives=together)
    dist.barrier()
    found = {}
    for name, placement in layouts.items():
        state = {"w": dt.distribute_tensor(torch.zeros(4, 2), mesh, [placement])}
        dcp.load(state, checkpoint_id=folder)
        mine = state["w"].to_local()
        found[name] = [int(mine.count_nonzero()), mine.numel()]
    both = [None, None]
    dist.all_gather_object(both, found)
    if rank == 0:
        filled = {name: [each[name] for each in both] for name in found}
        print("together =" if together else "alone =", json.dumps(filled))
