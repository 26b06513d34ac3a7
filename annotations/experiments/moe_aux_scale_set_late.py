"""What the schedule meets where a backward came before it set the aux loss's scale."""

import json
from types import SimpleNamespace

import torch
from megatron.core.pipeline_parallel.schedules import forward_step_calc_loss
from megatron.core.transformer.moe.moe_utils import MoEAuxLossAutoScaler

RANKS = 1
UPSTREAMS = ["megatron"]

config = SimpleNamespace(
    timers=None, num_moe_experts=2, grad_scale_func=None, calculate_per_token_loss=False
)


def schedule():
    """Set the scale as a step of the schedule does: a quarter, of four microbatches."""
    out, loss = torch.ones(1), lambda output: (output.sum(), None)
    forward_step_calc_loss(None, out, loss, config, None, False, 4, [], 1, True)
    return MoEAuxLossAutoScaler.main_loss_backward_scale.tolist()


print("set_first =", schedule())
MoEAuxLossAutoScaler.main_loss_backward_scale = None
w = torch.ones(1, requires_grad=True)
MoEAuxLossAutoScaler.apply(w * 1.0, w.sum()).backward()
print("unset =", MoEAuxLossAutoScaler.main_loss_backward_scale.tolist())
try:
    schedule()
except RuntimeError as error:
    print("set_late =", json.dumps(str(error)))
