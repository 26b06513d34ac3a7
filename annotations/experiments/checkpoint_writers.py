"""How many bytes of tensors each rank writes: rows of its own, and vectors of all."""

import json
import pickle
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard

from mini_impls.checkpoint import save
from mini_impls.checkpoint_plan import HeldTensor

RANKS = 2
dist.init_process_group("gloo")
mesh, rank, folder = init_device_mesh("cpu", (RANKS,)), dist.get_rank(), Path.cwd()
rows, vector = torch.ones(1, 50), torch.ones(40)
state = {"rows": DTensor.from_local(rows, mesh, [Shard(0)])}
vectors = {n: DTensor.from_local(vector, mesh, [Replicate()]) for n in "abc"}
held = {"rows": HeldTensor(rows, (rank, 0), (2, 50))}
held |= {name: HeldTensor(vector, (0,), (40,)) for name in "abc"}
ways = dict.fromkeys(("torch", "torch_lowest"), state | vectors)
for name, states in ways.items():
    planner = dcp.DefaultSavePlanner(dedup_save_to_lowest_rank="lowest" in name)
    dcp.save(states, checkpoint_id=folder / name, planner=planner)
save(folder / "mini", held, dist.group.WORLD)
if rank == 0:
    for name in ways:
        written = [0] * RANKS
        stored = pickle.loads((folder / name / ".metadata").read_bytes()).storage_data
        for index, where in stored.items():
            tensor = rows if index.fqn == "rows" else vector
            written[int(where.relative_path[2])] += tensor.nbytes
        print(name, "=", json.dumps(written))
    sizes = [p.stat().st_size for p in sorted((folder / "mini").glob("*.bin"))]
    print("mini =", json.dumps(sizes))
dist.destroy_process_group()
