"""How far a step gets with two wrappers of Megatron, as the trainer ends it."""

import json

import torch
import torch.distributed as dist
from megatron.core import distributed, parallel_state, transformer
from megatron.core.distributed import torch_fully_sharded_data_parallel as fsdp2
from megatron.core.pipeline_parallel import get_forward_backward_func

RANKS = 1
UPSTREAMS = ["megatron"]
SIZES = {"num_layers": 1, "hidden_size": 4, "num_attention_heads": 1}
STEP = dict(data_iterator=None, num_microbatches=1, seq_length=2, micro_batch_size=1)


class Stage(torch.nn.Linear):
    set_input_tensor = model_type = None  # names that the schedule looks for


dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(create_gloo_process_groups=False)
forward = lambda _, model: (model(torch.ones(2, 1, 4)), lambda out: (out.sum(), {}))  # noqa: E731
mesh = fsdp2.DeviceMesh.from_group
fsdp2.DeviceMesh.from_group = lambda group, device: mesh(group, "cpu")  # no GPU here
for name in "DistributedDataParallel", "TorchFullyShardedDataParallel":
    config = transformer.TransformerConfig(**SIZES)
    config.finalize_model_grads_func = distributed.finalize_model_grads
    options, said = distributed.DistributedDataParallelConfig(), ""
    model = getattr(distributed, name)(config, options, Stage(4, 4))
    model.set_input_tensor = lambda tensors: None
    try:
        get_forward_backward_func()(forward_step_func=forward, model=model, **STEP)
    except TypeError as error:
        said = str(error).partition("() ")[2]
    print(name[:5].lower(), "=", json.dumps(said))
print("grad_is_there =", str(model.module.weight.grad is not None).lower())
dist.destroy_process_group()
