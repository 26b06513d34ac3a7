"""When the two layouts of Megatron, of dense layers and experts, share their stages."""

import itertools
import json

from megatron.core.parallel_state import RankGenerator

RANKS = 1
UPSTREAMS = ["megatron"]


def stages(order, world, **sizes):
    """Return the pipeline groups of a layout that gives data parallelism the rest."""
    used = sizes["tp"] * sizes["ep"] * sizes["pp"] * sizes["cp"]
    return RankGenerator(dp=world // used, order=order, **sizes).get_ranks("pp")


def layouts(order, world=16):
    """Yield whether the stages agree, and the data-parallel sizes, of each layout."""
    powers = (1, 2, 4, 8)
    for tp, cp, ep, etp, pp in itertools.product(powers, repeat=5):
        if world % (tp * cp * pp) == 0 and world % (etp * ep * pp) == 0:
            dense = stages(order, world, tp=tp, ep=1, pp=pp, cp=cp)
            experts = stages(order, world, tp=etp, ep=ep, pp=pp, cp=1)
            yield dense == experts, pp == 1 or tp * cp == etp * ep


last, other, own = "tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "tp-pp-cp-ep-dp"
same = [agree for agree, _ in layouts(last)]
print("alike_with_pp_last =", json.dumps(all(same)), "\nlayouts =", len(same))
found = {name: sum(let and not agree for agree, let in layouts(name))
         for name in (other, own)}  # fmt: skip
print("found_here =", json.dumps({last: same.count(False), **found}))
print("dense =", sorted(stages(other, 8, tp=2, ep=1, pp=2, cp=1))[0])
print("experts =", sorted(stages(other, 8, tp=1, ep=1, pp=2, cp=1))[0])
dense = sorted(stages(own, 8, tp=1, ep=1, pp=2, cp=2))[0]
experts = sorted(stages(own, 8, tp=2, ep=1, pp=2, cp=1))[0]
print("own_order =", json.dumps({"dense": dense, "experts": experts}))
