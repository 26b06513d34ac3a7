"""Megatron's DynamicGradScaler and the mini's, over all short histories."""

from itertools import product

from megatron.core.optimizer.grad_scaler import DynamicGradScaler as Megatrons

from mini_impls.mixed_precision_scaler import DynamicGradScaler as Minis

RANKS = 1
UPSTREAMS = ["megatron"]
STEPS = 8

histories = unequal = 0
for interval, hysteresis in product((1, 2, 3, 4), (1, 2)):
    for history in product((True, False), repeat=STEPS):
        ours = Minis(
            8.0, min_scale=2.0, growth_interval=interval, hysteresis=hysteresis
        )
        theirs = Megatrons(8.0, 2.0, 2.0, 0.5, interval, hysteresis)
        histories += 1
        for found_inf in history:
            ours.update(found_inf)
            theirs.update(found_inf)
            state = theirs.state_dict()
            if {**ours.state_dict(), "scale": ours.scale.item()} != {
                **state,
                "scale": state["scale"].item(),
            }:
                unequal += 1
print("histories =", histories)
print("unequal =", unequal)
