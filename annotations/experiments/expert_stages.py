"""When the two layouts of Megatron, of dense layers and experts, share their stages."""

import itertools
import json

from megatron.core.parallel_state import RankGenerator

RANKS = 1
UPSTREAMS = ["megatron"]
WORLD = 16


def stages(order, world, **sizes):
    """Return the pipeline groups of a layout that gives data parallelism the rest."""
    used = sizes["tp"] * sizes["ep"] * sizes["pp"] * sizes["cp"]
    return RankGenerator(dp=world // used, order=order, **sizes).get_ranks("pp")


same = []
for tp, cp, ep, etp, pp in itertools.product((1, 2), (1, 2), (1, 2, 4), (1, 2), (2, 4)):
    if WORLD % (tp * cp * pp) == 0 and WORLD % (etp * ep * pp) == 0:
        dense = stages("tp-cp-ep-dp-pp", WORLD, tp=tp, ep=1, pp=pp, cp=cp)
        same.append(
            dense == stages("tp-cp-ep-dp-pp", WORLD, tp=etp, ep=ep, pp=pp, cp=1)
        )
print("alike_with_pp_last =", json.dumps(all(same)), "\nlayouts =", len(same))
other = "tp-cp-ep-pp-dp"
print("dense =", sorted(stages(other, 8, tp=2, ep=1, pp=2, cp=1))[0])
print("experts =", sorted(stages(other, 8, tp=1, ep=1, pp=2, cp=1))[0])
