"""Where the mean over microbatches is made: torch's schedules, and the mini."""

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

from mini_impls import model as gpt
from mini_impls.pipeline import PipelineExecutor
from mini_impls.pipeline_stages import split_model
from mini_impls.schedules import get_orders

UPSTREAMS = ["minis"]
M = 4

dist.init_process_group("gloo")
torch.manual_seed(0)


def upstream(**options):
    layer = torch.nn.Linear(1, 1, bias=False)
    stage = PipelineStage(layer, 0, 1, torch.device("cpu"))
    loss = lambda output, target: output.mean() + 0 * target.mean()
    ScheduleGPipe(stage, M, loss_fn=loss, **options).step(
        torch.ones(M, 1), target=torch.ones(M, 1)
    )
    return layer.weight.grad.item()  # the mean's would be 1


losses, backward = [], torch.Tensor.backward
torch.Tensor.backward = lambda self, *a: losses.append(self.item()) or backward(self, *a)
print("torch_scaled =", upstream(), "\ntorch_unscaled =", upstream(scale_grads=False))
