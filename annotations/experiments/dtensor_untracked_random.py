"""Which random operations of a DTensor ask a tracker for their offset."""

import contextlib
import json
import warnings

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, _random

RANKS = 2

warnings.simplefilter("ignore")
dist.init_process_group("gloo")
mesh, asked = init_device_mesh("cpu", (2,)), []


class Tracker:
    distribute_region_enabled = True

    def _distribute_region(self, spec, generator=None):
        asked.append(spec)
        return contextlib.nullcontext()


def asks(draw):
    asked.clear()
    draw(DTensor.from_local(torch.ones(2, 4), mesh, [Shard(0)], run_check=False))
    return len(asked)


_random._rng_tracker = Tracker()
in_place, other = torch.Tensor, torch.nn.functional
with_offset = [other.dropout, torch.rand_like, in_place.normal_, in_place.uniform_]
without = [other.gumbel_softmax, in_place.exponential_, in_place.log_normal_]
without += [lambda tensor: torch.multinomial(tensor, 1)]
if dist.get_rank() == 0:
    print("ask =", json.dumps([asks(draw) for draw in with_offset]))
    print("do_not_ask =", json.dumps([asks(draw) for draw in without]))
