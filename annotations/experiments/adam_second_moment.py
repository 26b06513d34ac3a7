"""Where Adam's second moment goes behind one gradient of 1, by dtype of the weight."""

import json

import torch

RANKS = 1


def after(dtype, gradient, steps, **options):
    """The second moment once so many steps more had this gradient."""
    weight = torch.nn.Parameter(torch.zeros(8, dtype=dtype))
    optimizer = torch.optim.Adam([weight], **options)
    for step in range(1 + steps):
        weight.grad = torch.full_like(weight, gradient if step else 1.0)
        optimizer.step()
    return round(optimizer.state[weight]["exp_avg_sq"][0].item(), 4)


for name, options in {
    "loop": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
    "beta_of_095": {"foreach": True, "betas": (0.9, 0.95)},
}.items():
    found = {}
    for dtype in (torch.float32, torch.bfloat16):
        zeros = [after(dtype, 0.0, steps, **options) for steps in (0, 1000)]
        figures = {
            "zeros": zeros,
            "ones": round(after(dtype, 1.0, 10000, **options), 2),
        }
        found[str(dtype).split(".")[1]] = figures
    print(name, "=", json.dumps(found))
