"""A router's gradient where tokens do not count in the loss, by how that is divided."""

import torch
import torch.distributed as dist
from megatron.core import distributed, parallel_state, transformer
from megatron.core.distributed.finalize_model_grads import finalize_model_grads
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.transformer.moe import moe_utils
from megatron.core.transformer.moe.router import TopKRouter

UPSTREAMS = ["megatron"]
SIZES = {"num_layers": 1, "hidden_size": 4, "num_attention_heads": 1}
SIZES |= {"num_moe_experts": 4, "moe_router_topk": 2, "moe_aux_loss_coeff": 0.1}
SIZES |= {"add_bias_linear": False}
STEP = dict(data_iterator=None, num_microbatches=2, seq_length=8, micro_batch_size=1)
TOKENS = torch.arange(32.0).sin().view(8, 1, 4)

torch.compiler.set_stance("force_eager")
torch.cuda.current_device = lambda: "cpu"  # no CUDA here
dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(create_gloo_process_groups=False)
TopKRouter.set_input_tensor, TopKRouter.model_type = lambda self, tensor: None, None
moe_utils.te_general_gemm = None  # nor Transformer Engine


def gradient(counted, by_token):
    config = transformer.TransformerConfig(**SIZES, calculate_per_token_loss=by_token)
    config.finalize_model_grads_func = finalize_model_grads
    options = distributed.DistributedDataParallelConfig()
    router = TopKRouter(config, moe_utils.get_default_pg_collection())
    torch.nn.init.eye_(router.weight)
    model = distributed.DistributedDataParallel(config, options, router)
    loss = lambda out: (out.sum() * 0, torch.tensor(counted), {})  # noqa: E731
    step = lambda _, ddp: (ddp(TOKENS)[0], loss)  # noqa: E731
    get_forward_backward_func()(forward_step_func=step, model=model, **STEP)
    return router.weight.main_grad.norm().item()


for name, by_token in ("by_microbatch", False), ("by_token", True):
    print(f"{name} =", round(gradient(2, by_token) / gradient(8, by_token), 4))
