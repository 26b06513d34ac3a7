"""The groups that `generate_masked_orthogonal_rank_groups` makes for [2, 3, 4]."""

import inspect
import json
import re

from megatron.core.parallel_state import RankGenerator, initialize_model_parallel
from megatron.core.parallel_state import generate_masked_orthogonal_rank_groups as make

RANKS = 1
UPSTREAMS = ["megatron"]

pp = make(24, [2, 3, 4], [False, False, True])
print(f"pp_groups = {json.dumps(len(pp))}")
print(f"pp_group_3 = {json.dumps(pp[3])}")
print(f"tp_group_0 = {json.dumps(make(24, [2, 3, 4], [True, False, False])[0])}")
print(f"tp_pp_group_0 = {json.dumps(make(24, [2, 3, 4], [True, False, True])[0])}")

# t = 2, cp = 2, dp = 3, pp = 2 in the default order, and in the trainer's other one.
for tp, pp, order in (
    ("default_tp", "default_pp", "tp-cp-ep-dp-pp"),
    ("other_tp", "other_pp", "tp-cp-ep-pp-dp"),
):
    ranks = RankGenerator(tp=2, ep=1, dp=3, pp=2, cp=2, order=order, rank_offset=0)
    print(f"{tp} = {json.dumps(ranks.get_ranks('tp')[0])}")
    print(f"{pp} = {json.dumps(ranks.get_ranks('pp')[0])}")

# t = 2, cp = 2, dp = 2: the order of the names does not count.
ranks = RankGenerator(tp=2, ep=1, dp=2, pp=1, cp=2, order="tp-cp-ep-dp-pp")
for token in ("dp-cp", "cp-dp", "cp"):
    print(token.replace("-", "_"), "=", json.dumps(ranks.get_ranks(token)[0]))

ranks = RankGenerator(tp=2, ep=1, dp=2, pp=2, cp=2, order="tp-cp-ep-dp-pp")
print("dp_cp_groups =", len(ranks.get_ranks("dp-cp")))

told = re.search(r"order \(str, default=(.+)\)", initialize_model_parallel.__doc__)[1]
given = inspect.signature(initialize_model_parallel).parameters["order"].default
print(f"order_by_docstring = {json.dumps(told)}\norder = {json.dumps(given)}")
