"""Megatron's rank groups beside the mini's, for many orders and sizes."""

import itertools
import json

from megatron.core.parallel_state import RankGenerator

from mini_impls.layout import RankLayout

RANKS = 1
UPSTREAMS = ["megatron", "minis"]

NAMES = ("tp", "cp", "ep", "dp", "pp")
KINDS = ("tp", "cp", "dp", "pp", "tp-cp", "dp-cp", "tp-dp-cp", "tp-pp")
SIZES = [(2, 1, 1, 2, 2), (2, 2, 1, 2, 1), (1, 3, 1, 2, 2), (2, 1, 3, 1, 2)]
same, held = [], 0
for order in itertools.permutations(NAMES):
    for sizes in SIZES:
        named = dict(zip(NAMES, sizes, strict=True))
        ours = RankLayout.parse("-".join(order), **named)
        theirs = RankGenerator(
            *(named[n] for n in ("tp", "ep", "dp", "pp", "cp")), order="-".join(order)
        )
        for kind in KINDS:
            groups = [sorted(group) for group in theirs.get_ranks(kind)]
            same.append(sorted(groups) == sorted(ours.groups(kind)))
print("same_groups =", json.dumps(all(same)), "\ncompared =", len(same))
