"""What gradients of 1 are after DeepSpeed's unscaling, as the scale doubles."""

import ast
import builtins
import sys
from functools import partial
from pathlib import Path
from unittest.mock import MagicMock

import torch

UPSTREAMS = ["deepspeed"]
WANTED = {"step", "unscale_and_clip_grads", "_update_scale", "update_scale"}


def run(name):
    path = next(Path(p, name) for p in sys.path if Path(p, name).is_file())
    classes = [n for n in ast.parse(path.read_text()).body if hasattr(n, "bases")]
    kept = [n for c in classes for n in c.body if getattr(n, "name", "") in WANTED]
    code = compile(ast.Module(kept, []), name, "exec")
    there = {n: MagicMock() for f in code.co_consts for n in getattr(f, "co_names", ())}
    there |= vars(builtins) | {"torch": torch}
    return exec(code, there) or there


zero, this = run("deepspeed/runtime/zero/stage_1_and_2.py"), MagicMock(clip_grad=0)
this.bit16_groups, this.overflow = [0], False
settings = {"scale_factor": 2, "scale_window": 2, "consecutive_hysteresis": False}
scaler = MagicMock(cur_scale=4, cur_iter=0, last_overflow_iter=-1, **settings)
update = run("deepspeed/runtime/fp16/loss_scaler.py")["update_scale"]
this.loss_scaler.update_scale = partial(update, scaler)
type(this).loss_scale = property(lambda _: scaler.cur_scale)
for name in ("_update_scale", "unscale_and_clip_grads"):
    setattr(this, name, partial(zero[name], this))
part, gradients = this.single_partition_of_fp32_groups[0], []
for _ in range(4):
    part.grad = torch.ones(1) * scaler.cur_scale
    zero["step"](this)
    gradients.append(part.grad.item())
print("gradients =", gradients)
