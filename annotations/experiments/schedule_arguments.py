"""Which schedule two sizes choose, one of them left out or none."""

import json

from megatron.core.pipeline_parallel import get_forward_backward_func

RANKS = 1
UPSTREAMS = ["megatron"]


def chosen(**sizes):
    """Return the name of the schedule or of the error."""
    try:
        return get_forward_backward_func(**sizes).__name__
    except (TypeError, AssertionError) as error:
        return type(error).__name__


for name, sizes in {
    "one_stage": {"pp_size": 1, "vp_size": None},
    "stages_alone": {"pp_size": 4},
    "both": {"pp_size": 4, "vp_size": 2},
    "one_chunk": {"pp_size": 4, "vp_size": 1},
    "chunks_alone": {"vp_size": 2},
}.items():
    print(f"{name} = {json.dumps(chosen(**sizes))}")
