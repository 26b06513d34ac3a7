"""How long the buffer of a gather is held where DeepSpeed's stage 3 prefetches."""

import ast
import sys
from pathlib import Path
from types import SimpleNamespace as Space
from unittest.mock import MagicMock

UPSTREAMS = ["deepspeed"]
HEAD = "import collections, functools, logging, threading, torch\nfrom typing import *"
HEAD += "\nfrom dataclasses import *\nfrom enum import *\nENABLE_PROFILER = 0"
names = "ZeRoTraceMode", "PartitionedParameterCoordinator", "AllGatherCoalescedHandle"
body = ast.parse(HEAD).body
for file in "partition_parameters", "partitioned_param_coordinator":
    paths = [Path(p, f"deepspeed/runtime/zero/{file}.py") for p in sys.path]
    text = next(p for p in paths if p.is_file()).read_text()
    body += [n for n in ast.parse(text).body if getattr(n, "name", "") in names]
no, same, gpu = lambda *_, **__: False, lambda f: f, MagicMock()
there = {"z3_leaf_module": no, "is_compiling": no, "instrument_w_nvtx": same}
there |= {"assert_ints_same_as_other_ranks": no, "logger": Space(isEnabledFor=no)}
there |= {"get_accelerator": gpu, "PartitionedParameterProfiler": gpu}
there |= {"iter_params": lambda module, recurse: [module], "print_rank_0": no}
there["ZeroParamStatus"] = Space(NOT_AVAILABLE=0, INFLIGHT=1, AVAILABLE=2)
there["compiler"] = Space(disable=same, enable=lambda **_: same)
exec(compile(ast.Module(body, []), "", "exec", 1 << 24), there)
torch, kept, copied = there["torch"], {}, []
zero, part = there[names[1]](1000, 0, 1000, None, kept), torch.ones(60)
fly = lambda ps: [setattr(p, "ds_status", 1) for p in ps]  # noqa: E731
gather = lambda ps, **_: fly(ps) and there[names[2]](gpu, ps, [part] * 2, 2)  # noqa: E731
kind = {"ds_numel": 10, "ds_shape": (10,), "ds_secondary_tensor": None}
kind |= {"nvme_swapper": None, "ds_persist": None, "all_gather_coalesced": gather}
kind |= {"partition_numel": lambda: 9, "ds_tensor": Space(ds_numel=5, dtype=part.dtype)}
layers = [MagicMock(ds_id=i, **kind) for i in range(6)]
for step in range(12):  # two forwards, the first of which is recorded
    step % 6 or zero.reset_step() or [setattr(p, "ds_status", 0) for p in layers]
    zero.trace_prologue(p := layers[step % 6])
    zero.is_record_trace() and zero.record_module(p)
    zero.fetch_sub_module(p, True)
    copied.append([sum(p.ds_status == 2 for p in layers), len(set(kept.values()))])
print("copied_and_buffers =", copied[6:])
