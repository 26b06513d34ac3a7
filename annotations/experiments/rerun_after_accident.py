"""A checkpoint of a transient error, loaded; and results that cannot be compared."""

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


def attempt(name, fn):
    try:
        print(f"{name} =", json.dumps(str(fn())))
    except Exception as error:
        print(f"{name} =", json.dumps(f"{type(error).__name__}: {error}"))


def start(mode):
    reruns.destroy_rerun_state_machine()
    reruns.initialize_rerun_state_machine(mode=reruns.RerunMode(mode))
    return reruns.get_rerun_state_machine()


machine, results = start("validate_results"), iter([float("nan"), 1.0])
machine.should_checkpoint_and_exit()
while machine.should_run_forward_backward(None):
    machine.validate_result(torch.tensor(next(results)), torch.isnan, "NaN")
print("exit =", json.dumps(machine.should_checkpoint_and_exit()))
saved = machine.state_dict(None, "torch_dist")
machine = start("validate_results")
machine.load_state_dict({**saved, "sharded": saved["sharded"].data})
attempt("resumed", lambda: machine.should_run_forward_backward(None))
for name, a in (("opposite", torch.ones(())), ("infinite", torch.tensor(torch.inf))):
    attempt(name, lambda a=a: reruns._compare_floats(a, -a))
