"""The two copies of a tied weight after two steps, their gradients summed or not."""

import json

import torch
import torch.distributed as dist

from mini_impls import model, pipeline
from mini_impls.pipeline_stages import split_model
from mini_impls.schedules import get_orders
from mini_impls.timeline import add_send_recv

RANKS = 2
UPSTREAMS = ["minis"]

dist.init_process_group("gloo")
rank, group = dist.get_rank(), dist.group.WORLD
config = model.GPTConfig(share_embeddings_and_output_weights=True)
batches = [model.make_batch(config, step=i, batch_size=4) for i in range(2)]
plan = add_send_recv(get_orders("1f1b", 2, 4))[rank]
for name, embd_group in (("summed", group), ("left_out", None)):
    stages = split_model(model.build_model(config), rank, 2)
    executor = pipeline.PipelineExecutor(stages, (1, 32, 64), group)
    weights = [p for stage in stages.values() for p in stage.parameters()]
    optimizer = torch.optim.SGD(weights, 0.1)
    pipeline.train(executor, plan, optimizer, batches, 4, embd_group)
    stage = stages[rank]
    tied = (stage.output_layer if rank else stage.embedding.word_embeddings).weight
    both = [torch.empty_like(tied) for _ in range(2)]
    dist.all_gather(both, tied.detach())
    if rank == 0:
        print(name, "=", json.dumps({"copies_equal": torch.equal(*both)}))
dist.destroy_process_group()
