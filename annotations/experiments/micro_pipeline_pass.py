"""What the pass for overlapped products makes of a gather that a matmul reads."""

import json

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch._inductor import config
from torch._inductor.fx_passes.micro_pipeline_tp import micro_pipeline_tp_pass
from torch.distributed._symmetric_memory import _test_mode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1

dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
# The installed build has no NCCL, which the pass asks for before it looks at a graph.
dist.is_nccl_available = lambda: True


def fused(run, width=8, groups=None):
    shapes = torch.empty(16, width), torch.empty(width * 4, 8), torch.empty(width, 8)
    graph = make_fx(run, tracing_mode="fake")(*shapes).graph
    with _test_mode(groups):
        micro_pipeline_tp_pass(graph)
    return sum("fused_all_gather_matmul" in str(node.target) for node in graph.nodes)


def rows(shard, wide, weight):
    return funcol.all_gather_single(shard, 0, dist.group.WORLD) @ weight


def columns(shard, wide, weight):
    return funcol.all_gather_single(shard, 1, dist.group.WORLD) @ wide


print(f"gathered_rows = {fused(rows)}\ngroup_not_enabled = {fused(rows, groups=set())}")
print("narrow_columns =", fused(columns))
print("wide_columns =", fused(columns, width=1024))
print("on_by_default =", json.dumps(config._micro_pipeline_tp))
