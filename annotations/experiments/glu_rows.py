"""Which rows of a joined matrix of gate and up projection a rank gets, with t = 2."""

import json

import torch
from megatron.core.tensor_parallel.layers import _initialize_affine_weight_cpu

RANKS = 1
UPSTREAMS = ["megatron"]


def number_the_rows(weight):
    weight.copy_(torch.arange(len(weight)).view(-1, 1))


for name, stride in ("stride_1", 1), ("stride_2", 2):
    held = []
    for rank in range(2):
        weight = torch.nn.Parameter(torch.empty(4, 1))
        given = {"stride": stride, "rank": rank, "world_size": 2}
        _initialize_affine_weight_cpu(weight, 8, 1, 4, 0, number_the_rows, **given)
        held.append([int(row) for row in weight.flatten()])
    print(f"{name} = {json.dumps(held)}")
