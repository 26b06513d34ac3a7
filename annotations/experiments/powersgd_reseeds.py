"""Which seeds PowerSGD's hook hands to GPUs, and whether the CPU's generator moves."""

import json

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powersgd
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
dist.init_process_group("gloo")
asked = []
torch.cuda.manual_seed_all = lambda seed: asked[-1].append(seed)


def steps(warm_start, count=5):
    model = DistributedDataParallel(torch.nn.Linear(64, 64))
    state = powersgd.PowerSGDState(None, start_powerSGD_iter=2, warm_start=warm_start)
    model.register_comm_hook(state, powersgd.powerSGD_hook)
    del asked[:]
    for _ in range(count):
        asked.append([])
        before = torch.random.get_rng_state()
        model(torch.ones(8, 64)).sum().backward()
        is_kept.append(torch.equal(before, torch.random.get_rng_state()))
    every = [None] * RANKS
    dist.all_gather_object(every, asked)
    return [*map(len, asked)], every[0] == every[1], asked[-1:] != asked[-2:-1]


is_kept = []
warm = steps(warm_start=True)
cold = steps(warm_start=False)
if dist.get_rank() == 0:
    print("warm =", json.dumps(warm[0]), "\ncold =", json.dumps(cold[0]))
    print("same_on_both_ranks =", json.dumps(warm[1] and cold[1]))
    print("another_each_step =", json.dumps(cold[2]))
    print("cpu_is_kept =", json.dumps(all(is_kept)))
dist.destroy_process_group()
