"""What a job does with the step that the job before it saved, by batches and exit."""

import json
import logging

import torch
import torch.distributed as dist
from megatron.core import rerun_state_machine as reruns

RANKS = 1
UPSTREAMS = ["megatron"]


def start(saved=None):
    reruns.destroy_rerun_state_machine()
    reruns.initialize_rerun_state_machine(mode=reruns.RerunMode.VALIDATE_RESULTS)
    machine = reruns.get_rerun_state_machine()
    machine.should_checkpoint_and_exit()  # the first step is over
    if saved:
        sharded = {**saved["sharded"].data, "suspicious_device": "another"}
        machine.load_state_dict({**saved, "sharded": sharded})
    return machine, reruns.RerunDataIterator(iter(["first", "second"]))


def end(name, job, *results):
    runs, read, (machine, iterator) = iter(results), [], job
    while machine.should_run_forward_backward(iterator):
        read.append(next(iterator))
        machine.validate_result(torch.tensor(next(runs)), torch.isnan, "NaN")
    print(name, "=", json.dumps([read, machine.should_checkpoint_and_exit()[2]]))
    return machine.state_dict(iterator, "torch_dist")


logging.disable(logging.CRITICAL)
dist.init_process_group("gloo")
torch.cuda.get_rng_state = torch.get_rng_state
end("good", job := start(), 1.0)
saved = end("rejected", job, torch.nan, torch.nan)
end("resumed", start(saved), 1.0)
end("resumed_again", start(saved), 1.0)
