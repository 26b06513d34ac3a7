"""What orders that split the backward are worth on four ranks: idle, held, bubble."""

import json

from mini_impls.timeline import get_bubble, get_peak_in_flight
from mini_impls.zero_bubble_plan import (
    SCHEDULES,
    add_send_recv,
    get_block_timeline,
    get_blocks,
    get_orders,
)

UPSTREAMS = ["minis"]


def idle(schedule, costs=(1, 1, 1)):
    """Return the most that a rank idles between its first step and its last."""
    blocks = get_blocks(schedule, 4, 16)
    timeline = get_block_timeline(blocks, dict(zip("FBW", costs, strict=True)))
    spans = [[timeline[step] for step in order] for order in get_orders(blocks)]
    return max(
        own[-1][1] - own[0][0] - sum(end - start for start, end in own) for own in spans
    )


bubbles, held, sends = [], [], []
for name in SCHEDULES:
    blocks = get_blocks(name, 4, 16)
    timeline = get_block_timeline(blocks, {"F": 1, "B": 1, "W": 1})
    bubbles.append(float(get_bubble(timeline, 4)[0]))
    sends.append(
        sum(hasattr(i, "peer") for plan in add_send_recv(blocks) for i in plan)
    )
    held.append(max(map(get_peak_in_flight, get_orders(blocks))))
print("bubble =", json.dumps(bubbles))
print("idle =", json.dumps([idle(name) for name in SCHEDULES]))
print("idle_of_uneven =", idle("zb-v", costs=(2, 2, 1)))
print("held =", json.dumps(held))
print("ends_of_messages =", json.dumps(sends))
