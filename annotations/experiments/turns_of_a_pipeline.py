"""What one more microbatch of 1F1B takes: a slow stage, messages that nothing hides."""

from mini_impls.schedules import get_orders
from mini_impls.timeline import get_inputs

UPSTREAMS = ["minis"]
STAGES = 4


def total(microbatches, cost, message):
    todo = [[*order] for order in get_orders("1f1b", STAGES, microbatches)]
    free, ends = [0] * STAGES, {}
    while any(todo):
        for steps in filter(None, todo):
            needed = get_inputs(steps[0], STAGES)
            if all(step in ends for step in needed):
                step = steps.pop(0)
                comes = [ends[n] + message * (n.stage != step.stage) for n in needed]
                free[step.stage] = max([free[step.stage], *comes]) + cost[step.stage]
                ends[step] = free[step.stage]
    return max(free)


def turn(cost=(1, 1, 1, 1), message=0):
    """Return the time of a forward and a backward of one more microbatch."""
    return (total(48, cost, message) - total(16, cost, message)) / 32


print(f"idle_of_ideal = {total(16, (1, 1, 1, 1), 0) / 32 - 1}")  # (p - 1) / m
print(f"equal = {turn()}")
print(f"slow_stage = {turn(cost=(1, 1, 2, 1))}")
print(f"messages = {turn(message=1)}")
