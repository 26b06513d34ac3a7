"""In how many pieces one of 8 ranks steps Llama-2 7B, and what it copies."""

import ast
import json
import sys
from pathlib import Path
from types import SimpleNamespace as Space
from unittest.mock import MagicMock

import torch

UPSTREAMS = ["deepspeed"]
PIECES, PREPARE = "_create_fp16_sub_groups", "_prepare_fp32_grad_for_sub_group"
H, F, V = 4096, 11008, 32000

file = "deepspeed/runtime/zero/stage3.py"
text = next(Path(p, file) for p in sys.path if Path(p, file).is_file()).read_text()
nodes = [n for n in ast.walk(ast.parse(text)) if hasattr(n, "decorator_list")]
kept = ast.Module([n for n in nodes if n.name in (PIECES, PREPARE)], [])
there = {name: MagicMock() for name in ("dist", "get_accelerator", "instrument_w_nvtx")}
exec(ast.unparse(kept).replace("@instrument_w_nvtx", ""), there)
sizes = [V * H, *([H * H] * 4 + [H * F] * 3 + [H] * 2) * 32, H, V * H]
shards = [Space(partition_numel=lambda n=n: -(-n // 8)) for n in sizes]
for figure, limit in ("by_default", 1_000_000_000), ("with_1e8", 100_000_000):
    pieces = there[PIECES](Space(sub_group_size=limit), shards)
    largest = max(sum(p.partition_numel() for p in piece) for piece in pieces)
    print(f"{figure} = {json.dumps([len(pieces), largest])}")
made, flatten = [], torch._utils._flatten_dense_tensors
this = MagicMock(averaged_gradients={0: [torch.ones(n).bfloat16() for n in (6, 4)]})
this.flatten = lambda ts: made.append(flatten(ts)) or made[-1]
this.fp32_partitioned_groups_flat = {0: torch.zeros(10)}
there[PREPARE](this, 0)
made.append(this.fp32_partitioned_groups_flat[0].grad)
print("bytes_per_element =", [copy.nbytes / 10 for copy in made])
