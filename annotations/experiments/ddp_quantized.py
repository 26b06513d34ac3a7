"""The quantizing hook on gloo, and what it sends and keeps given futures as of NCCL."""

import json
from types import SimpleNamespace

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import quantization_hooks

RANKS = 2

dist.init_process_group("gloo")
gathered, plain = [], dist.all_gather
gradient = torch.full((1024,), 1e-3)
gradient[0] = 1.0 + dist.get_rank()
bucket = SimpleNamespace(buffer=lambda: gradient)


class Work:
    def __init__(self, outputs, tensor, group=None, async_op=False):
        gathered.append([str(tensor.dtype), tensor.numel()])
        plain(outputs, tensor)
        future = torch.futures.Future()
        future.set_result([torch.stack(outputs)])
        self.get_future = lambda: future


def hooked():
    try:
        sent = quantization_hooks.quantization_pertensor_hook(None, bucket)
        return sent.wait()[:2].tolist()
    except RuntimeError as error:
        return "IndexError" if "IndexError" in str(error) else None


on_gloo, dist.all_gather = hooked(), Work
kept = hooked()
if dist.get_rank() == 0:
    print("gloo =", json.dumps(on_gloo), "\ngathered =", json.dumps(gathered))
    print("kept =", json.dumps(kept))
