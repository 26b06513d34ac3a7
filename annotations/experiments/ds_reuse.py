"""How many of six modules DeepSpeed's stage 3 keeps from forward to backward."""

import ast
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

UPSTREAMS = ["deepspeed"]
NAME, DISTANCE = "__params_to_release", 120

file = "deepspeed/runtime/zero/partitioned_param_coordinator.py"
text = next(Path(p, file) for p in sys.path if Path(p, file).is_file()).read_text()
found = [n for n in ast.walk(ast.parse(text)) if getattr(n, "name", "") == NAME]
found[0].decorator_list = []
there = {"z3_leaf_module": lambda module: False, "Module": object, "Set": set}
there["iter_params"] = lambda module, recurse: [module]
exec(compile(ast.Module(found, []), file, "exec"), there)
for name, size in ("half", 10), ("more", 13):
    modules = [MagicMock(ds_id=n, ds_numel=size, ds_persist=False) for n in range(6)]
    trace = {
        "is_complete_trace": lambda: True,
        "__max_reuse_dist_in_numel": DISTANCE,
        "__submodule_order": modules + modules[::-1],
        "__most_recent_step_id_param_fetched_for": dict.fromkeys(modules, -1),
    }
    this = SimpleNamespace(**trace)
    released = [there[NAME](this, module, n + 1) for n, module in enumerate(modules)]
    print(f"kept_with_{name} =", sum(not ids for ids in released))
