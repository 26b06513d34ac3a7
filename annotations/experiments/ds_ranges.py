"""Where DeepSpeed's stages 1 and 2 cut a group of parameters, and who owns them."""

import ast
import json
import sys
from pathlib import Path
from types import SimpleNamespace as Space

import torch

UPSTREAMS = ["deepspeed"]

folder = next(p for p in sys.path if (Path(p) / "deepspeed").is_dir())
path = Path(folder) / "deepspeed/runtime/zero/stage_1_and_2.py"
tree = ast.parse(path.read_text())
body = next(n for n in tree.body if getattr(n, "name", "") == "DeepSpeedZeroOptimizer")
names = ("get_data_parallel_partitions", "get_partition_info", "_round_robin_reorder")
kept = ast.Module([n for n in body.body if getattr(n, "name", "") in names], [])
there = {"dist": Space(get_world_size=lambda group: 4)}
exec(compile(kept, str(path), "exec"), there)
this = Space(real_dp_process_group=[None])
params = [torch.zeros(n) for n in (50, 6, 6, 18)]
parts = there["get_data_parallel_partitions"](this, torch.zeros(80), 0)
print("ranges =", json.dumps([len(part) for part in parts]))
owned = [there["get_partition_info"](this, params, 20, rank) for rank in range(4)]
print("parameters_of_ranks =", json.dumps([[len(p) for p in o[0]] for o in owned]))
print("first_offsets =", json.dumps([o[2] for o in owned]))
names = [f"g{i}" for i in range(6)]
print("round_robin =", json.dumps(there["_round_robin_reorder"](this, names, 2)[0]))
uneven = [torch.zeros(n) for n in (100, 1, 1, 1)]
dealt, _ = there["_round_robin_reorder"](this, uneven, 2)
owned = [there["get_partition_info"](this, dealt, 52, rank)[0] for rank in range(2)]
print("dealt_to_two =", json.dumps([[len(p) for p in tensors] for tensors in owned]))
