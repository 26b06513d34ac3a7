"""What DeepSpeed's stage 3 sends up for a gather whose shards lie on the host."""

import ast
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import torch

UPSTREAMS = ["deepspeed"]
FILE, moved, gathered = "deepspeed/runtime/zero/partition_parameters.py", [], []

path = next(p for p in (Path(each, FILE) for each in sys.path) if p.is_file())
found = [
    n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)
]
code = [n for n in found if n.name == "_all_gather_dtype"]
there = {"torch": torch, "List": list, "Parameter": object}
there |= {"instrument_w_nvtx": lambda f: f, "AllGatherCoalescedHandle": dict}
there["get_accelerator"] = lambda: SimpleNamespace(current_device_name=lambda: "meta")
there["get_allgather_dtype"] = lambda param, shard: shard.dtype
there["_dist_allgather_fn"] = lambda mine, whole, group: gathered.append(len(whole))
exec(compile(ast.Module(code, []), FILE, "exec"), there)


def move(tensor, to):
    if to == "meta":
        moved.append(tensor.numel())
    return tensor.new_empty(tensor.shape, device="meta")


torch.Tensor.to, params = move, []
for size in 2, 3:  # of two ranks; "meta" stands for the GPU
    shard = torch.ones(size)
    shard.ds_numel = size
    params.append(SimpleNamespace(ds_tensor=shard, ds_secondary_tensor=None))
there["_all_gather_dtype"](params, 2, 0, None, torch.float32)
print("up =", json.dumps(moved), "\ngathered =", json.dumps(gathered))
