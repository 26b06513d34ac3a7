"""How much of Muon's work DeepSpeed's owners repeat, for the matrices of Llama-2 7B."""

import ast
import json
import sys
from pathlib import Path
from types import SimpleNamespace as Space

UPSTREAMS = ["deepspeed"]
H, F, LAYERS = 4096, 11008, 32

folder = next(p for p in sys.path if (Path(p) / "deepspeed").is_dir())
path = Path(folder) / "deepspeed/runtime/zero/stage_1_and_2.py"
tree = ast.parse(path.read_text())
body = next(n for n in tree.body if getattr(n, "name", "") == "DeepSpeedZeroOptimizer")
kept = [n for n in body.body if getattr(n, "name", "") == "get_partition_info"]
exec(compile(ast.Module(kept, []), str(path), "exec"), there := {})


def matrix(rows, columns):
    return Space(numel=lambda: rows * columns)


sizes = [(H, H)] * 4 + [(F, H)] * 2 + [(H, F)]
matrices = [matrix(*size) for _ in range(LAYERS) for size in sizes]
total = sum(m.numel() for m in matrices)
work, most = [], []
for ranks in (8, 64, 512):
    part = -(-total // ranks)
    owned = [
        there["get_partition_info"](None, matrices, part, rank)[0]
        for rank in range(ranks)
    ]
    work.append(round(sum(map(len, owned)) / len(matrices), 2))
    most.append(round(max(sum(m.numel() for m in o) for o in owned) / part, 2))
print("matrices =", len(matrices), "\nupdates_per_matrix =", json.dumps(work))
print("largest_buffer_over_range =", json.dumps(most))
print("matrices_of_a_rank =", json.dumps([min(map(len, owned)), max(map(len, owned))]))
