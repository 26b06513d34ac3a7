"""Torch's two V-shaped orders beside the mini's, step by step."""

import json
from itertools import product

from torch.distributed.pipelining import schedules

from mini_impls.zero_bubble_plan import get_blocks

RANKS, UPSTREAMS = 1, ["minis"]
KINDS = {"FORWARD": "F", "BACKWARD_INPUT": "B", "BACKWARD_WEIGHT": "W"}


def steps(action):
    """Return the steps of an action; of what is joined and of a whole backward, all."""
    at, kind = action[2:3] + action[:1], action.computation_type.name
    if action.sub_actions:
        return [step for each in action.sub_actions for step in steps(each)]
    if kind == "FULL_BACKWARD":
        return [("B", *at), ("W", *at)]
    return [(KINDS[kind], *at)]


def theirs(name, p, m):
    made = object.__new__(getattr(schedules, name))
    made.pp_group_size, made._n_microbatches = p, m
    made.num_stages = made._num_stages = 2 * p
    orders = [made._calculate_single_rank_operations(rank) for rank in range(p)]
    return [[steps(action) for action in order if action] for order in orders]


for name, upstream in (("zb-v", "ZBVZeroBubble"), ("dualpipe-v", "DualPipeV")):
    same = []
    for p, m in product((1, 2, 3, 4, 8), (16, 17)):
        blocks = get_blocks(name, p, m)
        ours = [
            [[(s.kind, s.microbatch_id, s.stage) for s in b] for b in r] for r in blocks
        ]
        same.append(ours == theirs(f"Schedule{upstream}", p, m))
    print(name.replace("-", "_"), "=", json.dumps([all(same), len(same)]))
