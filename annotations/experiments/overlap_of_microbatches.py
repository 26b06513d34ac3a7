"""Warm-up, gradient launches and autocast where two microbatches are interlaced."""

import contextlib
import json
from types import SimpleNamespace as Made

import torch
from megatron.core.pipeline_parallel import combined_1f1b, schedules

RANKS = 1
UPSTREAMS = ["megatron"]

for name, overlap in (("plain", False), ("interlaced", True)):
    found = []
    for rank in range(2):
        group = Made(size=lambda: 2, rank=lambda rank=rank: rank)
        ends = Made(pp_group=group, virtual_pipeline_model_parallel_size=2)
        found += [schedules.get_pp_rank_microbatches(4, 2, 2, False, overlap, ends)[2]]
    print(name, "=", found)
seen, entered = [], []
real = combined_1f1b.combined_forward_backward_step
combined_1f1b.set_streams = lambda: None
combined_1f1b.combined_forward_backward_step = lambda *args, **kwargs: (1, 1, 1)
for chunk in range(3):
    combined_1f1b.combined_1f1b_schedule_for_interleaved_pipelining(
        None, None, [None] * 3, [None] * 3, 1, [], None, None,
        lambda *args: (None, None, None), lambda number, c=chunk: seen.append(c),
        None, lambda *args, c=chunk, **kwargs: c, lambda *args: False, None, False,
        b_virtual_microbatch_id=0,
    )  # fmt: skip
print("post_processed =", seen)
autocast = contextlib.contextmanager(lambda *args, **kwargs: (yield entered.append(1)))
torch.autocast = autocast
plan = type("Plan", (), {"run": staticmethod(lambda *args, **kwargs: None)})()
output = Made(schedule_plan=plan, loss_func=None)
config = Made(timers=None, enable_autocast=True, autocast_dtype=None, fp8=None)
real(None, None, None, 1, None, [], object(), None, output, torch.ones(1), config)
print("autocast_entered =", json.dumps(len(entered)))
