"""How the mean is divided before and after the sum: FSDP1, its mini, and FSDP2."""

import torch
from torch.distributed.algorithms._comm_hooks.default_hooks import DefaultState
from torch.distributed.fsdp._fully_shard import _fsdp_collectives as fsdp2

from mini_impls.fsdp_flat import FlatState

UPSTREAMS = ["minis"]


class Group:
    def __init__(self, ranks):
        self.size = lambda: ranks


def factors(ranks):
    state = FlatState(Group(ranks))
    return [state.gradient_predivide_factor, state.gradient_postdivide_factor]


def upstream(ranks):
    before = DefaultState._get_gradient_predivide_factor(ranks)
    return [before, ranks / before]


def second(dtype):
    before, after, *_ = fsdp2._get_gradient_divide_factors(Group(4), None, dtype)
    return [before, after] if before else "in the collective"


print("mini =", [factors(2), factors(4), factors(8)])
print("fsdp1 =", [upstream(2), upstream(4), upstream(8)])
print("fsdp2_fp16 =", second(torch.float16))
print(f'fsdp2_bf16 = "{second(torch.bfloat16)}"')
