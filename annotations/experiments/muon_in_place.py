"""The norm of the momentum that torch's Muon keeps after one step."""

import json

import torch

RANKS = 1

for dtype in (torch.float32, torch.bfloat16):
    for nesterov in (True, False):
        torch.manual_seed(0)
        param = torch.nn.Parameter(torch.zeros(8, 8, dtype=dtype))
        optimizer = torch.optim.Muon([param], momentum=0.5, nesterov=nesterov)
        param.grad = 100 * torch.randn(8, 8, dtype=dtype)
        due = (param.grad / 2).float().norm()
        optimizer.step()
        kept = optimizer.state[param]["momentum_buffer"].float().norm()
        name = str(dtype).removeprefix("torch.") + ("_nesterov" if nesterov else "")
        figures = {"due": round(due.item()), "kept": round(kept.item())}
        print(name, "=", json.dumps(figures))
