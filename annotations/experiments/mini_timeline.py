"""When ranks of the mini's 1F1B begin, turn round, and which chunk comes back first."""

import json

from mini_impls.schedules import get_orders
from mini_impls.timeline import get_timeline

UPSTREAMS = ["minis"]

orders = get_orders("1f1b", 4, 8, 1)
timeline = get_timeline(orders)
first_backwards = [next(s for s in order if s.kind == "B") for order in orders]
before = [order.index(b) for order, b in zip(orders, first_backwards, strict=True)]
print("first_forward_at =", [timeline[order[0]][0] for order in orders])
print("forwards_before_a_backward =", before)
print("first_backward_at =", [timeline[step][0] for step in first_backwards])
chunks = get_orders("interleaved", 2, 4, 2)[0]
row = [f"{step.kind}{step.microbatch_id}{'ab'[step.stage // 2]}" for step in chunks]
print("interleaved_row =", json.dumps(row[:6]))
