"""What the mini's schedules are worth: bubbles, peaks, warm-up, the plain cases."""

import json

from mini_impls.schedules import get_orders
from mini_impls.timeline import get_bubble, get_peak_in_flight, get_timeline

UPSTREAMS = ["minis"]


def bubble(schedule, chunks=1, ranks=4, batches=16, **costs):
    timeline = get_timeline(get_orders(schedule, ranks, batches, chunks), **costs)
    return float(get_bubble(timeline, ranks)[0])


def steps(schedule, ranks, microbatches, chunks=1):
    orders = get_orders(schedule, ranks, microbatches, chunks)
    return ["".join(step.kind for step in order) for order in orders]


split = bubble("zb-h1") / bubble("1f1b", backward_cost=2)
plain = get_orders("interleaved", 4, 16, 1) == get_orders("1f1b", 4, 16)
print("bubble_1f1b =", bubble("1f1b"))
print("bubble_gpipe =", bubble("gpipe"))
print("bubble_interleaved =", bubble("interleaved", 2))
print("of_2_4_8_ranks =", [bubble("1f1b", ranks=p) for p in (2, 4, 8)])
print("two_chunks_of_2_4_8 =", [bubble("interleaved", 2, p) for p in (2, 4, 8)])
print("of_1_2_4_chunks =", [bubble("interleaved", v) for v in (1, 2, 4)])
print("of_4_8_16_batches =", [bubble("1f1b", batches=m) for m in (4, 8, 16)])
print("split_over_whole =", round(split, 6))
for kind in ("gpipe", "1f1b", "zb-h1"):
    peaks = [*map(get_peak_in_flight, get_orders(kind, 4, 16))]
    print(f"held_{kind.replace('-', '_')} =", peaks)
print("one_chunk_is_1f1b =", json.dumps(plain))
print("on_one_rank =", json.dumps(steps("1f1b", 1, 3)))
print("orders_of_five =", json.dumps(steps("1f1b", 2, 5)))
print("fewer_than_ranks =", json.dumps(steps("1f1b", 4, 2)[0]))
kinds = [steps(name, 4, 8) for name in ("gpipe", "1f1b", "interleaved", "zb-h1")]
halves = {o.count("F") - o.count("B") for orders in kinds for o in orders}
print("forwards_less_backwards =", [*halves])
