"""Weights after three steps with a gradient and with its double, by optimizer."""

import json

import torch

RANKS = 1

gradients = torch.linspace(0.5, 2.0, 12).view(3, 4)


def trained(optimizer_class, factor, clip=False, **options):
    weight = torch.nn.Parameter(torch.linspace(-2.0, 1.0, 4))
    optimizer = optimizer_class([weight], lr=0.1, **options)
    for gradient in gradients:
        weight.grad = factor * gradient
        if clip:
            torch.nn.utils.clip_grad_norm_([weight], 3.0)
        optimizer.step()
    return weight.detach()


for name, kind, options in (
    ("adamw", torch.optim.AdamW, {"weight_decay": 0.5}),
    ("adamw_clipped", torch.optim.AdamW, {"weight_decay": 0.5, "clip": True}),
    ("adam_l2", torch.optim.Adam, {"weight_decay": 0.5}),
    ("sgd", torch.optim.SGD, {}),
):
    pair = [trained(kind, factor, **options) for factor in (1, 2)]
    print(name, "=", json.dumps({"alike": torch.allclose(*pair)}))
