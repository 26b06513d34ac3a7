"""Where the mean over four microbatches is made: torch's schedules, and the mini."""

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

from mini_impls.model import GPT, GPTConfig, make_batch, shard_batch
from mini_impls.pipeline import PipelineExecutor
from mini_impls.pipeline_stages import split_model
from mini_impls.schedules import get_orders

UPSTREAMS = ["minis"]

dist.init_process_group("gloo")
torch.manual_seed(0)
begun, backward, M = [], torch.Tensor.backward, 4


def upstream(**options):
    layer = torch.nn.Linear(1, 1, bias=False)
    stage = PipelineStage(layer, 0, 1, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, M, loss_fn=lambda y, _: y.mean(), **options)
    schedule.step(torch.ones(M, 1), target=torch.ones(M, 1))
    return layer.weight.grad.item()  # the gradient of the mean is 1


torch.Tensor.backward = lambda loss: begun.append(loss.item()) or backward(loss)
config = GPTConfig()
batch = make_batch(config, step=0, batch_size=M)
batches = [shard_batch(batch, rank=i, world_size=M) for i in range(M)]
stages = split_model(GPT(config), 0, 1)
executor = PipelineExecutor(stages, (1, 32, 64), dist.group.WORLD)
losses = executor.run(get_orders("1f1b", 1, M)[0], batches)
print("mini_part_of_a_loss =", round(begun[0] / losses[0], 6))
print("torch =", upstream(), "\ntorch_unscaled =", upstream(scale_grads=False))
