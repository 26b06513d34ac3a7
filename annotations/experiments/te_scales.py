"""Scales of Transformer Engine's own Python code and of the mini's, side by side."""

import ast
import sys
from pathlib import Path

import torch

from mini_impls.mixed_precision_fp8 import E4M3, E5M2, compute_scale, scale_now

RANKS = 1
UPSTREAMS = ["transformer-engine"]


def take(path, name):
    """Return one function of a file whose imports need a GPU, without decorators."""
    folder = next(p for p in sys.path if (Path(p) / "transformer_engine").is_dir())
    tree = ast.parse((Path(folder) / "transformer_engine/pytorch" / path).read_text())
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
    found[0].decorator_list = []
    there = {"torch": torch, "Tuple": tuple}
    exec(compile(ast.Module(found, []), path, "exec"), there)
    return there[name]


delayed = take("quantization.py", "_default_sf_compute")
file = "custom_recipes/quantization_current_scaling.py"
current = take(file, "_scale_from_amax_tensor")
special = [0.0, float("inf"), float("nan"), 1e-45, 448.0]
amaxes = torch.cat([torch.tensor(special), torch.logspace(-38, 38, 2000)])
unequal = 0
for dtype in (E4M3, E5M2):
    end, before = torch.finfo(dtype).max, torch.full_like(amaxes, 3.0)
    theirs = delayed(amaxes, before.clone(), end, 0)
    unequal += int((compute_scale(amaxes, end, before) != theirs).sum())
    now = current(torch.float32, amaxes, dtype, eps=0.0, pow_2_scales=False)[0]
    same = torch.isclose(scale_now(amaxes, dtype), now, 0, 0, equal_nan=True)
    unequal += int((~same).sum())
print("compared =", 4 * len(amaxes))
print("unequal =", unequal)
