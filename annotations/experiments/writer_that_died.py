"""Whether a checkpoint's worker that was killed counts as one that has finished."""

import json
from types import SimpleNamespace as Made

import torch.distributed as dist
from megatron.core.dist_checkpointing.strategies import async_utils

RANKS = 1
UPSTREAMS = ["megatron"]

if __name__ == "__main__":
    dist.init_process_group("gloo")
    dead = Made(is_alive=lambda: False, join=lambda: None)
    once, kept = async_utils.TemporalAsyncCaller(), async_utils.PersistentAsyncCaller()
    once.start_time = 0.0
    for name, caller in (("made_for_one_save", once), ("persistent", kept)):
        caller.process = dead
        done = caller.is_current_async_call_done(blocking=False, no_dist=True)
        print(name, "=", json.dumps(done))
        caller.process = None
    del once, kept, caller
    dist.destroy_process_group()
