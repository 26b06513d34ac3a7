"""Where ranks of the mini's pipelines wait: before, between and after their work."""

from itertools import pairwise

from mini_impls.schedules import Step, get_orders
from mini_impls.timeline import get_timeline

UPSTREAMS = ["minis"]


def places(orders):
    timeline = get_timeline(orders)
    end = max(stop for _, stop in timeline.values())
    found = []
    for order in orders:
        times = [timeline[step] for step in order]
        first, last = times[0][0], end - times[-1][1]
        between = sum(after[0] - this[1] for this, after in pairwise(times))
        found.append([first, between, last])
    return found


def with_weights_at_once(order):
    for step in order:
        yield step
        if step.kind == "B":
            yield Step("W", step.microbatch_id, step.stage)


plain = get_orders("1f1b", 4, 8)
print("gpipe =", places(get_orders("gpipe", 4, 16)))
print("one_f_one_b =", places(get_orders("1f1b", 4, 16)))
print("zb_h1 =", places(get_orders("zb-h1", 4, 8)))
print("weights_at_once =", places([[*with_weights_at_once(order)] for order in plain]))
