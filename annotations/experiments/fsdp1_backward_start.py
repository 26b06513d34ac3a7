"""Gathers (G) and frees (F) of FSDP1 in a backward, and the queue at each gather."""

import json

import torch
import torch.distributed as dist
from torch.distributed.fsdp import BackwardPrefetch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import _runtime_utils as runtime
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
all_gather, reshard = dist.all_gather, runtime._reshard


def show(name, prefetch):
    options = {"backward_prefetch": prefetch, "device_id": torch.device("cpu")}
    units = [FSDP(torch.nn.Linear(4, 4), **options) for _ in range(4)]
    model = FSDP(torch.nn.Sequential(*units), **options)
    seen, left = [], []

    def gathering(*args, **kwargs):
        seen.append("G")
        left.append(len(model._free_event_queue._queue))
        return all_gather(*args, **kwargs)

    def freeing(state, handle, free):
        seen.extend("F" if free else "")
        reshard(state, handle, free)

    dist.all_gather, runtime._reshard = gathering, freeing
    loss = model(torch.ones(1, 4)).sum()
    seen.clear(), left.clear()
    loss.backward()
    print(name, "=", json.dumps({"order": "".join(seen), "left_in_queue": left}))


show("backward_pre", BackwardPrefetch.BACKWARD_PRE)
show("backward_post", BackwardPrefetch.BACKWARD_POST)
