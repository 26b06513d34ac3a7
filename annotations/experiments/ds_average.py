"""What DeepSpeed's average_tensor sends for a bucket whose gradients two ranks own."""

import ast
import json
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace as Space

import torch

UPSTREAMS = ["deepspeed"]
SCATTER = "allreduce_and_scatter"

folder = next(p for p in sys.path if (Path(p) / "deepspeed").is_dir())
path = Path(folder) / "deepspeed/runtime/zero/stage_1_and_2.py"
tree = ast.parse(path.read_text())
body = next(n for n in tree.body if getattr(n, "name", "") == "DeepSpeedZeroOptimizer")
kept = [n for n in body.body if getattr(n, "name", "") in ("average_tensor", SCATTER)]
device = Space(current_stream=lambda: None, stream=lambda _: nullcontext())
there = {"torch": torch, "MuonWithAuxAdam": int, "is_moe_param": lambda _: False}
there["get_accelerator"] = lambda: device
there["dist"] = Space(get_world_size=lambda group: 2)
exec(compile(ast.Module(kept, []), str(path), "exec"), there)
this = Space(overlap_comm=False, reduce_scatter=True, sequence_parallel_size=1)
this.bit16_groups, this.partition_size = [[torch.zeros(6), torch.zeros(4)]], [5]
this.param_to_partition_ids = [{0: [0, 1], 1: [1]}]  # 6 + 4 elements, cut after 5
this.grad_start_offset = [{0: {0: 0}, 1: {0: 5, 1: 0}}]
this.dp_process_group, this.optimizer, this.reduce_bucket_size = "dp", None, 500
this.ipg_buckets = {0: Space(params=[(0, 0, 0), (0, 1, 1)], has_moe_params=False)}
size = lambda tensors: sum(map(len, tensors))  # noqa: E731
add = this.allreduce_no_retain = lambda t, *_, **k: sent.append([k["rank"], size(t)])
this.allreduce_and_copy_with_multiple_ranks = lambda t, *_, **k: add(t, rank="all")
this.allreduce_and_scatter = partial(there[SCATTER], this)
for this.use_multi_rank_bucket_allreduce in (True, False):
    sent, grads = [], torch.ones(10)
    there["average_tensor"](this, grads, 0)
    print(f"together_{int(this.use_multi_rank_bucket_allreduce)} =", json.dumps(sent))
print("each_before_it_is_sent =", grads.max().item())
