"""Two ranks that both send first: what is through before anybody receives."""

import json

import torch
import torch.distributed as dist

RANKS = 2

dist.init_process_group("gloo")
rank, store = dist.get_rank(), dist.distributed_c10d._get_default_store()
mine, theirs = torch.full((1 << 22,), float(rank)), torch.empty(1 << 22)
work = dist.isend(mine, 1 - rank)
store.set(f"sent_{rank}", "")
store.wait(["sent_0", "sent_1"])
found = {"through": work.is_completed()}
store.set(f"seen_{rank}", "")
store.wait(["seen_0", "seen_1"])
dist.recv(theirs, 1 - rank)
work.wait()
found["received"] = theirs[0].item()
if rank == 0:
    print("both_sent_first =", json.dumps(found))
dist.destroy_process_group()
