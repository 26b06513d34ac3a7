"""What is left of an output that `deallocate_output_tensor` let go of."""

import json

import torch
from megatron.core.pipeline_parallel import schedules

RANKS = 1
UPSTREAMS = ["megatron"]


def outcome(call, *args, **kwargs):
    """Return the name of the exception that a call raises, or none."""
    try:
        call(*args, **kwargs)
    except (AssertionError, RuntimeError) as error:
        return type(error).__name__
    return "none"


free = schedules.deallocate_output_tensor
x = torch.ones(4, 8, requires_grad=True)
grad = torch.ones(4, 8)

kept = x * 2.0
free(kept)
output = x * 2.0
free(output, True)
print(f"elements_by_default = {kept.numel()}\nelements = {output.numel()}")
print(f"has_grad_fn = {json.dumps(output.grad_fn is not None)}")
print(f"torchs_backward = {json.dumps(outcome(torch.autograd.backward, output, grad))}")
print(
    f"custom_backward = {json.dumps(outcome(schedules.custom_backward, output, grad))}"
)
print(f"gradient = {json.dumps(x.grad[0, 0].item())}")
view = (x * 2.0).view(8, 4)
print(f"of_a_view = {json.dumps(outcome(free, view, True))}")
view.data = torch.empty(1)
print(f"kept_behind_an_emptied_view = {view._base.numel()}")
