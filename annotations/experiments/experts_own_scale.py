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
        self._copy_model_grads_to_main_grads = lambda: None
        self.gradient, self.found_inf = torch.tensor([gradient]), torch.zeros(1)
        self.is_stub_optimizer = False
        self._collect_main_grad_data_for_unscaling = lambda: [self.gradient]
        self.get_grad_stats_parallel_group = lambda: None


Made.__abstractmethods__ = frozenset()
chained = ChainedOptimizer.__new__(ChainedOptimizer)
chained.chained_optimizers = [Made(1.0), Made(float("inf"))]
print(f"skipped = {json.dumps(chained.prepare_grads())}")
for name, optimizer in ("loss", chained), ("experts", chained.chained_optimizers[1]):
    print(f"of_the_{name} = {optimizer.get_loss_scale().item()}")
for optimizer in chained.chained_optimizers:
    optimizer.gradient.fill_(1024.0)  # 1, of the scaled loss
chained.prepare_grads()
print("next_gradients =", [o.gradient.item() for o in chained.chained_optimizers])
dist.destroy_process_group()
