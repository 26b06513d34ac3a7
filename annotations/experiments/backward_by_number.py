"""In what order backward runs two branches, before and after one is given a number."""

import json

import torch
from megatron.core.transformer.moe.shared_experts import set_tensor_grad_fn_sequence_sr

RANKS = 1
UPSTREAMS = ["megatron"]


def order(first):
    """Return the order in which backward meets two branches of one input."""
    seen = []
    given = torch.ones(2, requires_grad=True)
    early, late = given * 2, given * 3
    for name, branch in (("early", early), ("late", late)):
        branch.grad_fn.register_prehook(lambda grad, name=name: seen.append(name))
    if first:
        set_tensor_grad_fn_sequence_sr(early, torch.iinfo(torch.int).max)
    (early + late).sum().backward()
    return seen


leaf = torch.ones(2, requires_grad=True)
accumulates = (leaf * 2).grad_fn.next_functions[0][0]
print("as_built =", json.dumps(order(False)))
print("numbered =", json.dumps(order(True)))
print("of_a_leaf_is_larger =", json.dumps(accumulates._sequence_nr() > 2**31 - 1))
