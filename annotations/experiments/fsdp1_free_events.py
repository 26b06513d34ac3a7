"""How many units back is the free that an FSDP1 gather waits for, by step."""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import _runtime_utils as runtime
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1
dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
reshard, unshard = runtime._reshard, runtime._unshard


def distances(prefetch, **more):
    options = {"backward_prefetch": prefetch, "device_id": torch.device("cpu"), **more}
    units = [FSDP(torch.nn.Linear(8, 8), **options) for _ in range(7)]
    model = FSDP(torch.nn.Sequential(*units), **options)
    index = {id(unit._handle): k for k, unit in enumerate(units)}
    freed, found = {}, [set() for _ in range(3)]

    def tagging_reshard(state, handle, free):
        reshard(state, handle, free)
        freed[state._free_event_queue._queue[-1]] = (phase, index[id(handle)])

    def looking_unshard(state, handle, *streams):
        queue = state._free_event_queue._queue
        if phase is not None and len(queue) >= 2 and freed[queue[0]][0] == phase:
            found[phase].add(index[id(handle)] - freed[queue[0]][1])
        unshard(state, handle, *streams)

    runtime._reshard, runtime._unshard = tagging_reshard, looking_unshard
    for phase in range(3):
        loss, phase = model(torch.ones(2, 8)).sum(), None
        loss.backward()
    return [sorted(steps) for steps in found]


PRE, POST = runtime.BackwardPrefetch
print("backward_pre =", distances(PRE), "\nbackward_post =", distances(POST))
print("ahead =", distances(PRE, forward_prefetch=True))
