"""What the two kinds of torch's checkpoint do where they differ."""

import json
from functools import partial

import torch
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

RANKS = 1
weight, runs = torch.ones(4, 4, requires_grad=True), []


def part(x):
    runs.append("product")
    x = (x @ weight).tanh()  # keeps its input and its output
    runs.append("rest")
    return x + 1  # keeps nothing


def attempt(action, *args, **options):
    try:
        return len(action(*args, **options) or ())
    except RuntimeError as error:
        return type(error).__name__


for name, is_reentrant in (("reentrant", True), ("hooks", False)):
    x = torch.ones(2, 4, requires_grad=True)
    run = partial(checkpoint, part, use_reentrant=is_reentrant)
    single = attempt(torch.autograd.grad, run(x).sum(), x)
    runs.clear()
    run(x).sum().backward()
    found = {"single_gradient": single, "ran": list(runs)}
    found["output_of_a_detached_input_needs_one"] = run(x.detach()).requires_grad
    print(name, "=", json.dumps(found))
policy = partial(create_selective_checkpoint_contexts, [torch.ops.aten.mm.default])
output = checkpoint(part, x, use_reentrant=False, context_fn=policy).sum()
output.backward(retain_graph=True)
print("policy =", json.dumps({"twice": attempt(output.backward)}))
