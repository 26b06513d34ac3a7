"""Megatron's TensorParallelMuon.orthogonalize and the mini's, around one function."""

import json
from types import SimpleNamespace

import torch
import torch.distributed as dist
from megatron.core.optimizer.muon import HAVE_EMERGING_OPTIMIZERS, TensorParallelMuon
from megatron.core.optimizer.optimizer_config import OptimizerConfig

from mini_impls.muon_split import TensorParallelMuon as Minis

RANKS = 2
UPSTREAMS = ["megatron", "minis"]

dist.init_process_group("gloo")
group, shapes = dist.group.WORLD, (4, 2, 2)
apart, asked = 0.0, {}
for mode in ("blockwise", "duplicated", "distributed"):
    for rows, dim, is_qkv in ((16, 0, True), (6, 0, False), (6, 1, False)):
        torch.manual_seed(rows + dist.get_rank())
        grad = torch.randn(rows, 6)
        param = torch.nn.Parameter(torch.zeros(rows, 6))
        param.partition_dim = dim
        options = {"qkv": [param] if is_qkv else [], "qkv_split_shapes": shapes}
        mini = Minis([param], group, {param: dim}, mode=mode, **options)

        def noting(part, tp_group, partition_dim, mini=mini, mode=mode):
            asked.setdefault(mode, []).append([*part.shape, partition_dim])
            return mini.scaled_orthogonalize_fn(part, tp_group, partition_dim)

        settings = {"pg_collection": SimpleNamespace(tp=group), "split_qkv": True}
        settings |= {"is_qkv_fn": lambda p, it=is_qkv: it, "qkv_split_shapes": shapes}
        theirs = SimpleNamespace(mode=mode, scaled_orthogonalize_fn=noting, **settings)
        got = TensorParallelMuon.orthogonalize(theirs, param, grad)
        apart = max(apart, (got - mini.orthogonalize(param, grad)).abs().max().item())
asked |= {"apart": apart, "package": HAVE_EMERGING_OPTIMIZERS}
asked["default"] = OptimizerConfig.muon_tp_mode
if dist.get_rank() == 0:
    print("\n".join(f"{name} = {json.dumps(x)}" for name, x in asked.items()))
