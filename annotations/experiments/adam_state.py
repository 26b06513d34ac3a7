"""Bytes of Adam's moments before and after the first step, by dtype of the weights."""

import json

import torch

RANKS = 1


def state_bytes(optimizer):
    moments = [
        t for s in optimizer.state.values() for name, t in s.items() if name != "step"
    ]
    return sum(t.nbytes for t in moments)


for dtype in (torch.float32, torch.bfloat16):
    model = torch.nn.Linear(10, 10, bias=False, dtype=dtype)
    frozen = torch.nn.Linear(10, 10, bias=False, dtype=dtype).requires_grad_(False)
    optimizer = torch.optim.Adam([*model.parameters(), *frozen.parameters()])
    built = state_bytes(optimizer)
    model(torch.ones(1, 10, dtype=dtype)).sum().backward()
    before = state_bytes(optimizer)
    optimizer.step()
    after = state_bytes(optimizer) // 100
    frozen.requires_grad_(True)(torch.ones(1, 10, dtype=dtype)).sum().backward()
    optimizer.step()
    name = str(dtype).removeprefix("torch.")
    print(f"{name}_bytes_built = {built}\n{name}_bytes_before_the_step = {before}")
    print(f"{name}_bytes_per_parameter = {after}")
    print(f"{name}_parameters_with_state_after_unfreezing =", len(optimizer.state))
    dtypes = {str(s["exp_avg"].dtype) for s in optimizer.state.values()}
    print(f"{name}_moments =", json.dumps(sorted(dtypes)))
