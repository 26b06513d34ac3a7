"""A gloo send whose tensor lets its memory go before the other rank receives."""

import json
import subprocess
import sys
import tempfile

PROGRAM = """
import sys, time, torch, torch.distributed as dist
place, rank, numbers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
dist.init_process_group("gloo", init_method="file://" + place, rank=rank, world_size=2)
x = torch.ones(numbers) if rank == 0 else torch.zeros(numbers)
dist.barrier()
if rank == 0:
    sent = dist.isend(x, 1)
    x.data = torch.empty(1)
    sent.wait()
else:
    time.sleep(0.5)
    dist.recv(x, 0)
    print("wrong" if (x != 1).any() else "right")
"""


def send(numbers):
    """Return whether the sender died of a bad address, and what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        call = [sys.executable, "-c", PROGRAM, f"{folder}/store"]
        ranks = [
            subprocess.Popen(
                [*call, str(rank), str(numbers)], stdout=-1, stderr=-1, text=True
            )
            for rank in (0, 1)
        ]
        (_, error), (received, _) = (rank.communicate(timeout=60) for rank in ranks)
    return {"bad_address": "Bad address" in error, "received": received.strip() or None}


print(f"mib_64 = {json.dumps(send(1 << 24))}")
