"""In what order backward runs branches, before and after some nodes have a number."""

import json

import torch
from megatron.core.transformer.moe.shared_experts import set_tensor_grad_fn_sequence_sr

RANKS = 1
UPSTREAMS = ["megatron"]
seen, leaf = [], torch.ones(2, requires_grad=True)


def node(given, name, first=False):
    made = given * 2
    made.grad_fn.register_prehook(lambda grad: seen.append(name))
    if first:
        set_tensor_grad_fn_sequence_sr(made, torch.iinfo(torch.int).max)
    return made


def order(last):
    seen.clear()
    last.sum().backward()
    return json.dumps([name for name in seen if name])


def layer(first):
    """Build a layer of shared experts as the dispatcher calls it."""
    shared, tokens = node(leaf, "", first), node(leaf, "dispatch", first)
    shared, tokens = node(shared, "fc1"), node(node(tokens, ""), "combine", first)
    return node(node(shared, "fc2"), "", first) + node(tokens, "")


print("as_built =", order(node(leaf, "early") + node(leaf, "late")))
print("numbered =", order(node(leaf, "early", True) + node(leaf, "late")))
print(
    "layer_as_called =", order(layer(False)), "\nlayer_numbered =", order(layer(True))
)
leaves = (leaf * 2).grad_fn.next_functions[0][0]._sequence_nr()
print("of_a_leaf_is_larger =", json.dumps(leaves > 2**31 - 1))
