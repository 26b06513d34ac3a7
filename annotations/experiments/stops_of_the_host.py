"""How often a step of 1F1B, 32 microbatches on four stages, stops each stage's host."""

import torch
import torch.distributed as dist
from megatron.core import parallel_state, transformer
from megatron.core.pipeline_parallel import get_forward_backward_func
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1
UPSTREAMS = ["megatron"]
SIZES = {"num_layers": 4, "hidden_size": 4, "num_attention_heads": 1}
STEP = dict(data_iterator=None, num_microbatches=32, seq_length=2, micro_batch_size=1)
stops = []
torch.cuda.synchronize = lambda *_: stops.append(1)


class Stage(torch.nn.Linear):
    model_type = None

    def set_input_tensor(self, tensors):
        self.given = torch.ones(2, 1, 4) if tensors[0] is None else tensors[0]


def forward(data, model):
    return model(model.given), lambda output: (output.sum(), {})


def count(rank, **given):
    dist.init_process_group("fake", rank=rank, world_size=4, store=FakeStore())
    parallel_state.initialize_model_parallel(1, 4, create_gloo_process_groups=False)
    given |= {"pipeline_dtype": torch.float32, "pipeline_model_parallel_size": 4}
    (stage := Stage(4, 4)).config = transformer.TransformerConfig(**SIZES, **given)
    stops.clear()
    get_forward_backward_func()(forward_step_func=forward, model=stage, **STEP)
    parallel_state.destroy_model_parallel(), dist.destroy_process_group()
    return len(stops)


print("by_default =", [count(rank) for rank in range(4)])
print("switched_off =", [count(rank, batch_p2p_sync=False) for rank in range(4)])
