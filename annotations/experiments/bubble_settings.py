"""Per cent of a step that a rank idles, slot by slot, for four ways to change it."""

from mini_impls.schedules import get_orders
from mini_impls.timeline import get_bubble, get_timeline

UPSTREAMS = ["minis"]


def share(schedule, ranks, microbatches, chunks=1):
    timeline = get_timeline(get_orders(schedule, ranks, microbatches, chunks))
    return round(100 * float(get_bubble(timeline, ranks)[1]), 1)


print("eight_stages_eight_batches =", share("1f1b", 8, 8))
print("sixteen_batches =", share("1f1b", 8, 16))
print("four_stages =", share("1f1b", 4, 8))
print("gpipe =", share("gpipe", 8, 8))
print("four_chunks =", share("interleaved", 8, 8, 4))
