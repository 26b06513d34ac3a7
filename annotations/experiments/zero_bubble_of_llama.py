"""The bubble of orders on four ranks where attention makes F, B and W unequal."""

import json

from mini_impls.timeline import get_bubble
from mini_impls.zero_bubble_plan import get_block_timeline, get_blocks

UPSTREAMS = ["minis"]
HIDDEN, FFN = 4096, 11008  # of Llama 2 7B


def costs(sequence):
    """Return FLOPs a token and layer: attention has no products in W."""
    weights = 2 * (4 * HIDDEN**2 + 3 * HIDDEN * FFN)
    scores = 2 * sequence * HIDDEN  # two products, causal
    return {"F": weights + scores, "B": weights + 2 * scores, "W": weights}


def bubble(schedule, sequence):
    timeline = get_block_timeline(get_blocks(schedule, 4, 16), costs(sequence))
    return round(100 * float(get_bubble(timeline, 4)[0]), 1)


for name in ("1f1b", "zb-h1", "zb-v"):
    percent = [bubble(name, sequence) for sequence in (4096, 32768, 131072)]
    print(name.replace("-", "_"), "=", json.dumps(percent))
