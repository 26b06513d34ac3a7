"""How many of six modules DeepSpeed's stage 3 holds ahead of need, step by step."""

import ast
import sys
from pathlib import Path
from types import SimpleNamespace as Space
from unittest.mock import MagicMock

UPSTREAMS = ["deepspeed"]
HEAD = "import collections, functools, logging, threading, torch\n"
HEAD += "from dataclasses import *\nfrom enum import *\nENABLE_PROFILER = 0"
file = "deepspeed/runtime/zero/partitioned_param_coordinator.py"
text = next(Path(p, file) for p in sys.path if Path(p, file).is_file()).read_text()
classes = [n for n in ast.parse(text).body if isinstance(n, ast.ClassDef)]
tree = ast.Module([*ast.parse(HEAD).body, classes[0], classes[2]], [])
no, same, gpu = lambda *_, **__: False, lambda f: f, MagicMock()
there = {"z3_leaf_module": no, "is_compiling": no, "instrument_w_nvtx": same}
there |= {"assert_ints_same_as_other_ranks": no, "logger": Space(isEnabledFor=no)}
there |= {"get_accelerator": gpu, "PartitionedParameterProfiler": gpu}
there |= {"iter_params": lambda module, recurse: [module], "print_rank_0": no}
there["ZeroParamStatus"] = Space(NOT_AVAILABLE=0, INFLIGHT=1, AVAILABLE=2)
there["compiler"] = Space(disable=same, enable=lambda **_: same)
exec(compile(tree, "", "exec", 1 << 24), there)
zero = there[classes[2].name](15, 0, 1000, None, {})
state = lambda new, ps: [setattr(p, "ds_status", new) for p in ps]  # noqa: E731
gather = lambda ps, **_: state(1, ps) and Space(wait=lambda **_: state(2, ps))  # noqa: E731
layers = [MagicMock(ds_id=i, ds_numel=10, partition_numel=lambda: 10) for i in range(6)]
for p in layers:
    p.all_gather_coalesced, p.partition = gather, lambda p=p, **_: state(0, [p])
    p.ds_secondary_tensor = p.nvme_swapper = p.ds_persist = p.is_external_param = None
    p.ds_active_sub_modules, p.ds_status = set(), 0
ahead, order, turned, head = [], "012345543210", "012435534210", "012345"
for step in [order, order, head, *[order, turned] * 3, head, head, *[order] * 3]:
    ahead.append(zero.reset_step() or 0)
    for i, p in enumerate(layers[int(number)] for number in step):
        zero.trace_prologue(p) or (zero.is_record_trace() and zero.record_module(p))
        zero.fetch_sub_module(p, i < 6)
        ahead[-1] = max(ahead[-1], sum(p.ds_status > 0 for p in layers) - 1)
        zero.release_sub_module(p, i < 6)
print("ahead =", ahead[:9], "\nforward_first =", ahead[9:])
