"""When `DynamicGradScaler` lowers its scale for overflows that lie far apart."""

import json

from megatron.core.optimizer.grad_scaler import DynamicGradScaler

RANKS = 1
UPSTREAMS = ["megatron"]


def lowered_at(overflows: set[int], steps: int) -> list[int]:
    """Return the steps at which the scale fell, with an interval of 1000."""
    scaler = DynamicGradScaler(2.0**16, 1.0, 2.0, 0.5, 1000, hysteresis=2)
    fell = []
    for step in range(steps):
        before = scaler.scale.item()
        scaler.update(step in overflows)
        if scaler.scale.item() < before:
            fell.append(step)
    return fell


print(f"lowered_at = {json.dumps(lowered_at({100, 600, 700}, 1000))}")
# 1001 clean steps lie between the second and the third: the scale has grown once.
print(f"after_a_growth = {json.dumps(lowered_at({100, 600, 1700}, 2000))}")
saved = DynamicGradScaler(2.0**16, 1.0, 2.0, 0.5, 1000, 2).state_dict()
print(f"saved = {json.dumps(sorted(saved))}")
