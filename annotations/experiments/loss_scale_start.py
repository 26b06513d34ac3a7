"""How many overflows bring Megatron's first loss scale down to one that fits."""

from megatron.core.optimizer.grad_scaler import DynamicGradScaler

RANKS = 1
UPSTREAMS = ["megatron"]

scaler = DynamicGradScaler(2.0**32, 1.0, 2.0, 0.5, 1000, hysteresis=2)
skipped = 0
while scaler.scale.item() > 2.0**16:
    scaler.update(True)
    skipped += 1
print("skipped =", skipped)
for _ in range(1000):
    scaler.update(False)
print("after_a_clean_interval =", scaler.scale.item() / 2.0**16)
