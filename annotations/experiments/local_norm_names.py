"""Under which names a local spec's norms stand in a distributed checkpoint."""

import json

from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec

RANKS = 1
UPSTREAMS = ["megatron"]

for name, experts in ("dense", None), ("experts", 2):
    spec = get_gpt_layer_local_spec(num_experts=experts).submodules
    names = spec.sharded_state_dict_keys_map
    print(f"{name} =", json.dumps(names["pre_mlp_layernorm."]))
