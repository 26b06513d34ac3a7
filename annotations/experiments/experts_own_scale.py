"""The loss scales of chained optimizers after an overflow in the second alone."""

import json
from types import SimpleNamespace

import torch
import torch.distributed as dist
from megatron.core.optimizer.grad_scaler import DynamicGradScaler
from megatron.core.optimizer.optimizer import ChainedOptimizer, MixedPrecisionOptimizer

RANKS = 1
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")


class Made(MixedPrecisionOptimizer):
    """What a mixed-precision optimizer needs to look at its gradients."""

    def __init__(self, gradient: float) -> None:
        self.config = SimpleNamespace(timers=None)
        self.grad_scaler = DynamicGradScaler(1024.0, 1.0, 2.0, 0.5, 1000, hysteresis=1)
        self.found_inf, self.is_stub_optimizer = torch.zeros(1), False
        self._copy_model_grads_to_main_grads = lambda: None
        self._collect_main_grad_data_for_unscaling = lambda: [torch.tensor([gradient])]
        self.get_grad_stats_parallel_group = lambda: None


Made.__abstractmethods__ = frozenset()
chained = ChainedOptimizer.__new__(ChainedOptimizer)
experts = Made(float("inf"))
chained.chained_optimizers = [Made(1.0), experts]
print(f"skipped = {json.dumps(chained.prepare_grads())}")
print(f"of_the_loss = {chained.get_loss_scale().item()}")
print(f"of_the_experts = {experts.get_loss_scale().item()}")
dist.destroy_process_group()
