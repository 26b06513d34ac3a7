"""Which layouts of a dense model another order refuses, and what lets them pass."""

import json

import torch.distributed as dist
from megatron.core import parallel_state
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1
UPSTREAMS = ["megatron"]


def outcome(order="tp-cp-ep-pp-dp", **sizes):
    """Return the ranks of rank 0's stages, or the beginning of the error."""
    dist.init_process_group("fake", rank=0, world_size=16, store=FakeStore())
    try:
        parallel_state.initialize_model_parallel(
            order=order, create_gloo_process_groups=False, **sizes
        )
        return dist.get_process_group_ranks(
            parallel_state.get_pipeline_model_parallel_group()
        )
    except AssertionError as error:
        return str(error)[:20]
    finally:
        parallel_state.destroy_model_parallel()
        dist.destroy_process_group()


cut = {"tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 2}
print("without_context =", json.dumps(outcome(**cut)))
cut["context_parallel_size"] = 2
print("with_context =", json.dumps(outcome(**cut)))
print("pp_last =", json.dumps(outcome("tp-cp-ep-dp-pp", **cut)))
print("experts_cut_alike =", json.dumps(outcome(**cut, expert_tensor_parallel_size=4)))
