"""Bytes of Adam's moments before and after the first step, by dtype of the weights."""

import json

import torch

RANKS = 1


def moments(optimizer):
    states = optimizer.state.values()
    return [t for s in states for name, t in s.items() if name != "step"]


def show(name, dtype):
    layers = [torch.nn.Linear(10, 10, bias=False, dtype=dtype) for _ in range(2)]
    layers[1].requires_grad_(False)
    optimizer = torch.optim.Adam(p for layer in layers for p in layer.parameters())
    figure = {"built": sum(t.nbytes for t in moments(optimizer))}
    x = torch.ones(1, 10, dtype=dtype)
    layers[0](x).sum().backward()
    figure["before_the_step"] = sum(t.nbytes for t in moments(optimizer))
    optimizer.step()
    figure["bytes_per_parameter"] = sum(t.nbytes for t in moments(optimizer)) // 100
    figure["dtypes"] = sorted({str(t.dtype) for t in moments(optimizer)})
    layers[1].requires_grad_(True)(x).sum().backward()
    optimizer.step()
    figure["states_after_unfreezing"] = len(optimizer.state)
    print(name, "=", json.dumps(figure))


show("fp32", torch.float32)
show("bf16", torch.bfloat16)
