"""What Megatron's hashes of replicas see: each bit, the rank, and what they send."""

import json
import logging

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.utils import check_param_hashes_across_dp_replicas
from torch import nn

from mini_impls.traffic import CollectiveCounter

RANKS = 2
UPSTREAMS = ["megatron"]


class Names(logging.Handler):
    def emit(self, record):
        told.append(record.getMessage())


told, logger = [], logging.getLogger("megatron.core.utils")
logger.handlers, logger.level = [Names()], logging.INFO
dist.init_process_group("gloo")
parallel_state.initialize_model_parallel()
torch.Tensor.cuda = lambda self: self
model, rank = nn.Linear(64, 64), dist.get_rank()
nn.init.ones_(model.weight)
if rank == 1:
    model.weight.data[-1, -1] += 2**-23
model.bias.data = torch.tensor([-0.0 if rank else 0.0])
with CollectiveCounter() as sent:
    found = [check_param_hashes_across_dp_replicas([model], x) for x in (False, True)]
both = [None, None]
dist.all_gather_object(both, [found, told])
if rank == 0:
    print("match =", json.dumps([each[0] for each in both]))
    print("told =", json.dumps([len(each[1]) for each in both]))
    print("bytes_of_each =", sent.payload_bytes()["all_gather"] // (2 * 2 * 2))
