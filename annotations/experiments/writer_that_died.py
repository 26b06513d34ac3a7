"""Whether a checkpoint's worker that was killed counts as one that has finished."""

import json
import queue
from types import SimpleNamespace as Made

import torch.distributed as dist
from megatron.core.dist_checkpointing.strategies import async_utils

RANKS = 1
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
dead = Made(is_alive=lambda: False, join=lambda: None)
once = async_utils.TemporalAsyncCaller()
kept = async_utils.PersistentAsyncCaller.__new__(async_utils.PersistentAsyncCaller)
# Queues of a new process would leave a helper of Python's running.
kept.comp_q, kept.cur_item = queue.Queue(), None
once.start_time = 0.0
for name, caller in (("made_for_one_save", once), ("persistent", kept)):
    caller.process = dead
    done = caller.is_current_async_call_done(blocking=False, no_dist=True)
    print(name, "=", json.dumps(done))
    caller.process = None
del once, kept, caller
dist.destroy_process_group()
