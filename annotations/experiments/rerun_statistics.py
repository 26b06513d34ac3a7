"""The mode that reports how much results vary, and the one that validates them."""

import json
import logging

import torch
import torch.distributed as dist
from megatron.core import rerun_state_machine as reruns

RANKS = 1
UPSTREAMS = ["megatron"]
logging.disable(logging.CRITICAL)
dist.init_process_group("gloo")
torch.cuda.get_rng_state = torch.get_rng_state


def run(mode):
    """Take steps of two runs each; return how many there were, and what ended it."""
    steps = 0
    try:
        reruns.destroy_rerun_state_machine()
        reruns.initialize_rerun_state_machine(mode=reruns.RerunMode(mode))
        machine = reruns.get_rerun_state_machine()
        for _ in range(4):
            while machine.should_run_forward_backward(None):
                machine.validate_result(torch.ones(()), torch.isnan, "NaN")
            steps += 1
    except Exception as error:
        return [steps, f"{type(error).__name__}: {error}"]
    return [steps, "nothing"]


for mode in ("report_determinism_stats", "validate_results"):
    print(mode, "=", json.dumps(run(mode)))
