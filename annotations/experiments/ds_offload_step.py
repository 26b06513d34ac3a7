"""What crosses the bus where DeepSpeed's stage 3 has its optimizer on the host."""

import ast
import json
import sys
from pathlib import Path
from unittest.mock import MagicMock as Mock

from torch import Tensor, ones

UPSTREAMS = ["deepspeed"]
FILE, WAYS = "deepspeed/runtime/zero/stage3.py", {"meta": "up", "cpu": "down"}
KEPT = "partition_grads", "_offload_grad_partition", "_reassign_or_swap_out"
text = next(Path(p, FILE) for p in sys.path if Path(p, FILE).is_file()).read_text()
code = [n for n in ast.walk(ast.parse(text)) if getattr(n, "name", "").startswith(KEPT)]
there = dict(List=list, Tensor=Tensor, Parameter=Tensor, instrument_w_nvtx=lambda f: f)
there["get_accelerator"] = lambda: Mock(on_accelerator=lambda tensor: tensor.is_meta)
exec(compile(ast.Module(code, []), FILE, "exec"), there)


def note(new, old):
    moved.extend([WAYS[new.device.type]] * (new.device != old.device))
    return new


Tensor.copy_ = lambda new, old, **_: note(new, old)
Tensor.to = lambda old, at=None, **_: note(ones(6, device=at), old) if at else old
card, host, sums = ones(6, device="meta"), ones(6), ones(6)  # "meta": GPU
host.grad, param = ones(6), Mock(ds_id=0, ds_numel=6, partition_numel=int)
zero = type("Zero", (Mock,), there)(gradient_accumulation_dtype=None)
zero.fp16_partitioned_groups_flat, zero.fp32_partitioned_groups_flat = [card], [host]
zero.__param_id_to_grad_partition = [sums]
zero.grad_position, zero.get_param_id = [(0, 0, 0)], lambda _: 0
zero._swappable_optimizer_subgroup = zero._get_param_partition_rank = zero.get_param_id
for name, ends, moved in ("one", [True], []), ("two", [False, True], []):
    for zero.micro_step_id, is_last in enumerate(ends):
        zero.is_gradient_accumulation_boundary.return_value = is_last
        zero.partition_grads([param], [card])
    zero._reassign_or_swap_out_partitioned_parameters(0)
    print(f"{name} =", json.dumps(moved))
