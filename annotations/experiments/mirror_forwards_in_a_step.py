"""Forwards of each module with weights, in a step of the sequence-parallel mini."""

import torch
import torch.distributed as dist

from mini_impls import model
from mini_impls.sequence_parallel_model import (
    model_parallel_manual_seed,
    sequence_parallel,
    train,
)

RANKS = 2
UPSTREAMS = ["minis"]

dist.init_process_group("gloo")
group, config = dist.group.WORLD, model.GPTConfig(hidden_dropout=0.1)
gpt = model.build_model(config)
tracker = model_parallel_manual_seed(0, group.rank(), torch.default_generator)
partial = sequence_parallel(gpt, group, tracker)
batch, ran = model.make_batch(config, step=0, batch_size=2), {}
with_weights = {n.rpartition(".")[0] for n, _ in gpt.named_parameters()}
for name in with_weights:
    module = gpt.get_submodule(name)
    module.register_forward_hook(
        lambda *_, name=name: ran.update({name: ran.get(name, 0) + 1})
    )
train(gpt, torch.optim.SGD(gpt.parameters(), 0.1), [batch], partial, group)
if dist.get_rank() == 0:
    print(f"times = {sorted(set(ran.values()))}\nmodules = {len(ran)}")
dist.destroy_process_group()
