"""The tensor-parallel mini without the sum of input gradients, and with it."""

import json

import torch
import torch.distributed as dist

from mini_impls import model, tensor_parallel
from mini_impls.vocab_parallel_loss import vocab_parallel_cross_entropy

RANKS = 2
UPSTREAMS = ["minis"]

dist.init_process_group("gloo")
group, f = dist.group.WORLD, tensor_parallel._CopyToModelParallelRegion
config, whole = model.GPTConfig(), f.backward
tokens, labels = model.make_batch(config, step=0, batch_size=2)


def show(name, backward):
    f.backward = staticmethod(backward)
    gpt = model.build_model(config)
    tensor_parallel.tensor_parallel(gpt, group, overlap=False)
    loss = vocab_parallel_cross_entropy(gpt(tokens), labels, group).mean()
    loss.backward()
    grad = gpt.layers[0].input_layernorm.weight.grad
    both = [torch.empty_like(grad) for _ in range(2)]
    dist.all_gather(both, grad)
    found = {
        "first_loss": round(loss.item(), 5),
        "norm_grads_equal": torch.equal(*both),
    }
    if dist.get_rank() == 0:
        print(name, "=", json.dumps(found))


show("with_f", whole)
show("without_f", lambda ctx, grad_output: (grad_output, None))
dist.destroy_process_group()
