"""In which dtype DeepSpeed's pipeline sends the fp32 gradients of a bf16 model."""

import ast
import json
import sys
from pathlib import Path
from types import SimpleNamespace as Space

import torch

UPSTREAMS = ["deepspeed"]
NAMES = ("communication_data_type", "allreduce_bucket")
sent, file = [], "deepspeed/runtime/engine.py"


def all_reduce(tensor, group):
    sent.append(str(tensor.dtype).removeprefix("torch."))
    tensor.mul_(2)  # the other rank has the same


text = next(Path(p, file) for p in sys.path if Path(p, file).is_file()).read_text()
tree = ast.parse(text)
body = next(n.body for n in tree.body if getattr(n, "name", "") == "DeepSpeedEngine")
kept = [n for n in body if getattr(n, "name", "") in NAMES]
kept = [n for n in kept if len(n.args.args) != 2]  # no setter
kept[0].decorator_list = []
dist = Space(get_world_size=lambda group: 2, all_reduce=all_reduce)
exec(ast.unparse(ast.Module(kept, [])), there := {"torch": torch, "dist": dist})
for figure, asked in ("by_default", None), ("asked_for_fp32", torch.float32):
    this = Space(_config=Space(communication_data_type=asked), flatten=torch.cat)
    this.fp16_enabled, this.bfloat16_enabled = lambda: False, lambda: True
    this.postscale_gradients, this.gradient_average = lambda: True, True
    this.gradient_predivide_factor = lambda: 1.0
    this.communication_data_type = there[NAMES[0]](this)
    mean = there[NAMES[1]](this, [torch.tensor([1 + 2**-9])], None)
    print(f"{figure} = {json.dumps([sent[-1], mean.item()])}")
