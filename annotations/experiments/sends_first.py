"""Two ranks that both send first: what is through before anybody receives."""

import json

import torch
import torch.distributed as dist

RANKS = 2

dist.init_process_group("gloo")
rank, store = dist.get_rank(), dist.distributed_c10d._get_default_store()


def send_first(name, count):
    """Send so many parts of 16 MiB, look, and then receive the other rank's."""
    parts = torch.full((1 << 22,), float(rank)).chunk(count)
    theirs = [torch.empty_like(part) for part in parts]
    works = [dist.isend(part, 1 - rank) for part in parts]
    store.set(f"{name}_sent_{rank}", "")
    store.wait([f"{name}_sent_0", f"{name}_sent_1"])
    through = [work.is_completed() for work in works]
    store.set(f"{name}_seen_{rank}", "")
    store.wait([f"{name}_seen_0", f"{name}_seen_1"])
    for part in theirs:
        dist.recv(part, 1 - rank)
    for work in works:
        work.wait()
    return through, theirs[-1][0].item()


(through,), received = send_first("whole", 1)
parts, _ = send_first("parts", 16)
if rank == 0:
    figure = {"through": through, "received": received}
    print("both_sent_first =", json.dumps(figure))
    print("parts_through_of_16 =", sum(parts))
dist.destroy_process_group()
