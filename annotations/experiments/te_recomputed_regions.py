"""Which of two fp8 modules renew the gradients' scales, kept and recomputed."""

from __future__ import annotations

import ast
import contextlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import torch

RANKS = 1
UPSTREAMS = ["transformer-engine"]
folder = next(p for p in sys.path if (Path(p) / "transformer_engine").is_dir())
names = ["FP8GlobalStateManager", "autocast", "activation_recompute_forward"]
names += ["in_fp8_activation_recompute_phase"]
there = vars(contextlib) | dict.fromkeys(["inp", "weight", "bias"]) | {"torch": torch}
for kind in ("MXFP8BlockScaling", "Float8BlockScaling", "NVFP4BlockScaling"):
    there[kind] = type(kind, (), {})
there |= {"check_recipe_support": bool, "requires_grad": lambda *tensors: True}
for path in ("quantization.py", "distributed.py", "module/linear.py"):
    tree = ast.parse((Path(folder) / "transformer_engine/pytorch" / path).read_text())
    taken = [node for node in tree.body if getattr(node, "name", "") in names]
    exec(compile(ast.Module(taken, []), path, "exec"), there)
tests = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
mark = [node for node in tests if "requires_grad(inp, weight" in ast.unparse(node.test)]
state, region, phase = (there[name] for name in names[:3])
state.is_fp8_available, ended = (lambda: (True, "")), []
state.reduce_and_update_fp8_tensors = lambda forward: ended.append(forward)
for name, again in (("kept", False), ("recomputed", True)):
    with region(recipe="delayed"), phase(again, False):
        pass  # the first forward of a checkpoint: its modules record nothing
    marked, ended[:], there["ctx"] = [], [], SimpleNamespace(fp8=True)
    with phase(again, again), region(recipe="delayed"):
        for _ in range(2):
            exec(compile(ast.Module(mark[:1], []), "linear", "exec"), there)
            marked.append(there["ctx"].reduce_and_update_bwd_fp8_tensors)
    print(name, "=", json.dumps({"renew": marked, "ended": len(ended)}))
