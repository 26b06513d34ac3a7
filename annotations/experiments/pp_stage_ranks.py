"""On which of four ranks eight stages sit, in a loop and in a V."""

import json

from torch.distributed.pipelining._utils import generate_stage_to_rank_mapping

RANKS = 1

for name, style in (("looped", "loop"), ("v_shaped", "v")):
    mapping = generate_stage_to_rank_mapping(4, 8, style)
    print(name, "=", json.dumps([mapping[stage] for stage in range(8)]))
