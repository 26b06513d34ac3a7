"""Which stage of 1F1B still waits for its first counts after three steps."""

import torch
import torch.distributed as dist
from megatron.core import distributed, parallel_state, transformer
from megatron.core.pipeline_parallel import get_forward_backward_func

RANKS = 2
UPSTREAMS = ["megatron"]
SIZES = {"num_layers": 2, "hidden_size": 4, "num_attention_heads": 1}
STEP = dict(data_iterator=None, num_microbatches=4, seq_length=2, micro_batch_size=1)


class Stage(torch.nn.Linear):
    model_type = None

    def set_input_tensor(self, tensors):
        self.given = torch.ones(2, 1, 4) if tensors[0] is None else tensors[0]


def forward(data, model):
    return model(model.module.given), lambda output: (output.sum(), {})


dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(1, 2, create_gloo_process_groups=False)
for name in "alone", "aligned":
    config = transformer.TransformerConfig(**SIZES, pipeline_dtype=torch.float32)
    options = distributed.DistributedDataParallelConfig(overlap_grad_reduce=True)
    model = distributed.DistributedDataParallel(config, options, Stage(4, 4))
    config.no_sync_func = model.no_sync
    config.grad_sync_func = model.start_grad_sync if name == "aligned" else None
    config.finalize_model_grads_func = lambda m, *_, **__: m[0].finish_grad_sync()
    for _step in range(3):
        model.zero_grad_buffer()
        get_forward_backward_func()(forward_step_func=forward, model=model, **STEP)
    dist.all_gather_object(waits := [0, 0], model.bucket_groups[0].is_first_batch)
    print(f"{name} = {str(waits).lower()}")
dist.destroy_process_group()
