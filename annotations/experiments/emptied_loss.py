"""What a loss whose data was let go of gives to backward, and to a log of it."""

import json
from types import SimpleNamespace as Made

import torch
from megatron.core.pipeline_parallel import schedules

RANKS = 1
UPSTREAMS = ["megatron"]

weight = torch.tensor(1.0, requires_grad=True)
loss = (weight * 3.0).sum()
logged = {"itself": loss, "a copy": loss.clone().detach()}
schedules.deallocate_output_tensor(loss, True)
loss.data.fill_(torch.nan)  # anything can stand there
config = Made(
    timers=None, grad_scale_func=lambda x: x * 2.0, deallocate_pipeline_outputs=True
)
schedules.backward_step(None, loss, None, None, config)
print(f"scaled_gradient = {weight.grad.item()}")
print("logged_is_right =", json.dumps([bool(x == 3.0) for x in logged.values()]))
